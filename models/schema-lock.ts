import { QueryTypes, type Sequelize, Transaction } from 'sequelize'
import { ConfigurationError } from '../src/errors.ts'

const lockSeconds = 60

/**
 * Runs `work` in a transaction while no other process changes the tables with this prefix. SQLite's writing transaction is
 * the lock itself. MySQL commits at each change of the schema, so there the lock is a named one, held by the transaction's
 * connection and gone with it.
 * @throws {ConfigurationError} when another process has held the lock for over a minute.
 */
export function withSchemaLock<T>(
  sequelize: Sequelize,
  tablePrefix: string,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  // Written out, because an application's own SQLite connection may defer the lock, and then lose instead of waiting.
  return sequelize.transaction({ type: Transaction.TYPES.IMMEDIATE }, async (transaction) => {
    if (sequelize.getDialect() === 'sqlite') return work(transaction)
    // Names belong to the whole server and have 64 characters at most.
    const name = `CONCAT('threadmill:', MD5(CONCAT(DATABASE(), '/', $tablePrefix)))`
    const ask = (sql: string, bind: Record<string, unknown>) =>
      sequelize.query<{ got: number | null }>(sql, { bind, type: QueryTypes.SELECT, transaction })
    const [row] = await ask(`SELECT GET_LOCK(${name}, $lockSeconds) AS got`, { tablePrefix, lockSeconds })
    if (Number(row?.got) !== 1) {
      throw new ConfigurationError(
        `Another process has been migrating this database for over ${lockSeconds} s. Wait for it, then start again.`,
      )
    }
    try {
      return await work(transaction)
    } finally {
      await ask(`SELECT RELEASE_LOCK(${name}) AS got`, { tablePrefix })
    }
  })
}
