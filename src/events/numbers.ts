import type { Delta } from './waiting.ts'

/** Counts what runs send, so that readers see where something is missing. */
export interface EntryNumbers {
  /** The number of a run's next entry, from 1. Null from outside any run, and for a run that was overtaken here. */
  next(chatId: string, claimToken: number): number | null
  /** True when a run's stream should be told again how long to live: with its first entry, then once in a while. */
  renews(chatId: string): boolean
  /** True for the first delta of a message and kind. */
  startsDeltas(chatId: string, delta: Delta): boolean
}

interface Count {
  readonly claimToken: number
  last: number
  /** When the stream was last told how long to live, by `performance.now()`. */
  renewedAt: number
  /** The message and kind of the last delta. */
  deltas: string
}

/** More chats than one process runs at once: who is forgotten would begin with 1 again, and its viewers join anew. */
const MOST_CHATS = 20_000

/** Far less than a stream lives. */
const RENEW_MS = 30_000

export function entryNumbers(): EntryNumbers {
  const counts = new Map<string, Count>()
  return {
    next(chatId, claimToken) {
      const known = counts.get(chatId)
      if (claimToken === 0 || claimToken < (known?.claimToken ?? 0)) return null
      const count =
        known?.claimToken === claimToken
          ? known
          : { claimToken, last: 0, renewedAt: Number.NEGATIVE_INFINITY, deltas: '' }
      count.last++
      // The one that was used last is forgotten last.
      counts.delete(chatId)
      counts.set(chatId, count)
      for (const oldest of counts.keys()) {
        if (counts.size <= MOST_CHATS) break
        counts.delete(oldest)
      }
      return count.last
    },
    renews(chatId) {
      const count = counts.get(chatId)
      if (count === undefined) return true
      const now = performance.now()
      if (now - count.renewedAt < RENEW_MS) return false
      count.renewedAt = now
      return true
    },
    startsDeltas(chatId, { type, messageId }) {
      const count = counts.get(chatId)
      const deltas = `${type} ${messageId}`
      if (count === undefined || count.deltas === deltas) return false
      count.deltas = deltas
      return true
    },
  }
}
