import { isBusy, type Outcome, SqliteHandle } from './sqlite-handle.ts'

/** Sequelize makes an error of its own of it, as it does of SQLite's. */
class ClosedConnection extends Error {
  readonly code = 'SQLITE_MISUSE'

  constructor() {
    super('The SQLite connection is closed')
  }
}

/** How the SQLite dialect behaves. */
export interface SqliteDialectOptions {
  /** How long a statement waits for another connection's lock, in ms, before SQLITE_BUSY comes out. Default: 15000. */
  readonly busyWaitMs?: number
  /** Told of every statement once, before it runs. PRAGMAs, which Sequelize adds to its own selects, are left out. */
  readonly onStatement?: ((sql: string) => void) | undefined
}

/** A stand-in for the `sqlite3` package, to be given to Sequelize as `dialectModule`. */
export interface SqliteDialect {
  readonly OPEN_READONLY: number
  readonly OPEN_READWRITE: number
  readonly OPEN_CREATE: number
  readonly Database: new (filename: string, mode: number, opened?: Callback) => object
  verbose(): SqliteDialect
  /** Closes the native connections that are kept for reuse, now and from here on. Call it after `sequelize.close()`. */
  dispose(): void
}

type Callback = (this: Statement, error: Error | null, rows?: Record<string, unknown>[]) => void

const BUSY_WAIT_MS = 15_000
const LONGEST_PAUSE_MS = 40
/** Sequelize opens a connection for each transaction; opening costs far more than a small transaction does. */
const KEPT_HANDLES = 8

/** What callbacks get as `this`. Sequelize looks at the name of this class. */
class Statement {
  readonly lastID: number
  readonly changes: number
  constructor(outcome?: Outcome) {
    this.lastID = outcome?.lastId ?? 0
    this.changes = outcome?.changes ?? 0
  }
}

/** Native connections of one Sequelize that wait to be used again, by file. */
class HandlePool {
  readonly #idle = new Map<string, SqliteHandle[]>()
  #disposed = false

  take(file: string): SqliteHandle {
    return this.#idle.get(file)?.pop() ?? new SqliteHandle(file)
  }

  giveBack(file: string, handle: SqliteHandle): void {
    const idle = this.#idle.get(file) ?? []
    // A transaction that nobody ended is rolled back by closing.
    if (this.#disposed || handle.inTransaction || idle.length >= KEPT_HANDLES) handle.close()
    else this.#idle.set(file, [...idle, handle])
  }

  dispose(): void {
    this.#disposed = true
    for (const handle of [...this.#idle.values()].flat()) handle.close()
    this.#idle.clear()
  }
}

/**
 * A dialect module for Sequelize 6 over libsql. The driver is synchronous, so a lock is never waited for inside it: that
 * would stop the event loop, and with it the very transaction that holds the lock. Outside of transactions a busy
 * statement is tried again by a timer; inside one SQLITE_BUSY comes out at once, since only the whole can be retried.
 */
export function sqliteDialect({ busyWaitMs = BUSY_WAIT_MS, onStatement }: SqliteDialectOptions = {}): SqliteDialect {
  const pool = new HandlePool()

  class Database {
    /** Sequelize sets this while a transaction holds the connection. */
    uuid: string | undefined
    readonly filename: string
    #handle: SqliteHandle | undefined
    #closed = false

    constructor(filename: string, _mode: number, opened?: Callback) {
      this.filename = filename
      // Sequelize hands the connection out before it is open, so opening is part of whatever is asked for first.
      this.#perform(() => ({ lastId: 0, changes: 0, rows: [] }), opened)
    }

    run(sql: string, parameters?: unknown, callback?: Callback): this {
      return this.#statement(sql, parameters, callback)
    }

    all(sql: string, parameters?: unknown, callback?: Callback): this {
      return this.#statement(sql, parameters, callback)
    }

    serialize(work?: () => void): void {
      work?.()
    }

    close(callback?: Callback): void {
      this.#closed = true
      if (this.#handle) pool.giveBack(this.filename, this.#handle)
      this.#handle = undefined
      answer(callback, null, undefined)
    }

    #statement(sql: string, parameters: unknown, callback: Callback | undefined): this {
      const [values, done] =
        typeof parameters === 'function' ? [undefined, parameters as Callback] : [parameters, callback]
      if (!/^\s*PRAGMA\b/i.test(sql)) onStatement?.(sql)
      this.#perform((handle) => handle.execute(sql, values), done)
      return this
    }

    #perform(work: (handle: SqliteHandle) => Outcome, callback: Callback | undefined): void {
      const deadline = performance.now() + busyWaitMs
      const attempt = (tries: number) => {
        try {
          if (this.#closed) throw new ClosedConnection()
          this.#handle ??= pool.take(this.filename)
          answer(callback, null, work(this.#handle))
        } catch (error) {
          const waits = isBusy(error) && !this.#handle?.inTransaction && performance.now() < deadline
          if (waits) setTimeout(attempt, pauseMs(tries), tries + 1)
          else answer(callback, error as Error, undefined)
        }
      }
      attempt(0)
    }
  }

  const dialect: SqliteDialect = {
    OPEN_READONLY: 1,
    OPEN_READWRITE: 2,
    OPEN_CREATE: 4,
    Database,
    verbose: () => dialect,
    dispose: () => pool.dispose(),
  }
  return dialect
}

/** Jittered, so that writers who met once don't meet again and again. */
function pauseMs(tries: number): number {
  return Math.min(2 + tries * 2, LONGEST_PAUSE_MS) * (0.5 + Math.random())
}

/** By setImmediate: a chain of nextTicks would keep timers from ever firing. */
function answer(callback: Callback | undefined, error: Error | null, outcome: Outcome | undefined): void {
  setImmediate(() => callback?.call(new Statement(outcome), error, outcome?.rows))
}
