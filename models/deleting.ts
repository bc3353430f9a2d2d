import { chatNotFound } from './claims.ts'
import type { Database } from './database.ts'

/**
 * Removes a chat with all of its rows, whoever runs it: the fence of a run finds no chat any more, so that nothing comes
 * back. Everything that hangs on a chat refers to it, and goes with it.
 * @throws {ChatNotFoundError} when there is none.
 */
export async function deleteChat(db: Database, chatId: string): Promise<void> {
  const rows = await db.transaction((transaction) =>
    db.write(`DELETE FROM ${db.tables.chats} WHERE id = $chatId`, { chatId }, transaction),
  )
  if (rows === 0) throw chatNotFound(chatId)
}
