import { QueryTypes, type Sequelize, type Transaction } from 'sequelize'
import type { UmzugStorage } from 'umzug'
import { ArgumentError, ConfigurationError, NotMigratedError } from '../src/errors.ts'
import { tableNames } from './database.ts'
import { dialectOf } from './dialect.ts'
import { type Migration, migrations } from './migrations/index.ts'
import { resuming } from './migrations/resume.ts'
import { withSchemaLock } from './schema-lock.ts'

/** How far `migrate` goes, and what it tells. */
export interface MigrateOptions {
  /** The last step to apply. Default: all. */
  readonly to?: string | undefined
  /** Only say what would be applied; nothing is changed. Default false. */
  readonly dryRun?: boolean | undefined
  /** Told of each step once it is applied. */
  readonly onMigrated?: ((name: string) => void) | undefined
}

/** A step of the schema; `appliedAt` is null until it is applied whole. */
export interface MigrationStatus {
  readonly name: string
  readonly appliedAt: Date | null
}

/**
 * Brings the tables up to date; safe when several processes do it at once, and after one that was cut off. Returns the
 * names of the steps that were applied, or with `dryRun` would be, in order: an empty list when there was nothing to do.
 * @throws {ArgumentError} when `to` is no step.
 * @throws {ConfigurationError} when a step fails, or another process has been migrating for over a minute.
 */
export async function migrate(
  sequelize: Sequelize,
  tablePrefix: string,
  { to, dryRun = false, onMigrated }: MigrateOptions = {},
): Promise<string[]> {
  const wanted = stepsUpTo(to).map((step) => step.name)
  if (dryRun) return missingOf(await migrationStatus(sequelize, tablePrefix), wanted)
  return withSchemaLock(sequelize, tablePrefix, async (transaction) => {
    const umzug = await umzugOf(sequelize, tablePrefix, transaction)
    if (onMigrated) umzug.on('migrated', ({ name }) => onMigrated(name))
    const applied = (await umzug.executed()).map((step) => step.name)
    const names = wanted.filter((name) => !applied.includes(name))
    try {
      await umzug.up({ migrations: names })
    } catch (error) {
      throw await stepFailed(error)
    }
    return names
  })
}

/**
 * Every step of the schema in order, then steps that the database has and this release does not know. Changes nothing,
 * and works on a database without tables.
 */
export async function migrationStatus(sequelize: Sequelize, tablePrefix: string): Promise<MigrationStatus[]> {
  const rows = await readLog(sequelize, tablePrefix, null).catch((error: Error) => {
    if (/no such table|doesn't exist/i.test(error.message)) return []
    throw error
  })
  const times = new Map(rows.map((row) => [row.name, row.appliedAt]))
  const known = migrations.map(({ name }) => ({ name, appliedAt: times.get(name) ?? null }))
  const unknown = rows.filter((row) => !migrations.some((step) => step.name === row.name))
  return [...known, ...unknown]
}

/** The names of the steps that this version knows, in their order. */
export const migrationSteps: readonly string[] = migrations.map(({ name }) => name)

/** @throws {NotMigratedError} naming the steps that the database lacks. */
export async function requireMigrated(sequelize: Sequelize, tablePrefix: string): Promise<void> {
  const names = migrations.map((step) => step.name)
  const missing = missingOf(await migrationStatus(sequelize, tablePrefix), names)
  if (missing.length === 0) return
  throw new NotMigratedError(
    `The database lacks the schema steps ${missing.join(', ')} (tables with the prefix "${tablePrefix}"). ` +
      'Run the migrations first, or connect with `migrate: true`.',
  )
}

function missingOf(status: readonly MigrationStatus[], wanted: readonly string[]): string[] {
  const applied = new Set(status.filter((step) => step.appliedAt !== null).map((step) => step.name))
  return wanted.filter((name) => !applied.has(name))
}

function stepsUpTo(to: string | undefined): readonly Migration[] {
  if (to === undefined) return migrations
  const at = migrations.findIndex((step) => step.name === to)
  if (at >= 0) return migrations.slice(0, at + 1)
  const names = migrations.map((step) => step.name).join(', ')
  throw new ArgumentError(`There is no schema step ${JSON.stringify(to)}: name one of ${names}.`)
}

async function stepFailed(error: unknown): Promise<unknown> {
  const { MigrationError } = await import('./umzug.ts')
  if (!(error instanceof MigrationError)) return error
  const { cause } = error
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new ConfigurationError(
    `The schema step ${error.info.name} failed (${reason}). Put right what it says and migrate again: the step goes on from there.`,
    { cause },
  )
}

/** The steps with their log. A step is written down before it begins: one without an end was cut off. */
async function umzugOf(sequelize: Sequelize, tablePrefix: string, transaction: Transaction) {
  const queryInterface = sequelize.getQueryInterface()
  const tables = tableNames(tablePrefix)
  const log = `${tablePrefix}migrations`
  const { now } = dialectOf(sequelize.getDialect())
  const run = (sql: string, bind: Record<string, string> = {}) => sequelize.query(sql, { bind, transaction })
  const begun = new Set<string>()
  const storage: UmzugStorage = {
    executed: async () => {
      await run(
        `CREATE TABLE IF NOT EXISTS ${log} (name VARCHAR(190) NOT NULL PRIMARY KEY, started_at DATETIME(3) NOT NULL, ` +
          'applied_at DATETIME(3) NULL)',
      )
      const rows = await readLog(sequelize, tablePrefix, transaction)
      for (const row of rows) begun.add(row.name)
      return rows.filter((row) => row.appliedAt !== null).map((row) => row.name)
    },
    logMigration: async ({ name }) => {
      await run(`UPDATE ${log} SET applied_at = ${now} WHERE name = $name`, { name })
    },
    // Steps only go forward, so nothing is ever taken off the list.
    unlogMigration: async () => {},
  }
  const stepOf = ({ name, up }: Migration) => ({
    name,
    up: async () => {
      const again = begun.has(name)
      if (!again) await run(`INSERT INTO ${log} (name, started_at) VALUES ($name, ${now})`, { name })
      await up({ queryInterface: again ? resuming(queryInterface) : queryInterface, tables, transaction })
    },
  })
  const { Umzug } = await import('./umzug.ts')
  return new Umzug({ migrations: migrations.map(stepOf), storage, logger: undefined })
}

async function readLog(sequelize: Sequelize, tablePrefix: string, transaction: Transaction | null) {
  const { readTime } = dialectOf(sequelize.getDialect())
  const rows = await sequelize.query<{ name: string; appliedAt: unknown }>(
    `SELECT name, applied_at AS appliedAt FROM ${tablePrefix}migrations ORDER BY name`,
    { type: QueryTypes.SELECT, transaction, useMaster: true },
  )
  return rows.map(({ name, appliedAt }) => ({ name, appliedAt: appliedAt === null ? null : readTime(appliedAt) }))
}
