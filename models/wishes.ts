import type { Transaction } from 'sequelize'
import { tryAgain, wantNow } from './claims.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import type { Bell } from './rows.ts'
import { type PendingSettings, savePending } from './settings.ts'

// The durable wake-ups: what makes a chat run lives in its row, so that losing Redis loses nothing.

/** Sets the wish, or only counts the change for the process that runs the chat. */
export function wakeUp(db: Database, wake: boolean): string {
  return wake ? wantNow(db) : 'wanted_seq = wanted_seq + 1'
}

/** Wants the chat run: now, or after a delay (the earliest wish wins). A failed or cancelled turn is tried again. */
export async function wantChat(
  db: Database,
  chatId: string,
  options: { readonly delayMs: number; readonly pending: PendingSettings; readonly queue: Bell },
  transaction: Transaction,
): Promise<void> {
  const { chat } = await lockChat(db, chatId, transaction)
  await savePending(db, chat, options.pending, transaction)
  const due = options.delayMs > 0 ? db.dialect.nowPlus('$delayMs') : db.dialect.now
  await db.write(
    `UPDATE ${db.tables.chats} SET ${tryAgain}, ` +
      `wanted_at = CASE WHEN wanted_at IS NULL OR wanted_at > ${due} THEN ${due} ELSE wanted_at END, ` +
      `wanted_seq = wanted_seq + 1, wanted_queue = $queue, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId, queue: options.queue, ...(options.delayMs > 0 ? { delayMs: options.delayMs } : {}) },
    transaction,
  )
}
