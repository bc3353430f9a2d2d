import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import { blockingConnection } from './connection.ts'
import { NOWHERE } from './ids.ts'
import { streamKey } from './keys.ts'
import { ended, pause } from './patience.ts'

/** A stream that is read, from a place on that moves with what was read. Null = from its start. */
export interface Watched {
  readonly chatId: string
  readonly position: string | null
}

export type Entries = readonly [id: string, fields: string[]][]

export interface ReadsOptions<Stream extends Watched> {
  readonly prefix: string
  /** For commands that do not block. */
  readonly redis: Redis | Cluster
  /** What to read; asked before each read. */
  readonly watched: () => Iterable<Stream>
  readonly hear: (stream: Stream, entries: Entries) => void
  readonly onError: (error: Error) => void
}

/** Reads on until it is stopped. */
export interface Reads {
  /** Takes what is watched now into account, without waiting for the read that is under way. */
  changed(): void
  stop(): void
}

const BATCH = 500
const POLL_MS = 200
const WAKE_KEY_LIFE_MS = 60_000

/** Waits for all streams in one call, over one connection of its own. */
export function blockingReads<Stream extends Watched>(
  options: ReadsOptions<Stream> & { readonly connect: () => Redis | Cluster; readonly blockMs: number },
): Reads {
  const { prefix, redis, watched, hear, onError, connect, blockMs } = options
  const connection = blockingConnection(connect, { silenceMs: 2 * blockMs + 1_000, onError })
  // An entry in a stream of its own ends a call: unlike CLIENT UNBLOCK it can't come too early, and every Redis allows it.
  const wakeKey = `${prefix}:wake:${randomUUID()}`
  let wokenAt = NOWHERE
  let waking = false

  async function readAll(): Promise<void> {
    for (;;) {
      let asked = new Map<string, Stream>()
      const reply = await connection.ask((client) => {
        asked = new Map([...watched()].map((stream) => [streamKey(prefix, stream.chatId), stream]))
        waking = false
        const keys = [wakeKey, ...asked.keys()]
        const places = [wokenAt, ...[...asked.values()].map(({ position }) => position ?? NOWHERE)]
        return client.xread('COUNT', BATCH, 'BLOCK', blockMs, 'STREAMS', ...keys, ...places)
      })
      if (reply === ended) return
      for (const [key, entries] of reply ?? []) {
        if (key === wakeKey) wokenAt = entries.at(-1)?.[0] ?? wokenAt
        const stream = asked.get(key)
        if (stream !== undefined) hear(stream, entries)
      }
    }
  }

  void readAll()
  return {
    changed() {
      if (waking) return
      waking = true
      const wake = redis.pipeline().xadd(wakeKey, 'MAXLEN', 1, '*', 'w', '').pexpire(wakeKey, WAKE_KEY_LIFE_MS)
      // While it can't be sent, the call ends by itself in time.
      wake.exec().catch(onError)
    },
    stop: () => connection.end(),
  }
}

/** Asks for each stream again and again: one call can't wait for streams in several slots of a cluster. */
export function polledReads<Stream extends Watched>(options: ReadsOptions<Stream>): Reads {
  const { prefix, redis, watched, hear, onError } = options
  const ending = new AbortController()

  async function readOne(stream: Stream): Promise<void> {
    const key = streamKey(prefix, stream.chatId)
    const reply = await redis.xread('COUNT', BATCH, 'STREAMS', key, stream.position ?? NOWHERE)
    if (!ending.signal.aborted) hear(stream, reply?.[0]?.[1] ?? [])
  }

  async function readAll(): Promise<void> {
    for (let failures = 0; ; ) {
      const results = await Promise.allSettled([...watched()].map(readOne))
      const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
      failures = errors.length === 0 ? 0 : failures + 1
      for (const error of errors.slice(0, 1)) onError(error instanceof Error ? error : new Error(String(error)))
      await (failures > 0 ? pause(failures, ending.signal) : wait(POLL_MS, null, { signal: ending.signal }))
    }
  }

  // It ends in no other way.
  readAll().catch(() => {})
  return { changed: () => {}, stop: () => ending.abort() }
}
