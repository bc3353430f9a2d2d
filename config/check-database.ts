import { randomUUID } from 'node:crypto'
import { QueryTypes, type Sequelize, type Transaction } from 'sequelize'
import { ConfigurationError, UnreachableError } from '../src/errors.ts'

/**
 * Tries the database out: that it answers, that it counts the rows that an UPDATE matched, not only those that it changed, and
 * that SYSDATE() is the time at which it is asked for, not that of the statement's begin; claims rest on both. Throws UnreachableError or ConfigurationError. Works on any Sequelize, one that the
 * application made included.
 */
export async function checkDatabase(sequelize: Sequelize): Promise<void> {
  try {
    await sequelize.query('SELECT 1', { type: QueryTypes.SELECT, useMaster: true })
  } catch (error) {
    throw new UnreachableError(
      `The database at ${place(sequelize)} does not answer (${reason(error)}): ${advice(sequelize)}`,
      {
        cause: error,
      },
    )
  }
  if (sequelize.getDialect() === 'sqlite') return
  if (!(await countsMatchedRows(sequelize))) {
    throw new ConfigurationError(
      "The database connection counts changed rows instead of matched ones: open it with dialectOptions: { flags: ['FOUND_ROWS'] }",
    )
  }
  if (await standsStill(sequelize)) {
    throw new ConfigurationError(
      `SYSDATE() stands still during a statement at ${place(sequelize)}, so a claim that lapses while its statement waits would count: start the server without --sysdate-is-now`,
    )
  }
}

/** Whether SYSDATE() is NOW(): the server can be told so when it starts, and has no variable that says it. */
async function standsStill(sequelize: Sequelize): Promise<boolean> {
  const sql = 'SELECT SLEEP(0.002) AS slept, NOW(6) < SYSDATE(6) AS moves'
  const [row] = await sequelize.query<{ moves: unknown }>(sql, { type: QueryTypes.SELECT, useMaster: true })
  return Number(row?.moves) !== 1
}

function place(sequelize: Sequelize): string {
  if (sequelize.getDialect() === 'sqlite')
    return String((sequelize as unknown as { options: { storage?: string } }).options.storage)
  const { host, port, database } = sequelize.config
  return `${host ?? 'localhost'}:${port}/${database}`
}

function reason(error: unknown): string {
  const parent = error instanceof Error && 'parent' in error ? error.parent : undefined
  const inner = parent instanceof Error ? parent : error
  if (!(inner instanceof Error)) return String(inner)
  const code = 'code' in inner ? String(inner.code) : inner.name
  return inner.message === '' || inner.message.includes(code) ? inner.message || code : `${code}: ${inner.message}`
}

function advice(sequelize: Sequelize): string {
  if (sequelize.getDialect() === 'sqlite') return 'check that the directory exists and can be written to'
  return 'check that the server runs, and the host, port, user, password and database name in DATABASE_URL'
}

/** Tries it on a table that only this connection sees and that goes away with it. */
async function countsMatchedRows(sequelize: Sequelize): Promise<boolean> {
  return sequelize.transaction(async (transaction) => {
    const table = `threadmill_check_${randomUUID().replaceAll('-', '')}`
    try {
      await sequelize.query(`CREATE TEMPORARY TABLE ${table} (v INT)`, { transaction })
    } catch {
      // Some users and some replicated servers may not have temporary tables: then what the driver asked for has to do.
      return asksForMatchedRows(transaction)
    }
    await sequelize.query(`INSERT INTO ${table} VALUES (1)`, { transaction })
    const [, matched] = await sequelize.query(`UPDATE ${table} SET v = 1`, { type: QueryTypes.UPDATE, transaction })
    await sequelize.query(`DROP TEMPORARY TABLE ${table}`, { transaction })
    return matched === 1
  })
}

const FOUND_ROWS = 2

function asksForMatchedRows(transaction: Transaction): boolean {
  const { connection } = transaction as unknown as { connection: { config?: { clientFlags?: number } } }
  return ((connection.config?.clientFlags ?? 0) & FOUND_ROWS) !== 0
}
