import type { ChatLook } from '../../models/transcript.ts'
import type { StreamEntry } from './entry.ts'
import type { ChatEvent } from './event.ts'
import { endOf, historyOf, isAtRest } from './history.ts'
import type { EventHub } from './hub.ts'
import { isAfter, NOWHERE } from './ids.ts'
import { type Joined, type Joining, joinAfresh, madeFromRows } from './join.ts'
import { Mailbox } from './mailbox.ts'
import type { History } from './options.ts'
import type { Place } from './stream.ts'

export interface Following extends Joining {
  readonly hub: EventHub
  /** What a reader gets after a `resync`. */
  readonly history: History
  /** Aborted when the reader is ended. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** Why one stretch of reading is over. */
type Stop = 'lost' | 'ended'

/** Everything that a reader is told, until it is ended or the chat is deleted. */
export async function* follow(
  following: Following,
  first: Promise<Joined | 'gone' | null>,
): AsyncGenerator<ChatEvent, void> {
  let joined = await first
  for (;;) {
    if (joined === null) return
    if (joined !== 'gone' && (yield* new Stretch(following, joined).read()) === 'ended') return
    if (following.signal.aborted) return
    yield madeFromRows(following, { type: 'resync' }, NOWHERE, following.told.claimToken)
    joined = await joinAfresh(following, following.history)
  }
}

/** Reading from one join to the next. */
class Stretch {
  readonly #following: Following
  readonly #joined: Joined
  #place: Place

  constructor(following: Following, joined: Joined) {
    this.#following = following
    this.#joined = joined
    this.#place = joined.place
  }

  async *read(): AsyncGenerator<ChatEvent, Stop> {
    const { hub, chatId, signal } = this.#following
    yield* this.#joined.events
    for (;;) {
      let stop = yield* this.#pages(null)
      if (stop !== null) return stop
      const mailbox = new Mailbox()
      const end = () => mailbox.end()
      signal.addEventListener('abort', end)
      try {
        const position = hub.attach(chatId, this.#id, mailbox)
        // Others were ahead of this reader: what lies between comes from the stream, while the mailbox keeps the rest.
        stop = position === null ? null : yield* this.#pages(position)
        if (signal.aborted) return 'ended'
        stop ??= yield* this.#live(mailbox)
        if (stop !== null) return stop
      } finally {
        signal.removeEventListener('abort', end)
        hub.detach(chatId, mailbox)
      }
    }
  }

  get #id(): string | null {
    return this.#place === 'start' ? null : this.#place.id
  }

  /** Reads the stream at the reader's own pace: to its end, or to an id at least. Null = it got there. */
  async *#pages(through: string | null): AsyncGenerator<ChatEvent, Stop | null> {
    const { stream, chatId, ask, signal } = this.#following
    for (;;) {
      if (through !== null && !isAfter(through, this.#id)) return null
      const page = await ask(() => stream.page(chatId, this.#place))
      if (page === null) {
        const left = await this.#whatIsLost()
        if (left !== null) return left
        this.#place = 'start'
        continue
      }
      for (const entry of page.entries) {
        const event = this.#hear(entry)
        if (event === 'hole') return 'lost'
        if (event !== null) yield event
        if (signal.aborted) return 'ended'
      }
      if (!page.more) return null
    }
  }

  /** Reads along with others. Null = it fell behind. */
  async *#live(mailbox: Mailbox): AsyncGenerator<ChatEvent, Stop | null> {
    const { signal } = this.#following
    for (;;) {
      const heard = await mailbox.take()
      if (signal.aborted) return 'ended'
      switch (heard.kind) {
        case 'entry': {
          if (!isAfter(heard.entry.id, this.#id)) break
          const event = this.#hear(heard.entry)
          if (event === 'hole') return 'lost'
          if (event !== null) yield event
          break
        }
        case 'silence':
          if (heard.look === null) return 'ended'
          yield* this.#lostEnd(heard.look)
          break
        case 'behind':
          return null
        case 'ended':
          return 'ended'
        default:
          return heard satisfies never
      }
      if (signal.aborted) return 'ended'
    }
  }

  #hear(entry: StreamEntry): ChatEvent | 'hole' | null {
    const { past } = this.#joined
    this.#place = { id: entry.id, including: false }
    return this.#following.told.hear(entry, { isPast: past !== null && !isAfter(entry.id, past) })
  }

  /**
   * The stream no longer holds what was read last. That is no loss where the chat rests and its end was told: the stream
   * has expired, and whatever comes begins another one.
   */
  async #whatIsLost(): Promise<Stop | null> {
    const { rows, chatId, told } = this.#following
    const read = await rows.read(chatId, 'turn')
    if (read === null) return 'ended'
    const end = endOf(read)
    const { claimToken } = read.look.chat
    if (!isAtRest(read.look)) return 'lost'
    return end === null || told.has(madeFromRows({ chatId }, end, NOWHERE, claimToken)) ? null : 'lost'
  }

  /** The turn has ended by its rows, but nothing came that said so: they say it, and what else was lost of the turn. */
  async *#lostEnd(look: ChatLook): AsyncGenerator<ChatEvent, void> {
    const { rows, chatId, told, onError } = this.#following
    const { claimToken, failure } = look.chat
    if (!isAtRest(look) || (failure === null && told.isSettled(claimToken))) return
    const read = await rows.read(chatId, 'turn').catch(onError)
    if (read == null || !isAtRest(read.look)) return
    const end = endOf(read)
    if (end === null) told.settle(claimToken)
    if (end === null || told.has(madeFromRows({ chatId }, end, NOWHERE, claimToken))) return
    for (const event of historyOf(read)) {
      const made = madeFromRows({ chatId }, event, this.#id ?? NOWHERE, read.look.chat.claimToken)
      if (told.tell(made)) yield made
    }
  }
}
