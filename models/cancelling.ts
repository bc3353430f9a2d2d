import type { Transaction } from 'sequelize'
import { wantNow } from './claims.ts'
import type { Database } from './database.ts'
import { liftFailure } from './deaths.ts'

const busy = (db: Database) => `(wanted_at IS NOT NULL OR claimed_until > ${db.dialect.now} OR parked = 1)`

/**
 * Cancels the running, wanted or parked turn, withdraws the wish for a summary, and does the same to the sub-chats that have not ended,
 * also where the turn itself has ended by now: one that was given up leaves them at work. Returns the ids of the chats that are to be run
 * for it, this one's first where it is one of them; none = there is nothing to cancel, or it is not the turn named.
 */
export async function cancelTurn(
  db: Database,
  chatId: string,
  turn: number | null,
  transaction?: Transaction,
): Promise<string[]> {
  const cancelled = await cancelOne(db, chatId, { turn, givenUp: false }, transaction)
  return [...(cancelled ? [chatId] : []), ...(await cancelBelow(db, chatId, turn, transaction))]
}

/** Cancels the turn also where nobody runs or wants the chat and it is not parked: it has open calls that a run has to close. */
export async function interruptTurn(db: Database, chatId: string, transaction: Transaction): Promise<void> {
  if ((await cancelTurn(db, chatId, null, transaction)).includes(chatId)) return
  // Somebody made its moves by hand, or its turn was given up. A cancel needs a run that carries it out, and would pass it by.
  await db.write(`UPDATE ${db.tables.chats} SET ${wantNow(db)} WHERE id = $chatId`, { chatId }, transaction)
  await cancelTurn(db, chatId, null, transaction)
}

/**
 * Cancels a sub-chat that nobody waits for any longer, and those below it, where they have not ended. One that was given up for want of
 * its agent would be taken up again by the next worker that has it, so its cancel is carried out as well. Returns as `cancelTurn` does.
 */
export async function cancelSubChat(db: Database, chatId: string, transaction?: Transaction): Promise<string[]> {
  const cancelled = await cancelOne(db, chatId, { turn: null, givenUp: true }, transaction)
  return [...(cancelled ? [chatId] : []), ...(await cancelBelow(db, chatId, null, transaction))]
}

/**
 * Cancels the sub-chats of a chat that have not ended, and theirs. Returns the ids of those that are to be run for it.
 * @param turn of the chat itself: in any other nothing is done; null = whichever it is in.
 */
export async function cancelBelow(
  db: Database,
  chatId: string,
  turn: number | null,
  transaction?: Transaction,
): Promise<string[]> {
  const { chats, toolCalls } = db.tables
  const named: Readonly<Record<string, number>> = turn === null ? {} : { turn }
  const isOpen = `EXISTS (SELECT 1 FROM ${toolCalls} t WHERE t.id = s.parent_call_id AND t.result_id IS NULL)`
  const below = await db.read(
    `SELECT s.id FROM ${chats} s WHERE s.parent_id = $chatId AND (${busy(db)} OR (s.failure IS NOT NULL AND ${isOpen}))` +
      (turn === null ? '' : ` AND EXISTS (SELECT 1 FROM ${chats} p WHERE p.id = $chatId AND p.turn = $turn)`) +
      ' ORDER BY s.id',
    { chatId, ...named },
    transaction,
  )
  const cancelled: string[] = []
  for (const { id } of below) cancelled.push(...(await cancelSubChat(db, id as string, transaction)))
  return cancelled
}

/** @param given.givenUp also a turn that was given up. */
async function cancelOne(
  db: Database,
  chatId: string,
  { turn, givenUp }: { readonly turn: number | null; readonly givenUp: boolean },
  transaction?: Transaction,
): Promise<boolean> {
  const named: Readonly<Record<string, number>> = turn === null ? {} : { turn }
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET cancel_turn = turn, ${wantNow(db)}, cancel_seq = wanted_seq` +
      // SQLite reads the old value on the right-hand side of every assignment, MySQL the new one.
      `${db.dialect.name === 'sqlite' ? ' + 1' : ''}, updated_at = ${db.dialect.now}, compact_attempts = 0, compact_at = NULL` +
      `${givenUp ? `, ${liftFailure}` : ''} ` +
      `WHERE id = $chatId AND (compact_at IS NOT NULL OR ${busy(db)}${givenUp ? ' OR failure IS NOT NULL' : ''})` +
      (turn === null ? '' : ' AND turn = $turn'),
    { chatId, ...named },
    transaction,
  )
  return rows > 0
}
