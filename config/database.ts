import { join, resolve } from 'node:path'
import { Sequelize, Transaction } from 'sequelize'
import { ConfigurationError } from '../src/errors.ts'
import { prepareMysqlConnection } from './mysql-session.ts'
import { MysqlSilence } from './mysql-silence.ts'
import type { Settings } from './settings.ts'
import { sqliteDialect } from './sqlite-dialect.ts'
import { type DatabaseTarget, parseDatabaseUrl, UrlProblem } from './urls.ts'

/** What a single opened database may do differently. */
export interface DatabaseOptions {
  /** Most connections; default: the setting `databasePool`, or 10. SQLite has no pool and ignores it. */
  readonly poolMax?: number | undefined
  /** How long a connection that is not used is kept, in ms; default: 10 s. SQLite ignores it. */
  readonly poolIdleMs?: number | undefined
  /** Told of the text of each query, with its time when Sequelize measures it. Default: none. */
  readonly logging?: ((sql: string, timingMs?: number) => void) | undefined
  /**
   * Told of every statement before it goes to the driver, BEGIN and COMMIT included. The few that set a connection up are
   * left out, and so are PRAGMAs, so that both databases count alike.
   */
  readonly onStatement?: ((sql: string) => void) | undefined
}

/** The settings that a database is opened by. */
export type DatabaseSettings = Pick<Settings, 'databaseUrl' | 'dataDir' | 'databasePool'>

const ACQUIRE_MS = 10_000
const IDLE_MS = 10_000
const CONNECT_MS = 5_000
const DEFAULT_POOL = 10
/** The driver keeps this many prepared statements a connection; its own default would exhaust the server's limit. */
const PREPARED_STATEMENTS = 256

/** Sequelize's own retry would repeat one statement of a transaction that is already gone. */
const retry = { max: 1 }

/** The URL of the SQLite file that is used when no database is named. */
export function embeddedDatabaseUrl(dataDir: string): string {
  return `sqlite:${encodeURI(join(dataDir, 'threadmill.sqlite')).replaceAll('?', '%3F').replaceAll('#', '%23')}`
}

/**
 * A Sequelize for the database that the settings name, or for a SQLite file in the data directory. Nothing is connected
 * yet: {@link checkDatabase} does that. Close it with `sequelize.close()`. Throws ConfigurationError for a bad URL.
 */
export function openDatabase(settings: DatabaseSettings, options: DatabaseOptions = {}): Sequelize {
  return openTarget(databaseTarget(settings), { poolMax: settings.databasePool, ...options })
}

/** The database that the settings name. Throws ConfigurationError for a bad URL. */
export function databaseTarget(settings: Omit<DatabaseSettings, 'databasePool'>): DatabaseTarget {
  const target = parseDatabaseUrl(settings.databaseUrl ?? embeddedDatabaseUrl(settings.dataDir))
  if (target instanceof UrlProblem) throw new ConfigurationError(`DATABASE_URL ${target.reason}`)
  return target
}

/** A Sequelize for a database, as {@link openDatabase} makes it. */
export function openTarget(target: DatabaseTarget, options: DatabaseOptions = {}): Sequelize {
  return target.kind === 'sqlite' ? openSqlite(target.storage, options) : openMysql(target, options)
}

function openMysql(target: DatabaseTarget & { kind: 'mysql' }, options: DatabaseOptions): Sequelize {
  const sequelize = new Sequelize({
    dialect: 'mysql',
    host: target.host,
    port: target.port,
    username: target.user,
    password: target.password,
    database: target.database,
    timezone: '+00:00',
    logging: options.logging ?? false,
    define: { charset: 'utf8mb4' },
    retry,
    pool: { max: options.poolMax ?? DEFAULT_POOL, acquire: ACQUIRE_MS, idle: options.poolIdleMs ?? IDLE_MS },
    dialectOptions: {
      charset: 'utf8mb4',
      // Affected rows are then those that matched: a renewal that changes nothing still counts.
      flags: ['FOUND_ROWS'],
      supportBigNumbers: true,
      // The driver's own casts. Sequelize's take the driver's slow path: an object for each value of each row.
      typeCast: true,
      decimalNumbers: false,
      connectTimeout: CONNECT_MS,
      maxPreparedStatements: PREPARED_STATEMENTS,
      ...(target.ssl === false ? {} : { ssl: target.ssl === true ? {} : target.ssl }),
      ...(target.socketPath === undefined ? {} : { socketPath: target.socketPath }),
    },
  })
  const silence = new MysqlSilence(target)
  sequelize.addHook('afterConnect', async (connection) => {
    await silence.watch(connection)
    await prepareMysqlConnection(connection, options.onStatement)
  })
  const close = sequelize.close.bind(sequelize)
  sequelize.close = async () => {
    silence.close()
    await close()
  }
  return sequelize
}

/** The parts of Sequelize's SQLite connection manager that need to be put right; it doesn't type them. */
interface SqliteConnectionManager {
  _refreshTypeParser(type: { types: { sqlite: string[] }; parse(value: unknown): unknown }): void
  releaseConnection(connection: unknown): void
  destroyConnection(connection: unknown): Promise<void>
}

function openSqlite(storage: string, options: DatabaseOptions): Sequelize {
  const dialect = sqliteDialect({ onStatement: options.onStatement })
  const sequelize = new Sequelize({
    dialect: 'sqlite',
    dialectModule: dialect,
    storage: resolve(storage),
    // A transaction that reads first and writes later would fail instead of waiting.
    transactionType: Transaction.TYPES.IMMEDIATE,
    logging: options.logging ?? false,
    retry,
    // The dialect does it for every connection, this would do it once more.
    ...{ foreignKeys: false },
  })
  const manager = sequelize.connectionManager as unknown as SqliteConnectionManager
  manager._refreshTypeParser({ types: { sqlite: ['DECIMAL'] }, parse: decimalText })
  // The inherited one asks a pool that SQLite's connections are not in, and would leave the connection and its lock.
  manager.destroyConnection = async (connection) => manager.releaseConnection(connection)
  const close = sequelize.close.bind(sequelize)
  sequelize.close = async () => {
    await close()
    dialect.dispose()
  }
  return sequelize
}

/**
 * A decimal as plain text, as MySQL gives it. SQLite keeps decimals as floats, of which 15 digits are exact; more would
 * show the error of the conversion.
 */
function decimalText(value: unknown): unknown {
  if (typeof value !== 'number' || !Number.isFinite(value)) return value
  const [mantissa = '', exponent = '0'] = value.toExponential(14).split('e')
  const sign = mantissa.startsWith('-') ? '-' : ''
  const digits = mantissa.replace(/[-.]/g, '')
  const point = Number(exponent) + 1
  const padded = point <= 0 ? `${'0'.repeat(1 - point)}${digits}` : digits.padEnd(point, '0')
  const split = Math.max(point, 1)
  const fraction = padded.slice(split).replace(/0+$/, '')
  return `${sign}${padded.slice(0, split)}${fraction === '' ? '' : `.${fraction}`}`
}
