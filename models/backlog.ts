import type { Database } from './database.ts'

/** What waits in the database, whoever may run it. */
export interface Backlog {
  /** Chats that are due, unclaimed and not failed. */
  readonly due: number
  /** How long the oldest of them has been due, in ms, by the database's clock; 0 for none. */
  readonly oldestDueMs: number
  /** Chats that wait for a person. */
  readonly parked: number
  /** Chats whose last turn failed for good. */
  readonly failed: number
}

/** One statement, each count by an index of its own. */
export async function readBacklog(db: Database): Promise<Backlog> {
  const { chats } = db.tables
  const { now } = db.dialect
  const due = `FROM ${chats} WHERE wanted_at <= ${now} AND (claimed_until IS NULL OR claimed_until <= ${now}) AND failure IS NULL`
  const [raw] = await db.read(
    `SELECT (SELECT COUNT(*) ${due}) AS due, (SELECT MIN(wanted_at) ${due}) AS oldest, ${now} AS databaseNow, ` +
      `(SELECT COUNT(*) FROM ${chats} WHERE parked = 1) AS parked, (SELECT COUNT(*) FROM ${chats} WHERE has_failed = 1) AS failed`,
    {},
  )
  const oldest = raw?.oldest ?? null
  const age =
    oldest === null ? 0 : db.dialect.readTime(raw?.databaseNow).getTime() - db.dialect.readTime(oldest).getTime()
  return {
    due: Number(raw?.due ?? 0),
    oldestDueMs: Math.max(0, age),
    parked: Number(raw?.parked ?? 0),
    failed: Number(raw?.failed ?? 0),
  }
}
