import type { Transaction } from 'sequelize'
import { wantNow } from './claims.ts'
import type { Database } from './database.ts'

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
  const named: Readonly<Record<string, number>> = turn === null ? {} : { turn }
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET cancel_turn = turn, ${wantNow(db)}, cancel_seq = wanted_seq` +
      // SQLite reads the old value on the right-hand side of every assignment, MySQL the new one.
      `${db.dialect.name === 'sqlite' ? ' + 1' : ''}, updated_at = ${db.dialect.now}, compact_attempts = 0, compact_at = NULL ` +
      `WHERE id = $chatId AND (compact_at IS NOT NULL OR ${busy(db)})` +
      (turn === null ? '' : ' AND turn = $turn'),
    { chatId, ...named },
    transaction,
  )
  return [...(rows === 0 ? [] : [chatId]), ...(await cancelBelow(db, chatId, turn, transaction))]
}

/** Cancels the turn also where nobody runs or wants the chat and it is not parked: it has open calls that a run has to close. */
export async function interruptTurn(db: Database, chatId: string, transaction: Transaction): Promise<void> {
  if ((await cancelTurn(db, chatId, null, transaction)).includes(chatId)) return
  // Somebody made its moves by hand, or its turn was given up. A cancel needs a run that carries it out, and would pass it by.
  await db.write(`UPDATE ${db.tables.chats} SET ${wantNow(db)} WHERE id = $chatId`, { chatId }, transaction)
  await cancelTurn(db, chatId, null, transaction)
}

/**
 * Cancels the sub-chats of a chat that have not ended, and theirs; nobody waits for them any longer. Returns the ids of those that are
 * to be run for it.
 * @param turn of the chat itself: in any other nothing is done; null = whichever it is in.
 */
export async function cancelBelow(
  db: Database,
  chatId: string,
  turn: number | null,
  transaction?: Transaction,
): Promise<string[]> {
  const { chats } = db.tables
  const named: Readonly<Record<string, number>> = turn === null ? {} : { turn }
  const below = await db.read(
    // One that was given up does not run, but those below it may.
    `SELECT id FROM ${chats} WHERE parent_id = $chatId AND (${busy(db)} OR failure IS NOT NULL)` +
      (turn === null ? '' : ` AND EXISTS (SELECT 1 FROM ${chats} p WHERE p.id = $chatId AND p.turn = $turn)`) +
      ' ORDER BY id',
    { chatId, ...named },
    transaction,
  )
  const cancelled: string[] = []
  for (const { id } of below) cancelled.push(...(await cancelTurn(db, id as string, null, transaction)))
  return cancelled
}
