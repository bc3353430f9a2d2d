import { DatabaseError, QueryTypes, type Sequelize, type Transaction, UniqueConstraintError } from 'sequelize'
import type { Outcome, SqliteHandle } from '../../config/sqlite-handle.ts'
import { inTransaction, retryConflicts } from '../../config/transaction.ts'
import { type Database, databaseOf } from '../../models/database.ts'
import { tablePrefix } from './sqlite-file.ts'
import { databaseAway } from './times.ts'
import type { WriteLock } from './write-lock.ts'

/** How whoever sends statements waits for each of them, and who sees what they do. */
export interface Sender {
  /** Null = an application's, which never dies. */
  readonly process: Mortal | null
  /** Sends a statement: does it some time later, and resolves when its sender hears what it came to. */
  send<T>(sql: string, effect: () => Promise<T>): Promise<T>
  wait(ms: number): Promise<void>
  random(): number
  /** Called at the first moment of a lone statement that writes, or of a transaction. */
  begins?(): void
  /** Called once what was written is stored, with how many rows its last statement matched. */
  stored?(rows: number): void
}

/** The parts of a real database that sessions share. */
export interface Server {
  readonly writer: SqliteHandle
  readonly reader: SqliteHandle
  readonly lock: WriteLock
  /** The database's clock. */
  now(): Date
  /** Called when something was stored. */
  changed(): void
}

/** A process, whose connections end with it. */
export interface Mortal {
  readonly isDead: boolean
}

/** One transaction; over once it was stored or undone. */
export interface OpenTransaction {
  readonly process: Mortal | null
  isOver: boolean
}

interface How {
  readonly bind?: Readonly<Record<string, unknown>>
  readonly type: string
  readonly transaction?: Transaction | null
  readonly logging?: (sql: string) => void
}

/** The real statements of `models/` for one sender: of Sequelize, only what sends and begins is another. */
export function sessionOf(server: Server, sender: Sender): Database {
  const session = new Session(server, sender)
  const db = databaseOf(session as unknown as Sequelize, tablePrefix)
  const retry = { sleep: (ms: number) => sender.wait(ms), random: () => sender.random() }
  return {
    ...db,
    transaction: (work) => inTransaction(db.sequelize, work, retry),
    retried: (statement, when) => retryConflicts(statement, when === undefined ? retry : { ...retry, when }),
  }
}

class Session {
  readonly options = {}
  readonly #server: Server
  readonly #sender: Sender
  #matched = 0

  constructor(server: Server, sender: Sender) {
    this.#server = server
    this.#sender = sender
  }

  getDialect(): 'sqlite' {
    return 'sqlite'
  }

  async query(sql: string, { bind = {}, type, transaction, logging }: How): Promise<unknown> {
    const open = (transaction ?? null) as unknown as OpenTransaction | null
    const reads = type === QueryTypes.SELECT
    logging?.(sql)
    const outcome = await this.#sender.send(sql, () => {
      if (open !== null) return this.#inTransaction(open, () => this.#execute(this.#server.writer, sql, bind))
      return reads ? this.#read(sql, bind) : this.#writeAlone(sql, bind)
    })
    return reads ? outcome.rows : outcome.changes
  }

  async transaction<T>(work: (transaction: OpenTransaction) => Promise<T>): Promise<T> {
    const open: OpenTransaction = { process: this.#sender.process, isOver: false }
    try {
      await this.#sender.send('BEGIN', () => this.#begin(open))
      const result = await work(open)
      await this.#sender.send('COMMIT', () => this.#inTransaction(open, () => this.#commit(open)))
      return result
    } catch (error) {
      await this.#sender.send('ROLLBACK', async () => this.#undo(open)).catch(() => this.#undo(open))
      throw error
    }
  }

  async #begin(open: OpenTransaction): Promise<void> {
    await this.#server.lock.take(open)
    this.#within(open, () => this.#server.writer.execute('BEGIN IMMEDIATE', []))
    // Sent by a process that did not live to use it.
    if (open.process?.isDead) this.#server.lock.undo(open)
    else this.#sender.begins?.()
  }

  async #inTransaction<T>(open: OpenTransaction, effect: () => T): Promise<T> {
    return this.#within(open, effect)
  }

  #within<T>(open: OpenTransaction, effect: () => T): T {
    // Its connection is gone.
    if (open.isOver) throw databaseAway()
    return effect()
  }

  #commit(open: OpenTransaction): void {
    this.#server.writer.execute('COMMIT', [])
    this.#server.changed()
    this.#sender.stored?.(this.#matched)
    this.#server.lock.giveBack(open)
  }

  #undo(open: OpenTransaction): void {
    if (!open.isOver) this.#server.lock.undo(open)
  }

  async #read(sql: string, bind: object): Promise<Outcome> {
    return this.#execute(this.#server.reader, sql, bind)
  }

  async #writeAlone(sql: string, bind: object): Promise<Outcome> {
    const open: OpenTransaction = { process: this.#sender.process, isOver: false }
    await this.#server.lock.take(open)
    try {
      this.#within(open, () => this.#sender.begins?.())
      const outcome = this.#execute(this.#server.writer, sql, bind)
      this.#server.changed()
      this.#sender.stored?.(outcome.changes)
      return outcome
    } finally {
      this.#server.lock.giveBack(open)
    }
  }

  /** By the database's own clock, which is the world's. */
  #execute(handle: SqliteHandle, sql: string, bind: object): Outcome {
    const timed = sql.replaceAll("'now'", '$worldNow')
    const worldNow = this.#server.now().toISOString().slice(0, 23).replace('T', ' ')
    try {
      const outcome = handle.execute(timed, timed === sql ? bind : { ...bind, worldNow })
      this.#matched = outcome.changes
      return outcome
    } catch (error) {
      throw asSequelizeSays(error as Error)
    }
  }
}

function asSequelizeSays(error: Error): Error {
  const column = /^UNIQUE constraint failed: \S+\.(\w+)$/.exec(error.message)?.[1]
  const parent = Object.assign(error, { sql: '' })
  return column === undefined
    ? new DatabaseError(parent)
    : new UniqueConstraintError({ message: error.message, fields: { [column]: '' }, parent, errors: [] })
}
