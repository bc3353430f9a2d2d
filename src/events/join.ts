import type { ChatEvent, LiveEvent } from './event.ts'
import { endOf, historyOf, isAtRest, type RowsOfChat } from './history.ts'
import { NOWHERE } from './ids.ts'
import type { History } from './options.ts'
import { isFinal, isRunEnd } from './run-end.ts'
import type { EventStream, Place } from './stream.ts'
import type { Told } from './told.ts'

/** Where rows that viewers are told of come from. */
export interface EventRows {
  /** Null = there is no such chat. */
  read(chatId: string, which: 'turn' | 'all'): Promise<RowsOfChat | null>
}

/** A reader's beginning. */
export interface Joined {
  /** What it is told first. */
  readonly events: readonly ChatEvent[]
  /** Where it reads the stream from. */
  readonly place: Place
  /** The last entry that was there before it; null = there was none, or it knows what came before. */
  readonly past: string | null
}

export interface Joining {
  readonly chatId: string
  readonly told: Told
  readonly rows: EventRows
  readonly stream: EventStream
  /** Asks Redis until it answers; rejects with the signal's reason when the reader is ended. */
  readonly ask: <T>(question: () => Promise<T>) => Promise<T>
}

/**
 * Joins a chat at any moment. What is committed is published afterwards, so the end of the stream is noted first, then the
 * rows are read, then the stream is followed: what is told twice that way is known by its ids. Null = there is no such chat.
 */
export async function joinAfresh(joining: Joining, history: History): Promise<Joined | null> {
  const { chatId, told, rows, stream, ask } = joining
  const newest = await ask(() => stream.newest(chatId))
  const read = await rows.read(chatId, history === 'all' ? 'all' : 'turn')
  if (read === null) return null
  const { claimToken } = read.look.chat
  told.restart({ claimToken, whole: history !== 'none' })
  const behind = () => {
    if (newest === null) return 'start'
    told.follow(newest)
    return { id: newest.id, including: false }
  }
  if (history === 'none') {
    const end = endOf(read)
    if (end !== null) told.tell(madeFromRows(joining, end, NOWHERE, claimToken))
    return { events: [], place: behind(), past: null }
  }
  const events = historyOf(read).map((event) => madeFromRows(joining, event, NOWHERE, claimToken))
  for (const event of events) told.tell(event)
  const beginning = isAtRest(read.look) ? null : await ask(() => stream.latestBeginning(chatId, claimToken))
  const past = newest?.id ?? null
  if (beginning === null) return { events: endingAt(events, past ?? NOWHERE), place: behind(), past }
  const { id, event } = beginning
  // An end that is final belongs to what was before.
  const including = event === null || !isRunEnd(event) || !isFinal(event)
  return { events, place: { id, including }, past }
}

/** Joins at the first entry that is kept. */
export async function joinAtStart({ chatId, told, rows, stream, ask }: Joining): Promise<Joined | null> {
  const newest = await ask(() => stream.newest(chatId))
  const read = await rows.read(chatId, 'turn')
  if (read === null) return null
  settleRest(told, read)
  return { events: [], place: 'start', past: newest?.id ?? null }
}

/** Joins behind an entry; 'gone' when the stream does not hold it. */
export async function joinBehind(joining: Joining, id: string): Promise<Joined | 'gone' | null> {
  const { chatId, told, rows, stream, ask } = joining
  const page = await ask(() => stream.page(chatId, { id, including: false }))
  if (page?.anchor == null) return 'gone'
  const { claimToken, event } = page.anchor
  told.follow(page.anchor)
  if (claimToken > 0) told.settle(claimToken - 1)
  if (event !== null) told.tell(event)
  if (claimToken === 0) {
    const read = await rows.read(chatId, 'turn')
    if (read === null) return null
    settleRest(told, read)
  }
  return { events: [], place: { id: page.anchor.id, including: false }, past: null }
}

/** A chat that rests already when the reader joins has no end that was lost. */
function settleRest(told: Told, { look }: RowsOfChat): void {
  told.settle(isAtRest(look) ? look.chat.claimToken : look.chat.claimToken - 1)
}

/** An event that rows tell of. */
export function madeFromRows(
  { chatId }: { readonly chatId: string },
  event: LiveEvent,
  id: string,
  claimToken: number,
): ChatEvent {
  return Object.freeze({ ...event, id, chatId, claimToken })
}

/** Gives the last event an id to go on from: with it everything was told. */
function endingAt(events: readonly ChatEvent[], id: string): ChatEvent[] {
  return events.map((event, at) => (at === events.length - 1 ? Object.freeze({ ...event, id }) : event))
}
