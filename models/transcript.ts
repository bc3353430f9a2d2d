import type { Transaction } from 'sequelize'
import { chatColumns, messageColumns, queuedMessageColumns, readRow, selectList, toolCallColumns } from './columns.ts'
import type { Database } from './database.ts'
import type { ChatRow, QueuedMessageRow, ToolCallRow, TranscriptMessage } from './rows.ts'

/** A chat and what waits beside its transcript, as of one statement. */
export interface ChatLook {
  readonly chat: ChatRow
  /** Whether a process holds the chat, by the database's clock. */
  readonly claimed: boolean
  /** Whether somebody wants it run now, by the database's clock. */
  readonly due: boolean
  readonly queued: { readonly steering: number; readonly total: number }
  /** Usage entries that an earlier, dead run left open. */
  readonly orphanedUsages: number
  /** The answer that the last attempt began and nobody stored: what was shown of it is void. Null where it was stored. */
  readonly draft: string | null
}

/** Null: there is no such chat. In a transaction the chat row is locked until its end. */
export async function lookAtChat(db: Database, chatId: string, transaction?: Transaction): Promise<ChatLook | null> {
  const { chats, queuedMessages, usages } = db.tables
  const [raw] = await db.read(
    `SELECT ${selectList(chatColumns, 'c')}, CASE WHEN c.claimed_until > ${db.dialect.now} THEN 1 ELSE 0 END AS claimed, ` +
      `CASE WHEN c.wanted_at <= ${db.dialect.now} THEN 1 ELSE 0 END AS due, ` +
      `(SELECT COUNT(*) FROM ${queuedMessages} q WHERE q.chat_id = c.id AND q.steer = 1) AS steering, ` +
      `(SELECT COUNT(*) FROM ${queuedMessages} q WHERE q.chat_id = c.id) AS queued, ` +
      `(SELECT COUNT(*) FROM ${usages} u WHERE u.chat_id = c.id AND u.status = 'pending' AND u.claim_token < c.claim_token) AS orphaned, ` +
      `(SELECT CASE WHEN u.message_id IS NULL THEN u.answer_id END FROM ${usages} u WHERE u.chat_id = c.id ORDER BY u.id DESC LIMIT 1) AS draft ` +
      `FROM ${chats} c WHERE c.id = $chatId${transaction ? db.dialect.forUpdate : ''}`,
    { chatId },
    transaction,
  )
  if (raw === undefined) return null
  return {
    chat: readRow(chatColumns, raw, db.dialect),
    claimed: Number(raw.claimed) === 1,
    due: Number(raw.due) === 1,
    queued: { steering: Number(raw.steering), total: Number(raw.queued) },
    orphanedUsages: Number(raw.orphaned),
    draft: raw.draft as string | null,
  }
}

/** The whole transcript in its order, each message with the calls that it requested. */
export async function readTranscript(db: Database, chatId: string): Promise<TranscriptMessage[]> {
  const { messages, toolCalls } = db.tables
  const rows = await db.read(
    `SELECT ${selectList(messageColumns, 'm')}, ${selectList(toolCallColumns, 't', 'call_')} ` +
      `FROM ${messages} m LEFT JOIN ${toolCalls} t ON t.message_id = m.id WHERE m.chat_id = $chatId ORDER BY m.position, t.position`,
    { chatId },
  )
  const transcript: TranscriptMessage[] = []
  for (const raw of rows) {
    const last = transcript.at(-1)
    const calls = raw.call_id === null ? [] : [readToolCall(db, raw, 'call_')]
    if (last !== undefined && last.id === raw.id) last.toolCalls.push(...calls)
    else transcript.push({ ...readRow(messageColumns, raw, db.dialect), toolCalls: calls })
  }
  return transcript
}

/** The calls that one message requested, in the model's order. */
export async function readToolCalls(db: Database, messageId: string): Promise<ToolCallRow[]> {
  const rows = await db.read(
    `SELECT ${selectList(toolCallColumns, 't')} FROM ${db.tables.toolCalls} t WHERE t.message_id = $messageId ORDER BY t.position`,
    { messageId },
  )
  return rows.map((raw) => readToolCall(db, raw))
}

/** The queue, oldest first. */
export async function readQueue(db: Database, chatId: string, transaction?: Transaction): Promise<QueuedMessageRow[]> {
  const rows = await db.read(
    `SELECT ${selectList(queuedMessageColumns, 'q')} FROM ${db.tables.queuedMessages} q WHERE q.chat_id = $chatId ORDER BY q.position`,
    { chatId },
    transaction,
  )
  return rows.map((raw) => readRow(queuedMessageColumns, raw, db.dialect))
}

/** Arguments read as an object whatever is stored. */
export function readToolCall(db: Database, raw: Record<string, unknown>, prefix = ''): ToolCallRow {
  const row = readRow(toolCallColumns, raw, db.dialect, prefix)
  return { ...row, arguments: asObject(row.arguments) }
}

/** Anything that is not a JSON object reads as an empty one. */
export function asObject(value: unknown): ToolCallRow['arguments'] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ToolCallRow['arguments']) : {}
}
