import { setTimeout as wait } from 'node:timers/promises'
import type { Sequelize, Transaction } from 'sequelize'

/** How a transaction is retried. */
export interface RetryOptions {
  /** How often the closure runs at most. Default: 8. */
  readonly attempts?: number
  /** Waits this many ms; a test may pass its own. */
  readonly sleep?: (ms: number) => Promise<unknown>
  /** From 0 to below 1; a test may pass its own. */
  readonly random?: () => number
}

const ATTEMPTS = 8
const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 500

const lostToAnother = new Set<unknown>([1213, 1205, 'ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'SQLITE_BUSY'])

/** Whether an error says that the transaction lost to another one and that all of it can be tried again: a deadlock, a lock wait timeout, SQLITE_BUSY. */
export function isLockConflict(error: unknown): boolean {
  // Sequelize wraps the driver's error, some errors more than once.
  for (let depth = 0, inner = error; depth < 4 && inner instanceof Error; depth++) {
    const { errno, code, parent } = inner as { errno?: unknown; code?: unknown; parent?: unknown }
    if (lostToAnother.has(errno) || lostToAnother.has(code)) return true
    inner = parent as Error
  }
  return false
}

/**
 * Runs the closure in a transaction and commits it; resolves to what the closure resolved to. When the transaction
 * loses to another one, it is rolled back and the whole closure runs again after a short pause, so whatever the closure
 * does beside the database happens again too, and ids must be made outside of it. Any other error rolls back and comes
 * out as it is, and so does the last conflict when the attempts are used up.
 */
export async function inTransaction<Result>(
  sequelize: Sequelize,
  work: (transaction: Transaction) => Promise<Result>,
  { attempts = ATTEMPTS, sleep = wait, random = Math.random }: RetryOptions = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await sequelize.transaction(work)
    } catch (error) {
      if (attempt >= attempts || !isLockConflict(error)) throw error
      await sleep(Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS) * (0.5 + random()))
    }
  }
}
