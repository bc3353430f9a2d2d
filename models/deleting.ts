import { dropChatBlobs } from './blobs.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'

/**
 * Removes a chat with all of its rows, whoever runs it: the fence of a run finds no chat any more, so that nothing comes
 * back. Everything that hangs on a chat refers to it, and goes with it. Returns the digests of its files, for `purgeBlob`. (E53, E64)
 * @throws {ChatNotFoundError} when there is none.
 */
export async function deleteChat(db: Database, chatId: string): Promise<string[]> {
  return db.transaction(async (transaction) => {
    await lockChat(db, chatId, transaction)
    const digests = await dropChatBlobs(db, chatId, transaction)
    await db.write(`DELETE FROM ${db.tables.chats} WHERE id = $chatId`, { chatId }, transaction)
    return digests
  })
}
