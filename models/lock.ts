import type { Transaction } from 'sequelize'
import { chatNotFound } from './claims.ts'
import type { Database } from './database.ts'
import { type ChatLook, lookAtChat } from './transcript.ts'

/** Locks the chat row for the rest of the transaction and reads it. */
export async function lockChat(db: Database, chatId: string, transaction: Transaction): Promise<ChatLook> {
  const look = await lookAtChat(db, chatId, transaction)
  if (look === null) throw chatNotFound(chatId)
  return look
}
