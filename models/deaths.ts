import type { Database } from './database.ts'
import type { Failure } from './rows.ts'

// How often a process died while it ran a chat: counted by whoever takes the chat next, by the claim that was never given back.
// A process that was frozen, or cut off from the database, for as long as a claim lives can't be told from a dead one.

/** After so many deaths a chat is run by a process that runs nothing else. (E121) */
export const aloneFrom = 2
/** After so many deaths nobody runs it. (E123) */
export const setAsideAt = 5

/** Whoever held the chat last never gave it back: 1, else 0. Of a chat that nobody holds. */
export const lapsed = 'CASE WHEN claimed_by IS NULL THEN 0 ELSE 1 END'
/** The processes that a chat has cost, of which nobody holds it. */
export const deathsSoFar = `deaths + ${lapsed}`

/** Counted anew, but for a chat that is to run alone: it goes on alone until it commits a move. */
export const deathsForgiven = `CASE WHEN deaths < ${aloneFrom} THEN 0 ELSE ${aloneFrom} END`

/** Lifts a failure, and forgives the deaths before it. In this order: MySQL assigns from left to right. */
export const liftFailure = `deaths = CASE WHEN failure IS NULL THEN deaths ELSE ${deathsForgiven} END, failure = NULL`

/** A chat that is to be set aside. */
export interface SettingAside {
  readonly chatId: string
  readonly failure: Failure
  /** Only if it has cost so many processes. */
  readonly deaths: number
}

/**
 * Records that nobody is to run the chat, nor to summarise it, until somebody tries again: without a claim, since whoever takes it
 * may die of it. False = it was taken, is no longer wanted, or has not cost so many processes: nothing changed.
 */
export async function setAside(db: Database, { chatId, failure, deaths }: SettingAside): Promise<boolean> {
  const { now } = db.dialect
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET deaths = ${deathsSoFar}, claimed_by = NULL, claimed_until = NULL, failure = $failure, ` +
      'ended_turn = turn, cancel_turn = NULL, wanted_at = NULL, wanted_queue = NULL, compact_at = NULL, compact_attempts = 0, ' +
      `attempts = 0, put_off = 0, parked = 0, updated_at = ${now} WHERE id = $chatId AND (wanted_at <= ${now} OR compact_at <= ${now}) ` +
      `AND (claimed_until IS NULL OR claimed_until <= ${now}) AND ${deathsSoFar} >= $deaths`,
    { chatId, failure: JSON.stringify(failure), deaths },
  )
  return rows === 1
}

/** How a process ended that was started to run a chat alone. */
export interface Death {
  readonly chatId: string
  readonly how: string
  /** The number of the take before it. */
  readonly after: number
}

/** Records how a process ended that took the chat and did not give it back. */
export async function noteDeath(db: Database, { chatId, how, after }: Death): Promise<void> {
  await db.write(
    `UPDATE ${db.tables.chats} SET last_death = $how WHERE id = $chatId AND claimed_by IS NOT NULL AND claim_token > $after`,
    { chatId, how, after },
  )
}
