import { chatColumns, selectList } from './columns.ts'
import type { Database } from './database.ts'
import { type ChatState, chatStateOf } from './overview.ts'
import { readRow } from './read-row.ts'
import type { ChatRow, TranscriptMessage } from './rows.ts'
import { readMessages } from './transcript.ts'

// Lists of chats and of messages, a page at a time; each page is one statement.

/** Where a page of chats begins: behind this one. */
export interface ChatPlace {
  readonly createdAt: Date
  readonly id: string
}

/** Null = any. */
export interface ChatListing {
  readonly owner: string | null
  readonly agent: string | null
  readonly state: ChatState | null
  /** What a question or an answer of the chat has in it. */
  readonly text: string | null
  readonly before: ChatPlace | null
  readonly limit: number
}

/** Chats, newest first; sub-chats are part of the chat that they are for. */
export async function listChats(db: Database, listing: ChatListing): Promise<ChatRow[]> {
  const { owner, agent, state, text, before, limit } = listing
  const { dialect, tables } = db
  const wanted = [
    'c.parent_id IS NULL',
    ...(owner === null ? [] : ['c.owner = $owner']),
    ...(agent === null ? [] : ['c.agent = $agent']),
    ...(state === null ? [] : [`${chatStateOf(dialect.now)} = $state`]),
    ...(text === null
      ? []
      : [`EXISTS (SELECT 1 FROM ${tables.messages} m WHERE m.chat_id = c.id AND ${holdsText('m')})`]),
    ...(before === null ? [] : ['(c.created_at < $at OR (c.created_at = $at AND c.id < $id))']),
  ]
  const rows = await db.read(
    `SELECT ${selectList(chatColumns, 'c')} FROM ${tables.chats} c ` +
      `WHERE ${wanted.join(' AND ')} ` +
      `ORDER BY c.created_at DESC, c.id DESC LIMIT ${Math.trunc(limit)}`,
    {
      ...(owner === null ? {} : { owner }),
      ...(agent === null ? {} : { agent }),
      ...(state === null ? {} : { state }),
      ...(text === null ? {} : { pattern: patternOf(text) }),
      ...(before === null ? {} : { at: dialect.time(before.createdAt), id: before.id }),
    },
  )
  return rows.map((raw) => readRow(chatColumns, raw, dialect))
}

/** `before` and `after` are positions that are not part of the page. */
export interface MessageListing {
  readonly chatId: string
  readonly before: number | null
  readonly after: number | null
  /** What its text has in it; null = whatever it is, system messages, results and summaries included. */
  readonly text: string | null
  readonly limit: number
}

/** Messages with their calls in the order of the transcript: the first ones after `after`, else the last ones. */
export async function pageMessages(db: Database, listing: MessageListing): Promise<TranscriptMessage[]> {
  const { chatId, before, after, text, limit } = listing
  const { messages } = db.tables
  const wanted =
    'p.chat_id = $chatId' +
    (before === null ? '' : ' AND p.position < $before') +
    (after === null ? '' : ' AND p.position > $after') +
    (text === null ? '' : ` AND ${holdsText('p')}`)
  const page =
    `SELECT p.id FROM ${messages} p WHERE ${wanted} ORDER BY p.position ${after === null ? 'DESC' : 'ASC'} ` +
    `LIMIT ${Math.trunc(limit)}`
  return readMessages(db, `(${page}) page JOIN ${messages} m ON m.id = page.id`, '', {
    chatId,
    ...(before === null ? {} : { before }),
    ...(after === null ? {} : { after }),
    ...(text === null ? {} : { pattern: patternOf(text) }),
  })
}

/** What people asked and were answered; the columns compare exactly, so both sides are made alike. */
function holdsText(alias: string): string {
  return (
    `${alias}.role IN ('user', 'assistant') AND ${alias}.summary_through IS NULL ` +
    `AND LOWER(${alias}.content) LIKE LOWER($pattern) ESCAPE '!'`
  )
}

function patternOf(text: string): string {
  return `%${text.replace(/[!%_]/g, (sign) => `!${sign}`)}%`
}
