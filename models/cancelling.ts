import type { Transaction } from 'sequelize'
import { wantNow } from './claims.ts'
import type { Database } from './database.ts'

/**
 * Cancels the running, wanted or parked turn, withdraws the wish for a summary, and does the same to the sub-chats that have not ended.
 * Returns the ids of the chats that are to be run for it, this one's first; none = there is nothing to cancel, or it is not the turn named.
 */
export async function cancelTurn(
  db: Database,
  chatId: string,
  turn: number | null,
  transaction?: Transaction,
): Promise<string[]> {
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET cancel_turn = turn, ${wantNow(db)}, cancel_seq = wanted_seq` +
      // SQLite reads the old value on the right-hand side of every assignment, MySQL the new one.
      `${db.dialect.name === 'sqlite' ? ' + 1' : ''}, updated_at = ${db.dialect.now}, compact_attempts = 0, compact_at = NULL ` +
      `WHERE id = $chatId AND (wanted_at IS NOT NULL OR compact_at IS NOT NULL OR claimed_until > ${db.dialect.now} OR parked = 1)` +
      (turn === null ? '' : ' AND turn = $turn'),
    { chatId, ...(turn === null ? {} : { turn }) },
    transaction,
  )
  if (rows === 0) return []
  const cancelled = [chatId]
  const below = await db.read(
    `SELECT id FROM ${db.tables.chats} WHERE parent_id = $chatId AND (wanted_at IS NOT NULL OR claimed_until > ${db.dialect.now} OR parked = 1) ` +
      'ORDER BY id',
    { chatId },
    transaction,
  )
  for (const { id } of below) cancelled.push(...(await cancelTurn(db, id as string, null, transaction)))
  return cancelled
}
