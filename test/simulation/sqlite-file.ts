import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openTarget } from '../../config/database.ts'
import { SqliteHandle } from '../../config/sqlite-handle.ts'
import {
  type Columns,
  chatColumns,
  messageColumns,
  queuedMessageColumns,
  selectList,
  toolCallColumns,
  usageColumns,
} from '../../models/columns.ts'
import { tableNames } from '../../models/database.ts'
import { dialectOf } from '../../models/dialect.ts'
import { migrate } from '../../models/migrator.ts'
import { readRow } from '../../models/read-row.ts'
import { MemoryTables } from '../memory/tables.ts'

export const tablePrefix = 'threadmill_'
const tables = tableNames(tablePrefix)
const dialect = dialectOf('sqlite')

/** Those that refer to others before them. */
const emptied = [
  ...([tables.decisions, tables.receipts, tables.queuedMessages, tables.toolCalls] as const),
  ...([tables.usages, tables.messages, tables.chats] as const),
]

/** A real database, in a file, for one world after the other: whoever has the write lock writes, all read what is stored. */
export class SqliteFile {
  readonly writer: SqliteHandle
  readonly reader: SqliteHandle
  readonly #directory: string

  private constructor(directory: string, file: string) {
    this.#directory = directory
    this.writer = new SqliteHandle(file)
    this.reader = new SqliteHandle(file)
    this.writer.execute('PRAGMA synchronous = OFF', [])
  }

  /** Close it in the end. */
  static async create(): Promise<SqliteFile> {
    const directory = mkdtempSync(join(tmpdir(), 'threadmill-simulation-'))
    const file = join(directory, 'world.sqlite')
    const sequelize = openTarget({ kind: 'sqlite', storage: file })
    try {
      await migrate(sequelize, tablePrefix)
    } finally {
      await sequelize.close()
    }
    return new SqliteFile(directory, file)
  }

  close(): void {
    this.writer.close()
    this.reader.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** Leaves no row, whatever the last world left. */
  empty(): void {
    this.writer.execute('ROLLBACK', [])
    this.writer.execute('BEGIN IMMEDIATE', [])
    for (const table of emptied) this.writer.execute(`DELETE FROM ${table}`, [])
    this.writer.execute('COMMIT', [])
  }

  addChat(id: string, now: Date): void {
    this.writer.execute(
      `INSERT INTO ${tables.chats} (id, settings, created_at, updated_at) VALUES ($id, '{}', $now, $now)`,
      { id, now: dialect.time(now) },
    )
  }

  /** A copy of what is stored. @param now the database's clock. */
  read(now: () => Date): MemoryTables {
    const copy = new MemoryTables(now)
    for (const chat of this.#rows(tables.chats, chatColumns)) copy.chats.set(chat.id, chat)
    for (const message of this.#rows(tables.messages, messageColumns, 'position')) {
      copy.messages(message.chatId).push(message)
    }
    for (const call of this.#rows(tables.toolCalls, toolCallColumns)) copy.toolCalls(call.chatId).push(call)
    copy.queuedMessages.push(...this.#rows(tables.queuedMessages, queuedMessageColumns, 'position'))
    copy.usages.push(...this.#rows(tables.usages, usageColumns))
    return copy
  }

  /** In the order in which they were inserted, unless another is named. */
  #rows<Row>(table: string, columns: Columns<Row>, order = 'rowid'): Row[] {
    const { rows } = this.reader.execute(`SELECT ${selectList(columns, 't')} FROM ${table} t ORDER BY t.${order}`, [])
    return rows.map((raw) => readRow(columns, raw, dialect))
  }
}
