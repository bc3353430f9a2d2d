import type { Transaction } from 'sequelize'
import { chatColumns, selectList } from './columns.ts'
import type { Database } from './database.ts'
import { readRow } from './read-row.ts'
import type { ChatRow } from './rows.ts'

// A chat and its sub-chats, their sub-chats, and so on.

/** SQL that names `tree`: the ids of `$chatId` and of all chats below it. */
export function treeOf(db: Database): string {
  const { chats } = db.tables
  return (
    `WITH RECURSIVE tree(id) AS (SELECT s.id FROM ${chats} s WHERE s.id = $chatId ` +
    `UNION ALL SELECT s.id FROM ${chats} s JOIN tree p ON s.parent_id = p.id)`
  )
}

/** All chats below a chat, oldest first. */
export async function readSubChats(db: Database, chatId: string, transaction?: Transaction): Promise<ChatRow[]> {
  const rows = await db.read(
    `${treeOf(db)} SELECT ${selectList(chatColumns, 'c')} FROM ${db.tables.chats} c JOIN tree ON tree.id = c.id ` +
      'WHERE c.id <> $chatId ORDER BY c.created_at, c.id',
    { chatId },
    transaction,
  )
  return rows.map((raw) => readRow(chatColumns, raw, db.dialect))
}

/** The chat below this one that has the call, by either of its ids; null where none has. */
export async function findChatOfCall(db: Database, chatId: string, call: string): Promise<ChatRow | null> {
  const [raw] = await db.read(
    `${treeOf(db)} SELECT ${selectList(chatColumns, 'c')} FROM ${db.tables.toolCalls} t JOIN ${db.tables.chats} c ON c.id = t.chat_id ` +
      'JOIN tree ON tree.id = c.id WHERE (t.id = $call OR t.tool_call_id = $call) AND c.id <> $chatId',
    { chatId, call: call.slice(0, 255) },
  )
  return raw === undefined ? null : readRow(chatColumns, raw, db.dialect)
}
