import type { Transaction } from 'sequelize'
import { chatColumns, messageColumns, queuedMessageColumns, selectList, toolCallColumns } from './columns.ts'
import { damageOf, withDamage } from './damage.ts'
import type { Database } from './database.ts'
import { readRow } from './read-row.ts'
import type { ChatRow, QueuedMessageRow, ToolCallRow, TranscriptMessage } from './rows.ts'

/** A chat and what waits beside its transcript, as of one statement. */
export interface ChatLook {
  readonly chat: ChatRow
  /** Whether a process holds the chat, by the database's clock. */
  readonly claimed: boolean
  /** Whether somebody wants it run now, by the database's clock. */
  readonly due: boolean
  /** How long it has been due, in ms, by the database's clock; negative when it is due later, null when nobody wants it. */
  readonly dueForMs: number | null
  readonly queued: { readonly steering: number; readonly total: number }
  /** Usage entries that an earlier, dead run left open. */
  readonly orphanedUsages: number
  /** The answer that the last attempt began and nobody stored: what was shown of it is void. Null where it was stored. */
  readonly draft: string | null
  /** Whether a summary is wanted now, by the database's clock. */
  readonly compactDue: boolean
  /** The position up to which the newest summary stands for the transcript; null without one. */
  readonly summaryThrough: number | null
}

/** Null: there is no such chat. In a transaction the chat row is locked until its end. */
export async function lookAtChat(db: Database, chatId: string, transaction?: Transaction): Promise<ChatLook | null> {
  const { chats, messages, queuedMessages, usages } = db.tables
  const [raw] = await db.read(
    `SELECT ${selectList(chatColumns, 'c')}, CASE WHEN c.claimed_until > ${db.dialect.now} THEN 1 ELSE 0 END AS claimed, ` +
      `CASE WHEN c.wanted_at <= ${db.dialect.now} THEN 1 ELSE 0 END AS due, ${db.dialect.now} AS databaseNow, ` +
      `(SELECT COUNT(*) FROM ${queuedMessages} q WHERE q.chat_id = c.id AND q.steer = 1) AS steering, ` +
      `(SELECT COUNT(*) FROM ${queuedMessages} q WHERE q.chat_id = c.id) AS queued, ` +
      `(SELECT COUNT(*) FROM ${usages} u WHERE u.chat_id = c.id AND u.status = 'pending' AND u.claim_token < c.claim_token) AS orphaned, ` +
      `(SELECT CASE WHEN u.message_id IS NULL AND NOT EXISTS (SELECT 1 FROM ${messages} a WHERE a.id = u.answer_id) THEN u.answer_id END FROM ${usages} u WHERE u.chat_id = c.id AND u.operation = 'chat' ORDER BY u.id DESC LIMIT 1) AS draft, ` +
      `CASE WHEN c.compact_at <= ${db.dialect.now} THEN 1 ELSE 0 END AS compactDue, ` +
      `(SELECT MAX(m.summary_through) FROM ${messages} m WHERE m.chat_id = c.id) AS through ` +
      `FROM ${chats} c WHERE c.id = $chatId${transaction ? db.dialect.forUpdate : ''}`,
    { chatId },
    transaction,
  )
  if (raw === undefined) return null
  const chat = readRow(chatColumns, raw, db.dialect)
  const now = db.dialect.readTime(raw.databaseNow).getTime()
  return {
    chat,
    claimed: Number(raw.claimed) === 1,
    due: Number(raw.due) === 1,
    dueForMs: chat.wantedAt === null ? null : now - chat.wantedAt.getTime(),
    queued: { steering: Number(raw.steering), total: Number(raw.queued) },
    orphanedUsages: Number(raw.orphaned),
    draft: raw.draft as string | null,
    compactDue: Number(raw.compactDue) === 1,
    summaryThrough: raw.through === null ? null : Number(raw.through),
  }
}

/** The whole transcript in its order, each message with the calls that it requested. */
export async function readTranscript(
  db: Database,
  chatId: string,
  transaction?: Transaction,
): Promise<TranscriptMessage[]> {
  return readMessages(db, `${db.tables.messages} m`, 'WHERE m.chat_id = $chatId', { chatId }, transaction)
}

/** The system messages alone, in their order. */
export async function readSystemMessages(
  db: Database,
  chatId: string,
  transaction?: Transaction,
): Promise<TranscriptMessage[]> {
  const where = "WHERE m.chat_id = $chatId AND m.role = 'system'"
  return readMessages(db, `${db.tables.messages} m`, where, { chatId }, transaction)
}

/** The end of a transcript without its summaries: what comes behind the answer to the last turn but one. */
export async function readLastTurn(db: Database, chatId: string): Promise<TranscriptMessage[]> {
  const { messages, toolCalls } = db.tables
  const answered =
    `(SELECT MAX(a.position) FROM ${messages} a WHERE a.chat_id = $chatId AND a.role = 'assistant' AND a.summary_through IS NULL ` +
    `AND a.position < (SELECT MAX(u.position) FROM ${messages} u WHERE u.chat_id = $chatId AND u.role = 'user') ` +
    `AND NOT EXISTS (SELECT 1 FROM ${toolCalls} c WHERE c.message_id = a.id))`
  const where = `WHERE m.chat_id = $chatId AND m.summary_through IS NULL AND m.position > COALESCE(${answered}, -1)`
  return readMessages(db, `${messages} m`, where, { chatId })
}

/**
 * What a run needs of a transcript: system messages, the summary that reaches to `through`, and what came after that
 * position. The summary itself may stand behind messages that it does not cover. Null reads everything.
 */
export async function readRecent(db: Database, chatId: string, through: number | null): Promise<TranscriptMessage[]> {
  if (through === null) return readTranscript(db, chatId)
  const { messages } = db.tables
  const wanted =
    `SELECT a.id FROM ${messages} a WHERE a.chat_id = $chatId AND a.position > $through ` +
    `UNION ALL SELECT b.id FROM ${messages} b WHERE b.chat_id = $chatId AND b.role = 'system' AND b.position <= $through`
  return readMessages(
    db,
    `(${wanted}) wanted JOIN ${messages} m ON m.id = wanted.id`,
    'WHERE (m.summary_through IS NULL OR m.summary_through = $through)',
    { chatId, through },
  )
}

/** Tools that a person approved for the rest of the chat. */
export async function readRemembered(db: Database, chatId: string): Promise<Pick<ToolCallRow, 'name' | 'namespace'>[]> {
  const rows = await db.read(
    `SELECT DISTINCT t.name AS name, t.namespace AS namespace FROM ${db.tables.toolCalls} t ` +
      "WHERE t.chat_id = $chatId AND t.approval = 'remembered'",
    { chatId },
  )
  return rows.map((raw) => ({ name: raw.name as string, namespace: raw.namespace as string | null }))
}

/** Messages of one chat with their calls, in the order of the transcript. `from` names them `m`. */
export async function readMessages(
  db: Database,
  from: string,
  where: string,
  bind: Readonly<Record<string, string | number>>,
  transaction?: Transaction,
): Promise<TranscriptMessage[]> {
  const rows = await db.read(
    `SELECT ${selectList(messageColumns, 'm')}, ${selectList(toolCallColumns, 't', 'call_')} ` +
      `FROM ${from} LEFT JOIN ${db.tables.toolCalls} t ON t.message_id = m.id ${where} ORDER BY m.position, t.position`,
    bind,
    transaction,
  )
  const transcript: TranscriptMessage[] = []
  for (const raw of rows) {
    const last = transcript.at(-1)
    const calls = raw.call_id === null ? [] : [readToolCall(db, raw, 'call_')]
    if (last !== undefined && last.id === raw.id) last.toolCalls.push(...calls)
    else transcript.push(Object.assign(readRow(messageColumns, raw, db.dialect), { toolCalls: calls }))
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

const longestId = 255

/** A call of one chat by either of its ids; null where the chat has none such. */
export async function findToolCall(
  db: Database,
  chatId: string,
  call: string,
  transaction?: Transaction,
): Promise<ToolCallRow | null> {
  // No id is longer, and a statement may not be of any length.
  if (call.length > longestId) return null
  const [raw] = await db.read(
    `SELECT ${selectList(toolCallColumns, 't')} FROM ${db.tables.toolCalls} t ` +
      'WHERE t.chat_id = $chatId AND (t.id = $call OR t.tool_call_id = $call)',
    { chatId, call },
    transaction,
  )
  return raw === undefined ? null : readToolCall(db, raw)
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

/**
 * Arguments read as an object whatever is stored. A text that is no JSON reads as what the model wrote, so that the call does not
 * run with others. (E104)
 */
export function readToolCall(db: Database, raw: Record<string, unknown>, prefix = ''): ToolCallRow {
  const row = readRow(toolCallColumns, raw, db.dialect, prefix)
  const damage = damageOf(row)
  const text = damage.includes('arguments') ? String(raw[`${prefix}arguments`]) : null
  const malformedArguments = row.malformedArguments ?? text
  return withDamage({ ...row, arguments: asObject(row.arguments), malformedArguments }, damage)
}

/** Anything that is not a JSON object reads as an empty one. */
export function asObject(value: unknown): ToolCallRow['arguments'] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ToolCallRow['arguments']) : {}
}
