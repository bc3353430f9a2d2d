import { DataTypes, QueryTypes, type Sequelize, type Transaction } from 'sequelize'
import type { UmzugStorage } from 'umzug'
import { ConfigurationError, NotMigratedError } from '../src/errors.ts'
import { tableNames } from './database.ts'
import { type MigrationContext, migrations } from './migrations/index.ts'

const lockSeconds = 60

/**
 * Brings the tables up to date; safe when several processes do it at once. Returns the names of the steps that were
 * applied, in order: an empty list when there was nothing to do.
 * @throws {ConfigurationError} when another process has been migrating for over a minute.
 */
export async function migrate(sequelize: Sequelize, tablePrefix: string): Promise<string[]> {
  return sequelize.transaction((transaction) =>
    withSchemaLock(sequelize, transaction, tablePrefix, async () => {
      const umzug = await umzugOf(sequelize, transaction, tablePrefix)
      const steps = await umzug.up()
      return steps.map((step) => step.name)
    }),
  )
}

/** @throws {NotMigratedError} naming the steps that the database lacks. */
export async function requireMigrated(sequelize: Sequelize, tablePrefix: string): Promise<void> {
  const applied = await appliedSteps(sequelize, null, tablePrefix).catch((error: Error) => {
    if (/no such table|doesn't exist/i.test(error.message)) return [] as string[]
    throw error
  })
  const missing = migrations.map((step) => step.name).filter((name) => !applied.includes(name))
  if (missing.length === 0) return
  throw new NotMigratedError(
    `The database lacks the schema steps ${missing.join(', ')} (tables with the prefix "${tablePrefix}"). ` +
      'Run the migrations first, or connect with `migrate: true`.',
  )
}

async function umzugOf(sequelize: Sequelize, transaction: Transaction, tablePrefix: string) {
  const queryInterface = sequelize.getQueryInterface()
  const context: MigrationContext = { queryInterface, tables: tableNames(tablePrefix), transaction }
  const table = `${tablePrefix}migrations`
  const storage: UmzugStorage = {
    executed: async () => {
      await queryInterface.createTable(
        table,
        { name: { type: DataTypes.STRING(255), allowNull: false, primaryKey: true } },
        { charset: 'utf8mb4', collate: 'utf8mb4_bin', transaction },
      )
      return appliedSteps(sequelize, transaction, tablePrefix)
    },
    logMigration: async ({ name }: { name: string }) => {
      await queryInterface.bulkInsert(table, [{ name }], { transaction })
    },
    // Steps only go forward, so nothing is ever taken off the list.
    unlogMigration: async () => {},
  }
  const { Umzug } = await import('./umzug.ts')
  return new Umzug({
    migrations: migrations.map((migration) => ({ name: migration.name, up: () => migration.up(context) })),
    storage,
    logger: undefined,
  })
}

async function appliedSteps(sequelize: Sequelize, transaction: Transaction | null, tablePrefix: string) {
  const rows = await sequelize.query<{ name: string }>(`SELECT name FROM ${tablePrefix}migrations`, {
    type: QueryTypes.SELECT,
    transaction,
  })
  return rows.map((row) => row.name)
}

/**
 * One process at a time. SQLite's writing transaction is the lock itself. MySQL commits at each change of the schema,
 * so there the lock is a named one, held by the transaction's connection.
 */
async function withSchemaLock<T>(
  sequelize: Sequelize,
  transaction: Transaction,
  tablePrefix: string,
  work: () => Promise<T>,
): Promise<T> {
  if (sequelize.getDialect() === 'sqlite') return work()
  const options = {
    bind: { name: `${tablePrefix}migrate`, lockSeconds },
    type: QueryTypes.SELECT,
    transaction,
  } as const
  const [row] = await sequelize.query<{ got: number | null }>('SELECT GET_LOCK($name, $lockSeconds) AS got', options)
  if (row?.got !== 1) {
    throw new ConfigurationError(
      `Another process has been migrating this database for over ${lockSeconds} s. Wait for it, then start again.`,
    )
  }
  try {
    return await work()
  } finally {
    await sequelize.query('SELECT RELEASE_LOCK($name)', options)
  }
}
