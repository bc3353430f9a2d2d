import { QueryTypes, type Sequelize, Transaction } from 'sequelize'
import { ArgumentError } from '../src/errors.ts'
import { isOver, outermost } from './transaction.ts'

/** Transactions of the application that were found to read what others committed. */
const fit = new WeakSet<Transaction>()

/**
 * Sees to it that statements of ours can be part of the application's transaction. What they decide rests on rows read
 * after the chat's row is locked, so a snapshot that is older than the lock, as REPEATABLE READ takes it, would make them
 * decide on the past.
 * @param readsCommitted whether sessions read committed data by themselves.
 * @throws {ArgumentError} for a transaction of another Sequelize, one that is over, and one with such a snapshot.
 */
export async function requireJoinable(
  sequelize: Sequelize,
  transaction: Transaction,
  readsCommitted: boolean,
): Promise<void> {
  if (!isOf(sequelize, transaction)) {
    throw new ArgumentError(
      'The transaction is not one of the Sequelize that Threadmill uses: begin it with mill.transaction() or mill.sequelize.transaction(), ' +
        'or give your own Sequelize to connect({ sequelize }).',
    )
  }
  if (isOver(transaction)) {
    throw new ArgumentError(
      'The transaction was committed or rolled back already: await every call that is part of it before it ends.',
    )
  }
  const whole = outermost(transaction)
  if (sequelize.getDialect() === 'sqlite' || fit.has(whole)) return
  const level = levelOf(whole) ?? (readsCommitted ? readCommitted : await sessionLevel(sequelize, transaction))
  if (level !== readCommitted) {
    throw new ArgumentError(
      `The transaction is ${level}, and would decide on rows of the past: begin it with mill.transaction(), ` +
        'or with `isolationLevel: Transaction.ISOLATION_LEVELS.READ_COMMITTED`.',
    )
  }
  fit.add(whole)
}

const readCommitted: string = Transaction.ISOLATION_LEVELS.READ_COMMITTED

function isOf(sequelize: Sequelize, transaction: unknown): boolean {
  return typeof transaction === 'object' && transaction !== null && Reflect.get(transaction, 'sequelize') === sequelize
}

function levelOf(transaction: Transaction): string | undefined {
  return (
    (transaction as unknown as { options?: { isolationLevel?: string | null } }).options?.isolationLevel ?? undefined
  )
}

/** MySQL 8 and MariaDB name the variable differently; one of the two is there. */
async function sessionLevel(sequelize: Sequelize, transaction: Transaction): Promise<string> {
  const rows = await sequelize.query<{ Value: string }>(
    "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')",
    { type: QueryTypes.SELECT, transaction, logging: false },
  )
  return (rows[0]?.Value ?? 'unknown').replace('-', ' ')
}
