import { wantNow } from './claims.ts'
import type { Database } from './database.ts'
import type { Bell, Failure } from './rows.ts'

/** A chat that somebody wants run or summarised, and that nobody runs. */
export interface DueChat {
  readonly chatId: string
  readonly claimToken: number
  readonly queue: Bell
}

/**
 * Chats that are due, unclaimed and not failed, longest due first, and failed ones whose turn was cancelled while somebody moved them by
 * hand, if he died before he carried that out; then those of which a summary is due, failed ones too,
 * since it takes nothing up again. A chat can be in both lists. At most `limit` of each.
 */
export async function dueChats(db: Database, limit: number): Promise<DueChat[]> {
  const { now } = db.dialect
  const unclaimed = `(claimed_until IS NULL OR claimed_until <= ${now})`
  const most = Math.trunc(limit)
  const rows = await db.read(
    `SELECT * FROM (SELECT id, claim_token AS claimToken, wanted_queue AS queue FROM ${db.tables.chats} ` +
      `WHERE wanted_at <= ${now} AND ${unclaimed} AND (failure IS NULL OR cancel_turn = turn) ORDER BY wanted_at LIMIT ${most}) AS wanted ` +
      `UNION ALL SELECT * FROM (SELECT id, claim_token AS claimToken, 'compact' AS queue FROM ${db.tables.chats} ` +
      `WHERE compact_at <= ${now} AND ${unclaimed} ORDER BY compact_at LIMIT ${most}) AS summaries`,
    {},
  )
  return rows.map((row) => ({
    chatId: row.id as string,
    claimToken: Number(row.claimToken),
    queue: bellOf(row.queue),
  }))
}

/** Most chats that are looked through for the next lapse, of each kind; those that have been due longest come first. */
const lookedThrough = 1_000

/**
 * How long, in ms, until the first claim lapses of the chats that are wanted and due, or of which a summary is: what a dead
 * process held can be taken then. Null: none is held. One that is alive is renewed before.
 */
export async function msToNextLapse(db: Database): Promise<number | null> {
  const { tables, dialect } = db
  const oldest = (due: string) =>
    `SELECT * FROM (SELECT claimed_until FROM ${tables.chats} WHERE ${due} <= ${dialect.now} ` +
    `ORDER BY ${due} LIMIT ${lookedThrough}) AS due_${due}`
  const [row] = await db.read(
    `SELECT MIN(claimed_until) AS lapses, ${dialect.now} AS databaseNow FROM ` +
      `(${oldest('wanted_at')} UNION ALL ${oldest('compact_at')}) AS due WHERE claimed_until > ${dialect.now}`,
    {},
  )
  if (row === undefined || row.lapses === null) return null
  return dialect.readTime(row.lapses).getTime() - dialect.readTime(row.databaseNow).getTime()
}

/** A word that is no queue must not keep the other chats from being rung for. */
function bellOf(word: unknown): Bell {
  return word === 'runTools' || word === 'compact' ? word : 'complete'
}

/** Puts off a chat that this process can't run. Changes nothing if it was taken, or is no longer due. */
export async function putOff(db: Database, chatId: string, delayMs: number): Promise<void> {
  const { now, nowPlus } = db.dialect
  await db.write(
    `UPDATE ${db.tables.chats} SET put_off = put_off + 1, wanted_at = ${nowPlus('$delayMs')}, updated_at = ${now} ` +
      `WHERE id = $chatId AND wanted_at <= ${now} AND (claimed_until IS NULL OR claimed_until <= ${now})`,
    { chatId, delayMs },
  )
}

/** Records that nobody can run the chat. False = it was taken, failed or is no longer wanted: nothing changed. */
export async function failUntaken(db: Database, chatId: string, failure: Failure): Promise<boolean> {
  const { now } = db.dialect
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET failure = $failure, wanted_at = NULL, wanted_queue = NULL, put_off = 0, updated_at = ${now} ` +
      `WHERE id = $chatId AND failure IS NULL AND wanted_at IS NOT NULL AND (claimed_until IS NULL OR claimed_until <= ${now})`,
    { chatId, failure: JSON.stringify(failure) },
  )
  return rows === 1
}

/**
 * SQL for the chats of these agents. It hides the column from the planner: an agent may have all chats there are, and very few of them are
 * what is looked for.
 */
function ofAgents(agents: readonly string[]): {
  readonly sql: string
  readonly bind: Readonly<Record<string, string>>
} {
  return {
    sql: `COALESCE(agent, '') IN (${agents.map((_, at) => `$agent${at}`).join(', ')})`,
    bind: Object.fromEntries(agents.map((name, at) => [`agent${at}`, name])),
  }
}

/** SQL for a chat that was put off so many times or more. SQLite takes a range with two ends for a small one, and its index first. */
const putOffAtLeast = (times: number) => `put_off BETWEEN ${times} AND 2147483647`

/**
 * Wants again, now, every chat of these agents that was put off or failed for want of a worker that has them. Returns how
 * many there were.
 */
export async function liftPutOff(db: Database, agents: readonly string[], code: string): Promise<number> {
  if (agents.length === 0) return 0
  const { sql, bind } = ofAgents(agents)
  return db.write(
    // A failure was the turn's end, which it is told of anew.
    `UPDATE ${db.tables.chats} SET ended_turn = CASE WHEN failure IS NULL THEN ended_turn ELSE NULL END, failure = NULL, put_off = 0, ` +
      `${wantNow(db)}, updated_at = ${db.dialect.now} WHERE ${sql} ` +
      `AND (${putOffAtLeast(1)} OR (has_failed = 1 AND ${db.dialect.jsonText('failure', '$.code')} = $code))`,
    { code, ...bind },
  )
}

/**
 * Counts the put-offs of chats of these agents anew: while a process that has their agent lives, the wrong workers may take
 * them up any number of times. Returns how many there were.
 */
export async function keepPutOffShort(db: Database, agents: readonly string[]): Promise<number> {
  if (agents.length === 0) return 0
  const { sql, bind } = ofAgents(agents)
  return db.write(
    `UPDATE ${db.tables.chats} SET put_off = 1 WHERE wanted_at > ${db.dialect.now} AND ${putOffAtLeast(2)} AND ${sql}`,
    bind,
  )
}
