import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { QueryTypes, type Sequelize } from 'sequelize'
import { checkDatabase } from '../../../config/check-database.ts'
import { databaseTarget, openTarget } from '../../../config/database.ts'
import type { Settings } from '../../../config/settings.ts'
import { dialectOf } from '../../../models/dialect.ts'
import { migrationStatus, migrationSteps } from '../../../models/migrator.ts'
import { complaintOf } from '../complain.ts'
import type { Clock, DatabaseFacts, Unusable } from './facts.ts'
import { clockOf } from './measure-clock.ts'

/** Looks at the database without changing or creating anything. */
export async function lookAtDatabase(settings: Settings): Promise<DatabaseFacts | Unusable> {
  const target = databaseTarget(settings)
  const isEmbedded = settings.databaseUrl === null
  const place = target.kind === 'sqlite' ? resolve(target.storage) : `${target.host}:${target.port}/${target.database}`
  if (isEmbedded && !settings.embedded) {
    return {
      kind: 'unusable',
      place: 'DATABASE_URL',
      why: 'it is not set, and embedded services are off',
      missing: false,
    }
  }
  // Opening it would make it.
  if (target.kind === 'sqlite' && !existsSync(place)) {
    return { kind: 'unusable', place, why: 'there is no such file', missing: true }
  }
  const sequelize = openTarget(target, { poolMax: 1 })
  try {
    await checkDatabase(sequelize)
    return { ...(await factsOf(sequelize, settings)), place, isEmbedded }
  } catch (error) {
    return { kind: 'unusable', place, why: complaintOf(error).message, missing: false }
  } finally {
    await sequelize.close()
  }
}

async function factsOf(
  sequelize: Sequelize,
  { tablePrefix }: Settings,
): Promise<Omit<DatabaseFacts, 'place' | 'isEmbedded'>> {
  const dialect = sequelize.getDialect() === 'sqlite' ? 'sqlite' : 'mysql'
  const steps = await migrationStatus(sequelize, tablePrefix)
  return {
    kind: 'database',
    dialect,
    clock: await clockIn(sequelize),
    migrations: {
      pending: steps.filter(({ appliedAt }) => appliedAt === null).map(({ name }) => name),
      unknown: steps.filter(({ name }) => !migrationSteps.includes(name)).map(({ name }) => name),
    },
    ...(dialect === 'sqlite' ? await sqliteFacts(sequelize) : await mysqlFacts(sequelize, tablePrefix)),
  }
}

function clockIn(sequelize: Sequelize): Promise<Clock> {
  const { now, readTime } = dialectOf(sequelize.getDialect())
  return clockOf(async () => {
    const [row] = await select(sequelize, `SELECT ${now} AS now`)
    return readTime(row?.now).getTime()
  })
}

async function sqliteFacts(sequelize: Sequelize) {
  const [row] = await select(sequelize, 'SELECT sqlite_version() AS version')
  const tables = await select(sequelize, "SELECT name FROM sqlite_master WHERE type = 'table'")
  return {
    version: `SQLite ${row?.version}`,
    session: {},
    tableCollation: null,
    prefixes: prefixesOf(tables.map(({ name }) => String(name))),
  }
}

const variables = [
  'version',
  'sql_mode',
  'tx_isolation',
  'transaction_isolation',
  'character_set_connection',
  'max_allowed_packet',
]

async function mysqlFacts(sequelize: Sequelize, tablePrefix: string) {
  const names = variables.map((name) => `'${name}'`).join(', ')
  const shown = await select(sequelize, `SHOW SESSION VARIABLES WHERE Variable_name IN (${names})`)
  const session = Object.fromEntries(shown.map((row) => [String(row.Variable_name), String(row.Value)]))
  const tables = await select(
    sequelize,
    'SELECT TABLE_NAME AS name, TABLE_COLLATION AS collation FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()',
  )
  const messages = tables.find(({ name }) => name === `${tablePrefix}messages`)
  return {
    version: session.version ?? 'unknown',
    session,
    tableCollation: messages === undefined ? null : String(messages.collation),
    prefixes: prefixesOf(tables.map(({ name }) => String(name))),
  }
}

/** Every set of tables has both of these. */
function prefixesOf(tables: readonly string[]): string[] {
  return tables
    .filter((name) => name.endsWith('queued_messages'))
    .map((name) => name.slice(0, -'queued_messages'.length))
    .filter((prefix) => tables.includes(`${prefix}tool_calls`))
}

function select(sequelize: Sequelize, sql: string) {
  return sequelize.query<Readonly<Record<string, unknown>>>(sql, { type: QueryTypes.SELECT, useMaster: true })
}
