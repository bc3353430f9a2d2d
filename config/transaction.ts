import { setTimeout as wait } from 'node:timers/promises'
import type { Sequelize, Transaction, TransactionOptions } from 'sequelize'
import { driverErrors } from './driver-error.ts'

/** What has become of a transaction, or, inside another one, of what it wrote. */
export type Fate = 'open' | 'committed' | 'rolledBack'

/** The fate of a transaction. One that is nested in others has theirs: it is a savepoint, stored with the outermost. */
export function fateOf(transaction: Transaction): Fate {
  const state = finished(transaction)
  if (state === 'rollback') return 'rolledBack'
  const parent = parentOf(transaction)
  if (parent !== null) return fateOf(parent)
  return state === 'commit' ? 'committed' : 'open'
}

/** Whether nothing can be written in the transaction any more. */
export function isOver(transaction: Transaction): boolean {
  return finished(transaction) !== undefined || fateOf(transaction) !== 'open'
}

/**
 * Runs `effect` once what the transaction wrote is stored, and never after a rollback. The commit waits for it, so it must
 * be quick, and must not throw. Sequelize also runs it when the answer to COMMIT was lost and nobody knows.
 */
export function onceCommitted(transaction: Transaction, effect: () => unknown): void {
  outermost(transaction).afterCommit(async () => {
    if (fateOf(transaction) === 'committed') await effect()
  })
}

/** The transaction that a savepoint is part of; itself for any other. */
export function outermost(transaction: Transaction): Transaction {
  const parent = parentOf(transaction)
  return parent === null ? transaction : outermost(parent)
}

function parentOf(transaction: Transaction): Transaction | null {
  return (transaction as { parent?: Transaction | null }).parent ?? null
}

function finished(transaction: Transaction): 'commit' | 'rollback' | undefined {
  return (transaction as { finished?: 'commit' | 'rollback' }).finished
}

/** How what lost to another transaction is retried. */
export interface RetryOptions {
  /** How often the closure runs at most. Default: 8. */
  readonly attempts?: number
  /** Waits this many ms; a test may pass its own. */
  readonly sleep?: (ms: number) => Promise<unknown>
  /** From 0 to below 1; a test may pass its own. */
  readonly random?: () => number
  /** Which errors are tried again. Default: those of {@link isLockConflict}. */
  readonly when?: (error: unknown) => boolean
}

/** How a transaction is run, and run again. */
export interface RunOptions extends RetryOptions {
  /** How each transaction is begun; default: as Sequelize is set up. */
  readonly begin?: TransactionOptions | undefined
}

const ATTEMPTS = 8
const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 500

const lostToAnother = new Set<unknown>([1213, 1205, 'ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'SQLITE_BUSY'])

/** Whether an error says that the transaction lost to another one and that all of it can be tried again: a deadlock, a lock wait timeout, SQLITE_BUSY. */
export function isLockConflict(error: unknown): boolean {
  return driverErrors(error).some(({ errno, code }) => lostToAnother.has(errno) || lostToAnother.has(code))
}

/**
 * Does what leaves nothing behind when it loses to another transaction, such as one statement outside of any; again after a
 * short pause when it did. Any other error comes out as it is, and so does the last conflict when the attempts are used up.
 */
export async function retryConflicts<Result>(
  work: () => Promise<Result>,
  { attempts = ATTEMPTS, sleep = wait, random = Math.random, when = isLockConflict }: RetryOptions = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt >= attempts || !when(error)) throw error
      await sleep(Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS) * (0.5 + random()))
    }
  }
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
  { begin, ...retry }: RunOptions = {},
): Promise<Result> {
  return retryConflicts(
    () => (begin === undefined ? sequelize.transaction(work) : sequelize.transaction(begin, work)),
    retry,
  )
}
