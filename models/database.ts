import { type Options, QueryTypes, type Sequelize, type Transaction, type TransactionOptions } from 'sequelize'
import { requireJoinable } from '../config/join-transaction.ts'
import { inTransaction, retryConflicts } from '../config/transaction.ts'
import { bindValue, type Columns, entries } from './columns.ts'
import { type Dialect, dialectOf } from './dialect.ts'
import { requireStorable } from './storable.ts'

export interface Tables {
  readonly chats: string
  readonly messages: string
  readonly toolCalls: string
  readonly queuedMessages: string
  readonly receipts: string
  readonly decisions: string
  readonly models: string
  readonly blobs: string
  readonly usages: string
}

/** SQL for columns that no value is bound for, by the row's place in the list. */
export type Computed<Row> = { readonly [Key in keyof Row]?: (at: number) => string }

type Bind = Readonly<Record<string, string | number | null>>

/** The database as the statements of `models/` use it: bound values only, one driver call each. */
export interface Database {
  readonly sequelize: Sequelize
  readonly dialect: Dialect
  readonly tables: Tables
  /**
   * Writes; returns how many rows matched. `onSent`: told when the statement has got its connection and is about to go, where
   * that can be known.
   * @throws {ArgumentError} for a text that not every database stores as it is. (E108)
   */
  write(sql: string, bind: Bind, transaction?: Transaction, onSent?: () => void): Promise<number>
  /** Reads. */
  read(sql: string, bind: Bind, transaction?: Transaction): Promise<Record<string, unknown>[]>
  /** Inserts rows in one statement, thousands in several; none for an empty list. `computed` gives a column as SQL in place of a value. */
  insert<Row>(
    table: string,
    columns: Columns<Row>,
    rows: readonly Partial<Row>[],
    options?: {
      readonly transaction?: Transaction | undefined
      readonly computed?: Computed<Row>
      readonly unlessTaken?: boolean
    },
  ): Promise<void>
  /**
   * Runs `work` in one transaction, again from its start after a deadlock, a lock timeout or a busy SQLite. Given one of
   * the application's, `work` joins it, once, and whatever fails comes out as it is.
   * @throws {ArgumentError} for one that can't be joined.
   */
  transaction<T>(work: (transaction: Transaction) => Promise<T>, join?: Transaction): Promise<T>
  /** Does one statement outside of any transaction, again after a deadlock, a lock timeout or a busy SQLite, or after what `when` says. */
  retried<T>(statement: () => Promise<T>, when?: (error: unknown) => boolean): Promise<T>
}

/** Most values of one statement. SQLite takes 32,766, MySQL twice as many; Sequelize reads many in the square of their number. */
const MAX_VALUES = 1_000

/** How statements are sent; the default suits a Sequelize that Threadmill opened. */
export interface Manner {
  readonly begin?: TransactionOptions
  readonly logging?: false | ((sql: string) => void)
  /** False: a session may read as of the start of its transaction, so one that is to be joined has to be asked. */
  readonly readsCommitted?: boolean
}

export function tableNames(prefix: string): Tables {
  return {
    chats: `${prefix}chats`,
    messages: `${prefix}messages`,
    toolCalls: `${prefix}tool_calls`,
    queuedMessages: `${prefix}queued_messages`,
    receipts: `${prefix}receipts`,
    decisions: `${prefix}decisions`,
    models: `${prefix}models`,
    blobs: `${prefix}blobs`,
    usages: `${prefix}usages`,
  }
}

export function databaseOf(sequelize: Sequelize, tablePrefix: string, manner: Manner = {}): Database {
  const dialect = dialectOf(sequelize.getDialect())
  const { begin, logging, readsCommitted = true } = manner
  // An application's own retries would repeat one statement of a transaction that is gone; its replicas may lag.
  const common = { retry: { max: 1 }, useMaster: true, ...(logging === undefined ? {} : { logging }) }
  // Sequelize logs a statement just before it goes, but under `benchmark`, when it is back.
  const { benchmark, logging: usual } = (sequelize as unknown as { options: Options }).options
  const told = logging ?? usual
  const telling = (onSent: () => void) => (sql: string) => {
    onSent()
    if (typeof told === 'function') told(sql)
  }
  const write = async (sql: string, bind: Bind, transaction?: Transaction, onSent?: () => void): Promise<number> => {
    requireStorable(bind)
    const tells = onSent === undefined || benchmark === true ? {} : { logging: telling(onSent) }
    const how = { ...common, ...tells, bind, type: QueryTypes.BULKUPDATE, transaction: transaction ?? null }
    return sequelize.query(sql, how) as unknown as Promise<number>
  }
  return {
    sequelize,
    dialect,
    tables: tableNames(tablePrefix),
    write,
    read: (sql, bind, transaction) =>
      sequelize.query(sql, { ...common, bind, type: QueryTypes.SELECT, transaction: transaction ?? null }) as Promise<
        Record<string, unknown>[]
      >,
    insert: async (table, columns, rows, options = {}) => {
      if (rows.length === 0) return
      const computed: Readonly<Record<string, ((at: number) => string) | undefined>> = options.computed ?? {}
      const present = entries(columns).filter(([key]) => key in computed || rows.some((row) => row[key] !== undefined))
      const names = present.map(([, [column]]) => column).join(', ')
      const most = Math.floor(MAX_VALUES / present.length)
      for (let from = 0; from < rows.length; from += most) {
        const bind: Record<string, string | number | null> = {}
        const tuples = rows.slice(from, from + most).map((row, at) => {
          const values = present.map(([key, [, kind]]) => {
            const sql = computed[key]
            if (sql !== undefined) return sql(from + at)
            bind[`${key}${at}`] = bindValue(kind, row[key], dialect, key)
            return `$${key}${at}`
          })
          return `(${values.join(', ')})`
        })
        await write(
          `INSERT INTO ${table} (${names}) VALUES ${tuples.join(', ')}${options.unlessTaken ? dialect.unlessTaken : ''}`,
          bind,
          options.transaction,
        )
      }
    },
    transaction: async (work, join) => {
      if (join === undefined) return inTransaction(sequelize, work, { begin })
      await requireJoinable(sequelize, join, readsCommitted)
      return work(join)
    },
    retried: (statement, when) => retryConflicts(statement, when === undefined ? {} : { when }),
  }
}
