import { chatColumns, selectList, toolCallColumns } from './columns.ts'
import type { Database } from './database.ts'
import { readRow } from './read-row.ts'
import type { ChatRow, ToolCallRow } from './rows.ts'
import { readToolCall } from './transcript.ts'

/** A call that waits for a decision, with its chat. */
export interface InboxRow {
  readonly call: ToolCallRow
  readonly chat: ChatRow
}

/** Where a page of the inbox begins: behind this call. */
export interface InboxPlace {
  readonly askedAt: Date
  readonly id: string
}

/** Calls that wait for a decision, of all chats or of one owner's, newest first. */
export async function readInbox(
  db: Database,
  options: { readonly owner: string | null; readonly before: InboxPlace | null; readonly limit: number },
): Promise<InboxRow[]> {
  const { owner, before, limit } = options
  const { dialect, tables } = db
  // Hidden from the planner: SQLite would look at every call without a result, rather than at the page.
  const isOpen = "COALESCE(t.result_id, '') = ''"
  const rows = await db.read(
    `SELECT ${selectList(toolCallColumns, 't')}, ${selectList(chatColumns, 'c', 'chat_')} FROM ${tables.toolCalls} t ` +
      `JOIN ${tables.chats} c ON c.id = t.chat_id WHERE t.approval = 'pending' AND ${isOpen} AND t.asked_at IS NOT NULL` +
      (owner === null ? '' : ' AND c.owner = $owner') +
      (before === null ? '' : ' AND (t.asked_at < $at OR (t.asked_at = $at AND t.id < $id))') +
      ` ORDER BY t.asked_at DESC, t.id DESC LIMIT ${Math.trunc(limit)}`,
    {
      ...(owner === null ? {} : { owner }),
      ...(before === null ? {} : { at: dialect.time(before.askedAt), id: before.id }),
    },
  )
  return rows.map((raw) => ({ call: readToolCall(db, raw), chat: readRow(chatColumns, raw, dialect, 'chat_') }))
}
