import type { Database } from './database.ts'
import { aloneFrom, setAsideAt } from './deaths.ts'

// What an operator asks of all chats at once. These statements look at every chat: they are not for the hot path.

/**
 * Where a chat stands, the first that fits: `running` (a process holds it), `failed` (given up until somebody tries again),
 * `due` (a worker should take it now), `put off` (workers lacked its agent or a tool), `parked` (waits for something outside,
 * be it for so long only), `wanted` (later: a delay, a retry), `idle`.
 */
export type ChatState = 'running' | 'failed' | 'due' | 'put off' | 'parked' | 'wanted' | 'idle'

/** Every state, in the order in which they are looked for. */
export const chatStates: readonly ChatState[] = ['running', 'failed', 'due', 'put off', 'parked', 'wanted', 'idle']

export interface ChatTotals {
  readonly chats: Readonly<Record<ChatState, number>>
  /** How long the chat that is due longest has been due, in ms; null when none is. */
  readonly oldestDueMs: number | null
  /** Chats that run alone, since processes died over them. */
  readonly alone: number
  /** Failed chats that were set aside for that. */
  readonly setAside: number
}

/** SQL for where a chat stands. */
export const chatStateOf = (now: string) =>
  `CASE WHEN claimed_until > ${now} THEN 'running' WHEN failure IS NOT NULL THEN 'failed' ` +
  `WHEN wanted_at <= ${now} THEN 'due' WHEN wanted_at IS NOT NULL AND put_off > 0 THEN 'put off' ` +
  `WHEN parked = 1 THEN 'parked' WHEN wanted_at IS NOT NULL THEN 'wanted' ELSE 'idle' END`

/** How many chats stand where, by the database's clock. */
export async function chatTotals(db: Database): Promise<ChatTotals> {
  const { now } = db.dialect
  const rows = await db.read(
    `SELECT state, COUNT(*) AS chats, MIN(wanted_at) AS oldest, ${atLeast(aloneFrom)} AS alone, ${atLeast(setAsideAt)} AS aside, ` +
      `${now} AS databaseNow FROM (SELECT wanted_at, deaths, ${chatStateOf(now)} AS state ` +
      `FROM ${db.tables.chats}) s GROUP BY state`,
    {},
  )
  const found = new Map(rows.map((row) => [row.state, row]))
  const due = found.get('due')
  const countOf = (state: ChatState) => Number(found.get(state)?.chats ?? 0)
  return {
    chats: Object.fromEntries(chatStates.map((state) => [state, countOf(state)])) as Record<ChatState, number>,
    oldestDueMs:
      due === undefined
        ? null
        : db.dialect.readTime(due.databaseNow).getTime() - db.dialect.readTime(due.oldest).getTime(),
    alone: rows.reduce((sum, row) => (row.state === 'failed' ? sum : sum + Number(row.alone)), 0),
    setAside: Number(found.get('failed')?.aside ?? 0),
  }
}

const atLeast = (deaths: number) => `SUM(CASE WHEN deaths >= ${deaths} THEN 1 ELSE 0 END)`

/** The database's clock. */
export async function databaseClock(db: Database): Promise<Date> {
  const [row] = await db.read(`SELECT ${db.dialect.now} AS databaseNow`, {})
  return db.dialect.readTime(row?.databaseNow)
}

/**
 * Ids of chats that failed and that nobody runs, in the order of their ids; no sub-chats, whose calls were told. (E93)
 * @param options.code only failures with this code. `after`: the last id of the page before.
 */
export async function failedChats(
  db: Database,
  options: { readonly code: string | null; readonly after: string; readonly limit: number },
): Promise<string[]> {
  const { now } = db.dialect
  const rows = await db.read(
    `SELECT id FROM ${db.tables.chats} WHERE id > $after AND failure IS NOT NULL AND parent_id IS NULL AND (claimed_until IS NULL OR claimed_until <= ${now}) ` +
      (options.code === null ? '' : `AND ${db.dialect.jsonText('failure', '$.code')} = $code `) +
      `ORDER BY id LIMIT ${Math.trunc(options.limit)}`,
    { after: options.after, ...(options.code === null ? {} : { code: options.code }) },
  )
  return rows.map((row) => row.id as string)
}
