import type { Cluster, Redis } from 'ioredis'
import { ArgumentError } from '../errors.ts'
import { type BlockingConnection, blockingConnection, ended } from './connection.ts'
import { readEntry } from './entry.ts'
import type { ChatEvent } from './event.ts'
import { streamKey } from './keys.ts'

export interface ReadEventsOptions {
  /** What the keys begin with, as the publisher has it. */
  readonly prefix: string
  readonly chatId: string
  /** Start right behind this event's id; '0' = with the oldest that is kept. Default: only what comes from now on. */
  readonly after?: string | undefined
  /** Ends the reader, without an error, when it is aborted. */
  readonly signal?: AbortSignal | undefined
  /** How long Redis holds a read that finds nothing, in ms. Default: 5000. */
  readonly blockMs?: number | undefined
  /** Told of what a reader outlives: a lost connection, a refused command. Default: nobody. */
  readonly onError?: ((error: Error) => void) | undefined
}

/** The live events of one chat, to be read once. It holds a connection from the call on, until it is ended. */
export interface EventReader extends AsyncIterableIterator<ChatEvent> {
  /** Resolves when the position is taken: what is published from then on will be read. Also resolves at the end. */
  readonly ready: Promise<void>
  /** Ends the reader and its connection, whether or not it was ever iterated. A `next` that waits gets `done`. */
  return(): Promise<IteratorResult<ChatEvent>>
}

type Entry = [id: string, fields: string[]]

interface Position {
  readonly after: string
  /** The highest claim token seen. */
  readonly claimToken: number
}

const BATCH = 500
const BLOCK_MS = 5_000
const START = '0-0'
const GREATEST_PART = 2n ** 64n - 1n

/**
 * Reads a chat's live events from any process, until it is ended; it waits while Redis is away and goes on where it was.
 * Events of a run that was overtaken (a claim token lower than one seen before), and entries that can't be read, are left
 * out. `connect` must give a connection of its own, which is disconnected at the end; another is asked for when one is
 * lost for good.
 * @throws {ArgumentError} at once when `after` is not an event's id.
 */
export function readEvents(connect: () => Redis | Cluster, options: ReadEventsOptions): EventReader {
  const { prefix, chatId, after, signal, blockMs = BLOCK_MS, onError = () => {} } = options
  if (after !== undefined && !isEventId(after)) {
    throw new ArgumentError(`after must be an event's id or '0', not ${JSON.stringify(after)}`, { chatId })
  }
  if (signal?.aborted) return readerOf(nothing(), Promise.resolve(), () => {})

  const connection = blockingConnection(connect, { silenceMs: 2 * blockMs + 1_000, onError })
  const end = () => {
    signal?.removeEventListener('abort', end)
    connection.end()
  }
  signal?.addEventListener('abort', end)
  const key = streamKey(prefix, chatId)
  // Asked for now, not at the first `next`: what happens between the two is part of what is read.
  const position = after === undefined ? lastOf(connection, key, chatId) : Promise.resolve({ after, claimToken: 0 })
  const events = follow(connection, { key, chatId, blockMs, position })
  return readerOf(
    events,
    position.then(() => {}),
    end,
  )
}

/** The end of the stream, or null when the connection was ended before it was known. */
async function lastOf(connection: BlockingConnection, key: string, chatId: string): Promise<Position | null> {
  const newest = await connection.ask((client) => client.xrevrange(key, '+', '-', 'COUNT', 1))
  if (newest === ended) return null
  const [entry] = newest
  if (!entry) return { after: START, claimToken: 0 }
  const [id, fields] = entry
  return { after: id, claimToken: readEntry(chatId, id, fields)?.claimToken ?? 0 }
}

interface Following {
  readonly key: string
  readonly chatId: string
  readonly blockMs: number
  readonly position: Promise<Position | null>
}

async function* follow(
  connection: BlockingConnection,
  { key, chatId, blockMs, position }: Following,
): AsyncGenerator<ChatEvent, void> {
  const start = await position
  if (start === null) return
  let { after, claimToken } = start
  for (;;) {
    const from = after
    const reply = await connection.ask((client) => client.xread('COUNT', BATCH, 'BLOCK', blockMs, 'STREAMS', key, from))
    if (reply === ended) return
    for (const [id, fields] of entriesOf(reply)) {
      after = id
      const event = readEntry(chatId, id, fields)
      // 0 is from outside any run: it is neither overtaken nor overtakes.
      if (event === null || (event.claimToken > 0 && event.claimToken < claimToken)) continue
      claimToken = Math.max(claimToken, event.claimToken)
      if (connection.ended) return
      yield event
    }
  }
}

function entriesOf(reply: [key: string, entries: Entry[]][] | null): Entry[] {
  return reply?.[0]?.[1] ?? []
}

async function* nothing(): AsyncGenerator<ChatEvent, void> {}

function readerOf(events: AsyncGenerator<ChatEvent, void>, ready: Promise<void>, end: () => void): EventReader {
  return {
    ready,
    next: () => events.next(),
    // The generator's own return would wait behind a `next` that waits for Redis, so the connection ends first.
    return() {
      end()
      return events.return()
    },
    throw(error) {
      end()
      return events.throw(error)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function isEventId(text: string): boolean {
  return /^\d{1,20}(-\d{1,20})?$/.test(text) && text.split('-').every((part) => BigInt(part) <= GREATEST_PART)
}
