import { dropChatBlobs } from './blobs.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import { readSubChats } from './tree.ts'

export interface DeletedChats {
  /** The chat, and its sub-chats. */
  readonly ids: readonly string[]
  /** Of their files, for `purgeBlob`. */
  readonly digests: readonly string[]
}

/**
 * Removes a chat with all of its rows, whoever runs it: the fence of a run finds no chat any more, so that nothing comes
 * back. Everything that hangs on a chat refers to it, and goes with it, sub-chats too. (E53, E64, E93)
 * @throws {ChatNotFoundError} when there is none.
 */
export async function deleteChat(db: Database, chatId: string): Promise<DeletedChats> {
  return db.transaction(async (transaction) => {
    await lockChat(db, chatId, transaction)
    const ids = [chatId, ...(await readSubChats(db, chatId, transaction)).map(({ id }) => id)]
    const digests: string[] = []
    for (const id of ids) digests.push(...(await dropChatBlobs(db, id, transaction)))
    await db.write(`DELETE FROM ${db.tables.chats} WHERE id = $chatId`, { chatId }, transaction)
    return { ids, digests: [...new Set(digests)] }
  })
}
