import type { Json } from './rows.ts'

/** What MariaDB/MySQL and SQLite say differently. Every other statement is the same text on both. */
export interface Dialect {
  readonly name: 'mysql' | 'sqlite'
  /** The database's clock, to the millisecond, in UTC. */
  readonly now: string
  /** The same at the moment at which a row is looked at: where a statement waits for a row's lock, `now` is the time before that wait. */
  readonly nowAtRow: string
  /** The database's clock plus a bound number of ms. */
  nowPlus(bind: string): string
  /** A time as it is bound to a statement. */
  time(value: Date): string
  /** A stored time. */
  readTime(value: unknown): Date
  /** A stored JSON value. */
  readJson(value: unknown): Json
  /** The text at a path of a JSON column. */
  jsonText(column: string, path: string): string
  /** Locks the rows of a SELECT until the transaction ends; nothing where a writing transaction is alone anyway. */
  readonly forUpdate: string
  /** Behind an INSERT: a row whose unique key is taken is left out. */
  readonly unlessTaken: string
}

const mysql: Dialect = {
  name: 'mysql',
  now: 'NOW(3)',
  nowAtRow: 'SYSDATE(3)',
  nowPlus: (bind) => `NOW(3) + INTERVAL (${bind} * 1000) MICROSECOND`,
  time: (value) => value.toISOString().slice(0, 23).replace('T', ' '),
  readTime: (value) => value as Date,
  // The driver has parsed it already; a JSON string must stay a string.
  readJson: (value) => value as Json,
  jsonText: (column, path) => `JSON_UNQUOTE(JSON_EXTRACT(${column}, '${path}'))`,
  forUpdate: ' FOR UPDATE',
  unlessTaken: ' ON DUPLICATE KEY UPDATE id = id',
}

const sqliteNow = "strftime('%Y-%m-%d %H:%M:%f +00:00', 'now')"

const sqlite: Dialect = {
  name: 'sqlite',
  now: sqliteNow,
  // Its statements wait before they begin.
  nowAtRow: sqliteNow,
  nowPlus: (bind) => `strftime('%Y-%m-%d %H:%M:%f +00:00', 'now', (${bind} / 1000.0) || ' seconds')`,
  time: (value) => `${value.toISOString().slice(0, 23).replace('T', ' ')} +00:00`,
  readTime: (value) => new Date(value as string),
  readJson: (value) => JSON.parse(value as string) as Json,
  // A text that is no JSON must not fail the statement for the other rows.
  jsonText: (column, path) => `CASE WHEN json_valid(${column}) THEN JSON_EXTRACT(${column}, '${path}') END`,
  forUpdate: '',
  unlessTaken: ' ON CONFLICT DO NOTHING',
}

export function dialectOf(name: string): Dialect {
  return name === 'sqlite' ? sqlite : mysql
}
