import { QueryTypes, Sequelize } from 'sequelize'
import { ConfigurationError } from '../src/errors.ts'
import type { DatabaseTarget } from './urls.ts'

type MysqlTarget = DatabaseTarget & { kind: 'mysql' }

/**
 * Sees to it that an application's own Sequelize can be used at all.
 * @throws {ConfigurationError} saying what it must be.
 */
export function requireSequelize(given: unknown): asserts given is Sequelize {
  if (!(given instanceof Sequelize)) {
    throw new ConfigurationError(
      'connect({ sequelize }) takes an instance of sequelize 6, of the same copy of the package that Threadmill has: ' +
        '`npm ls sequelize` shows whether there are several.',
    )
  }
  if (given.getDialect() === 'mysql') return
  throw new ConfigurationError(
    `connect({ sequelize }) takes the dialect 'mysql' (MySQL or MariaDB, by mysql2), not '${given.getDialect()}'. ` +
      'For SQLite give `databaseUrl`, and use mill.sequelize for models and transactions of your own.',
  )
}

const probe = { time: new Date('2024-02-29T12:34:56.789Z'), money: '1.5000000000', words: 'ü👩‍👧' }

/**
 * Tries out what our statements need of the application's connections, and what its options may have changed.
 * @throws {ConfigurationError} with a line for each option to set.
 */
export async function checkSessions(sequelize: Sequelize): Promise<void> {
  const [row = {}] = await sequelize.query<Record<string, unknown>>(
    'SELECT CAST($time AS DATETIME(3)) AS time, CAST($money AS DECIMAL(16,10)) AS money, $words AS words, ' +
      "HEX($words) AS bytes, JSON_EXTRACT('{\"a\":[1]}', '$.a') AS json, " +
      'TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW()) AS ahead, @@SESSION.sql_mode AS mode',
    {
      bind: { ...probe, time: probe.time.toISOString().slice(0, 23).replace('T', ' ') },
      type: QueryTypes.SELECT,
      logging: false,
      useMaster: true,
    },
  )
  const problems: string[] = []
  const isUtc = Number(row.ahead) === 0 && row.time instanceof Date && row.time.getTime() === probe.time.getTime()
  if (!isUtc) problems.push("times are not UTC: set `timezone: '+00:00'`, and no `keepDefaultTimezone` or `typeCast`")
  if (row.money !== probe.money) problems.push('decimals are not texts: set no `decimalNumbers`')
  const bytes = Buffer.from(probe.words).toString('hex').toUpperCase()
  if (row.words !== probe.words || row.bytes !== bytes) {
    problems.push("text is not utf8mb4: set `dialectOptions: { charset: 'utf8mb4' }`")
  }
  if (!Array.isArray(row.json)) problems.push('JSON is not parsed: set no `jsonStrings`')
  if (!/STRICT_(ALL|TRANS)_TABLES|TRADITIONAL/.test(String(row.mode))) {
    problems.push('what does not fit is cut without a word: set `STRICT_TRANS_TABLES` in sql_mode')
  }
  if (problems.length === 0) return
  throw new ConfigurationError(
    `The connections of connect({ sequelize }) can't be used:\n${problems.map((text) => `- ${text}`).join('\n')}`,
  )
}

/**
 * Where the application's Sequelize connects to, for the thread that renews claims, which has connections of its own.
 * @throws {ConfigurationError} when its options don't say so as plain data.
 */
export function targetOf(sequelize: Sequelize): MysqlTarget {
  if (sequelize.hasHook('beforeConnect')) throw underivable('a beforeConnect hook may change where it connects')
  const config = { ...sequelize.config } as Record<string, unknown>
  const options = member(config, 'dialectOptions')
  const given: Record<string, unknown> = {
    host: config.host,
    port: config.port,
    user: config.username,
    password: config.password,
    database: config.database,
    ...writerOf(config),
    ...options,
  }
  for (const name of ['uri', 'stream', 'authPlugins', 'authSwitchHandler'] as const) {
    if (given[name] !== undefined) throw underivable(`dialectOptions.${name} can't be handed to a thread`)
  }
  const { password = '', ssl = false, socketPath } = given
  const text = (value: unknown, name: string): string => {
    if (typeof value === 'string') return value
    throw underivable(`its ${name} is not a text`)
  }
  const target: MysqlTarget = {
    kind: 'mysql',
    host: text(given.host ?? 'localhost', 'host'),
    port: Number(given.port ?? 3306),
    user: text(given.user ?? '', 'user name'),
    password: text(password ?? '', 'password'),
    database: text(given.database, 'database name'),
    ssl: typeof ssl === 'object' && ssl !== null ? ssl : typeof ssl === 'string' ? ssl : ssl === true,
    ...(socketPath === undefined ? {} : { socketPath: text(socketPath, 'socketPath') }),
  }
  try {
    return structuredClone(target)
  } catch (error) {
    throw underivable("its `ssl` holds what can't be copied", error)
  }
}

/** The one that is written to, where reads go elsewhere. */
function writerOf(config: Record<string, unknown>): Record<string, unknown> {
  const write = member(member(config, 'replication'), 'write')
  const { username, ...others } = write
  return { ...others, ...(username === undefined ? {} : { user: username }), ...member(write, 'dialectOptions') }
}

function member(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const found = value[name]
  return typeof found === 'object' && found !== null ? { ...found } : {}
}

function underivable(why: string, cause?: unknown): ConfigurationError {
  return new ConfigurationError(
    `Claims are renewed over connections of their own, which can't be derived from connect({ sequelize }): ${why}. ` +
      'Give `databaseUrl` of the same database beside it.',
    { cause },
  )
}
