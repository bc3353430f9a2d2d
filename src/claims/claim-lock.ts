import { ExecutionError, type Lock, Redlock, ResourceLockedError } from 'redlock'
import type { RedisClient } from '../../config/redis-clients.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { Observe } from '../observability/observation.ts'

/** The cheap half of a claim: keeps processes that can see Redis from racing to the database. It decides nothing. */
export interface ClaimLock {
  /** False = another process holds the lock. True = it is held, or Redis can't say and the database decides alone. */
  acquire(chatId: string, claimId: string): Promise<boolean>
  /**
   * Moves the lock forward, or takes it again where Redis forgot it. `leftMs`: what is left of the claim, which the lock of a
   * dead process must not outlive.
   */
  renew(claimId: string, leftMs: number): void
  release(claimId: string): Promise<void>
}

interface Options {
  readonly prefix: string
  readonly ttlMs: number
  readonly db: number
  readonly observe: Observe
}

interface Held {
  readonly key: string
  readonly chatId: string
  lock: Lock | null
}

export function claimLock(client: RedisClient, { prefix, ttlMs, db, observe }: Options): ClaimLock {
  const redlock = new Redlock([client], { retryCount: 0, driftFactor: 0, db })
  // Every failure comes out of the call that it belongs to as well.
  redlock.on('error', () => {})
  const held = new Map<string, Held>()

  async function tryAcquire(
    { key, chatId }: Pick<Held, 'key' | 'chatId'>,
    forMs: number,
  ): Promise<Lock | 'contended' | 'unreachable'> {
    try {
      return await redlock.acquire([key], forMs)
    } catch (error) {
      if (await isContended(error)) return 'contended'
      observe({ type: 'lock.missing', chatId, error: errorFacts(error) })
      return 'unreachable'
    }
  }

  async function move(entry: Held, forMs: number): Promise<void> {
    // Redlock moves no lock that has lapsed, as it does while a tool blocks the process; by then anyone may take it.
    if (entry.lock !== null && entry.lock.expiration < Date.now()) entry.lock = null
    try {
      entry.lock = (await entry.lock?.extend(forMs)) ?? null
    } catch (error) {
      // Redis that is away may hold the lock still: it has to be given back when the run ends.
      if (error instanceof ExecutionError && !(await isContended(error))) return
      entry.lock = null
    }
    if (entry.lock !== null) return
    const again = await tryAcquire(entry, forMs)
    if (typeof again === 'object') entry.lock = again
  }

  return {
    async acquire(chatId, claimId) {
      const key = `${prefix}:claim:{${chatId}}`
      const lock = await tryAcquire({ key, chatId }, ttlMs)
      if (lock === 'contended') return false
      held.set(claimId, { key, chatId, lock: lock === 'unreachable' ? null : lock })
      return true
    },
    renew(claimId, leftMs) {
      const entry = held.get(claimId)
      // Redis refuses a time of none.
      const forMs = Math.floor(leftMs)
      if (entry === undefined || forMs < 1) return
      void move(entry, forMs).then(() => {
        // Released while it was being moved: give back what was just taken.
        if (!held.has(claimId)) void entry.lock?.release().catch(() => {})
      })
    },
    async release(claimId) {
      const entry = held.get(claimId)
      held.delete(claimId)
      // A lock that is gone, or a Redis that is away, leaves nothing to give back: it lapses.
      await entry?.lock?.release().catch(() => {})
    },
  }
}

async function isContended(error: unknown): Promise<boolean> {
  if (!(error instanceof ExecutionError)) return false
  const attempts = await Promise.all(error.attempts)
  return attempts.some((attempt) =>
    [...attempt.votesAgainst.values()].some((vote) => vote instanceof ResourceLockedError),
  )
}
