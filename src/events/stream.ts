import type { Cluster, Redis } from 'ioredis'
import { readEntry, type StreamEntry } from './entry.ts'
import { streamKey } from './keys.ts'
import { isRunEnd } from './run-end.ts'

/** A place in a stream: at an entry, or just behind it. `start` = before whatever comes first. */
export type Place = 'start' | { readonly id: string; readonly including: boolean }

export interface Page {
  /** The entry at the place itself; null at the start. */
  readonly anchor: StreamEntry | null
  readonly entries: readonly StreamEntry[]
  /** Whether the stream went on when it was read. */
  readonly more: boolean
}

/** What is read of a chat's stream, without waiting for more. */
export interface EventStream {
  newest(chatId: string): Promise<StreamEntry | null>
  /** Some entries from a place on. Null = the place is not in the stream: it was trimmed, or the stream is another one. */
  page(chatId: string, place: Place): Promise<Page | null>
  /** Whether an entry is still there. */
  holds(chatId: string, id: string): Promise<boolean>
  /** Where what is going on began: the latest attempt at an answer, or the latest start or end of a run. Null = nowhere. */
  latestBeginning(chatId: string, claimToken: number): Promise<StreamEntry | null>
}

/** Entries in one answer of Redis. */
const PAGE = 200

/** Reads streams over a connection that others use too: no command here blocks it. */
export function eventStream(redis: Redis | Cluster, prefix: string): EventStream {
  const read = (chatId: string, entries: [id: string, fields: string[]][]) =>
    entries.map(([id, fields]) => readEntry(chatId, id, fields))

  async function backwards(chatId: string, from: string, count: number): Promise<StreamEntry[]> {
    return read(chatId, await redis.xrevrange(streamKey(prefix, chatId), from, '-', 'COUNT', count))
  }

  return {
    async newest(chatId) {
      return (await backwards(chatId, '+', 1))[0] ?? null
    },
    async page(chatId, place) {
      // The entry itself is asked for too: if it is missing, so may be those that came behind it.
      const from = place === 'start' ? '-' : place.id
      const entries = read(chatId, await redis.xrange(streamKey(prefix, chatId), from, '+', 'COUNT', PAGE + 1))
      const more = entries.length > PAGE
      if (place === 'start') return { anchor: null, entries, more }
      const [anchor, ...rest] = entries
      if (anchor === undefined || anchor.id !== place.id) return null
      return { anchor, entries: place.including ? entries : rest, more }
    },
    async holds(chatId, id) {
      return (await redis.xrange(streamKey(prefix, chatId), id, id)).length > 0
    },
    async latestBeginning(chatId, claimToken) {
      let latest: StreamEntry | null = null
      for (let from = '+'; ; ) {
        const entries = await backwards(chatId, from, PAGE)
        for (const entry of entries) {
          if (!isBeginning(entry)) continue
          // An overtaken run can still send; what it sends is not what goes on.
          if (latest === null || entry.claimToken > latest.claimToken) latest = entry
          if (latest.claimToken >= claimToken) return latest
        }
        const oldest = entries.at(-1)
        if (oldest === undefined || entries.length < PAGE) return latest
        from = `(${oldest.id}`
      }
    },
  }
}

function isBeginning({ event }: StreamEntry): boolean {
  return event !== null && (event.type === 'run.started' || event.type === 'message.started' || isRunEnd(event))
}
