import type Native from 'libsql'
import { openNative } from './libsql.ts'
import { decodeRow, encodeParameters, encodeText } from './sqlite-values.ts'

/** What a statement did. */
export interface Outcome {
  readonly lastId: number
  readonly changes: number
  readonly rows: Record<string, unknown>[]
}

const CACHED_STATEMENTS = 200
/** Longer texts are values more than statements, and would only push useful ones out. */
const CACHED_SQL_LENGTH = 4_096

const readsOnly = /^\s*(?:SELECT|VALUES|EXPLAIN|PRAGMA)\b/i
const control = /^\s*(?:BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE)\b/i
const outsideTransactions = /^\s*(?:VACUUM|ATTACH|DETACH)\b/i
const nothing: Outcome = { lastId: 0, changes: 0, rows: [] }

type Statement = Native.Statement<unknown[]>

/**
 * One native connection to a file, with its statements. Every call is synchronous and either happens whole or throws;
 * SQLITE_BUSY is thrown at once, and nothing is left behind by it.
 */
export class SqliteHandle {
  readonly #native: Native.Database
  readonly #statements = new Map<string, Statement>()

  /** Opens the file and sets the connection up. Throws SQLITE_BUSY when another process is doing the same. */
  constructor(file: string) {
    this.#native = openNative(file)
    try {
      this.#native.exec('PRAGMA busy_timeout = 0')
      this.#native.exec('PRAGMA journal_mode = WAL')
      this.#native.exec('PRAGMA synchronous = NORMAL')
      this.#native.exec('PRAGMA foreign_keys = ON')
    } catch (error) {
      this.#native.close()
      throw normalized(error)
    }
  }

  /** Whether a transaction is open. */
  get inTransaction(): boolean {
    return this.#native.inTransaction
  }

  /** Executes one statement with its parameters. */
  execute(sql: string, parameters: unknown): Outcome {
    try {
      return this.#execute(encodeText(sql), parameters)
    } catch (error) {
      throw normalized(error)
    }
  }

  close(): void {
    this.#statements.clear()
    this.#native.close()
  }

  #execute(sql: string, parameters: unknown): Outcome {
    if (control.test(sql)) {
      // The engine may have rolled back on its own; to roll back again is no error then.
      if (/^\s*ROLLBACK\s*(?:TRANSACTION\s*)?;?\s*$/i.test(sql) && !this.inTransaction) return nothing
      this.#native.exec(sql)
      return nothing
    }
    if (outsideTransactions.test(sql)) {
      this.#native.exec(sql)
      return nothing
    }
    if (this.inTransaction || readsOnly.test(sql)) return this.#step(sql, parameters)
    return this.#writeAlone(sql, parameters)
  }

  /**
   * A prepared statement that met SQLITE_BUSY is not reset by the driver, and while it is so, later writes on the
   * connection keep the lock and are not committed. So the lock is taken first, by a statement that leaves nothing.
   */
  #writeAlone(sql: string, parameters: unknown): Outcome {
    this.#native.exec('BEGIN IMMEDIATE')
    try {
      const outcome = this.#step(sql, parameters)
      this.#native.exec('COMMIT')
      return outcome
    } catch (error) {
      if (this.inTransaction) this.#native.exec('ROLLBACK')
      throw error
    }
  }

  #step(sql: string, parameters: unknown): Outcome {
    const values = encodeParameters(parameters)
    const statement = this.#prepare(sql)
    try {
      if (statement.reader) {
        const rows = statement.all(values).map((row) => decodeRow(row as Record<string, unknown>))
        return { ...nothing, rows }
      }
      const result = statement.run(values)
      return { lastId: Number(result.lastInsertRowid), changes: result.changes, rows: [] }
    } catch (error) {
      this.#statements.delete(sql)
      throw error
    }
  }

  /** The cache is keyed by the exact text and drops what was not used for longest. */
  #prepare(sql: string): Statement {
    const known = this.#statements.get(sql)
    const statement = known ?? this.#native.prepare(sql).safeIntegers(true)
    if (sql.length > CACHED_SQL_LENGTH) return statement
    this.#statements.delete(sql)
    this.#statements.set(sql, statement)
    if (this.#statements.size > CACHED_STATEMENTS) {
      const oldest = this.#statements.keys().next()
      if (!oldest.done) this.#statements.delete(oldest.value)
    }
    return statement
  }
}

/** Whether an error says that another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY'
}

/** The error with one of the few codes that Sequelize looks for; the driver's are finer, or missing. */
function normalized(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code.startsWith('SQLITE_BUSY') || /database (?:table )?is locked/.test(error.message))
    return coded(error, 'SQLITE_BUSY')
  if (/^(?:UNIQUE|FOREIGN KEY) constraint failed/.test(error.message)) return coded(error, 'SQLITE_CONSTRAINT')
  return error
}

function coded(error: Error, code: string): Error {
  return Object.assign(error, { code })
}
