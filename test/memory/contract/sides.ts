import {
  type Columns,
  chatColumns,
  decisionColumns,
  messageColumns,
  queuedMessageColumns,
  receiptColumns,
  selectList,
  toolCallColumns,
  usageColumns,
} from '../../../models/columns.ts'
import type { Database } from '../../../models/database.ts'
import { readRow } from '../../../models/read-row.ts'
import type { ChatRow } from '../../../models/rows.ts'
import { databaseStatements, memoryStatements } from '../statements.ts'
import { MemoryTables } from '../tables.ts'
import type { Side, Table } from './side.ts'

export function memorySide(ttlMs: number): Side {
  let ms = Date.UTC(2026, 0, 1)
  const tables = new MemoryTables(() => new Date(ms))
  return {
    statements: memoryStatements(tables, ttlMs),
    addChat: async (chat) => tables.addChat(chat),
    async advance(by) {
      ms += by
    },
    now: () => new Date(ms),
    async dump() {
      const chatIds = [...tables.chats.keys()]
      return {
        chats: [...tables.chats.values()],
        messages: chatIds.flatMap((id) => tables.messages(id)),
        toolCalls: chatIds.flatMap((id) => tables.toolCalls(id)),
        queuedMessages: tables.queuedMessages,
        receipts: tables.receipts,
        decisions: tables.decisions,
        usages: tables.usages,
      }
    },
  }
}

/** Its clock can't be moved: every time in its rows is moved the other way. */
export function databaseSide(db: Database, ttlMs: number): Side {
  return {
    statements: databaseStatements(db, ttlMs),
    async addChat(chat) {
      const now = new Date()
      const row = { settings: {}, ...chat, createdAt: now, updatedAt: now }
      await db.insert<ChatRow>(db.tables.chats, chatColumns, [row])
    },
    async advance(ms) {
      for (const [table, columns] of tables(db)) {
        const times = timesOf(columns).map((column) => `${column} = ${earlier(db, column, ms)}`)
        await db.write(`UPDATE ${table} SET ${times.join(', ')}`, {})
      }
    },
    now: () => new Date(),
    async dump() {
      const dumped = await Promise.all(
        tables(db).map(async ([table, columns, name]) => {
          const rows = await db.read(`SELECT ${selectList(columns, 't')} FROM ${table} t`, {})
          return [name, rows.map((raw) => readRow(columns, raw, db.dialect))] as const
        }),
      )
      return Object.fromEntries(dumped) as unknown as Record<Table, object[]>
    },
  }
}

type AnyColumns = Columns<Record<string, unknown>>

function tables({ tables: names }: Database): [string, AnyColumns, Table][] {
  const of = (table: Table, columns: unknown): [string, AnyColumns, Table] => [
    names[table],
    columns as AnyColumns,
    table,
  ]
  return [
    of('chats', chatColumns),
    of('messages', messageColumns),
    of('toolCalls', toolCallColumns),
    of('queuedMessages', queuedMessageColumns),
    of('receipts', receiptColumns),
    of('decisions', decisionColumns),
    of('usages', usageColumns),
  ]
}

function timesOf(columns: AnyColumns): string[] {
  return Object.values(columns).flatMap(([column, kind]) => (kind === 'time' || kind === 'stamp' ? [column] : []))
}

function earlier({ dialect }: Database, column: string, ms: number): string {
  return dialect.name === 'sqlite'
    ? `strftime('%Y-%m-%d %H:%M:%f +00:00', ${column}, '-${ms / 1000} seconds')`
    : `${column} - INTERVAL ${ms * 1000} MICROSECOND`
}
