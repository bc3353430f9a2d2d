import type { Transaction } from 'sequelize'
import { queuedMessageColumns } from './columns.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import type { ChatRow, Json, QueuedMessageRow } from './rows.ts'
import { wakeUp } from './wishes.ts'

export interface Queueing {
  readonly chatId: string
  readonly id: string
  readonly content: string | null
  readonly steer: boolean
  readonly owner: Json | null
  /** False only counts the change, so that a running process sees it; nobody is woken. */
  readonly wake: boolean
}

/** Puts a message in the queue. A new message also lifts a failure. */
export async function enqueueMessage(
  db: Database,
  queueing: Queueing,
  transaction: Transaction,
  locked?: ChatRow,
): Promise<QueuedMessageRow> {
  const chat = locked ?? (await lockChat(db, queueing.chatId, transaction)).chat
  await db.write(
    `UPDATE ${db.tables.chats} SET next_queue_position = next_queue_position + 1, failure = NULL, ` +
      `${wakeUp(db, queueing.wake)}, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId: chat.id },
    transaction,
  )
  const row: QueuedMessageRow = {
    id: queueing.id,
    chatId: chat.id,
    position: chat.nextQueuePosition,
    content: queueing.content,
    steer: queueing.steer,
    owner: queueing.owner,
    createdAt: new Date(),
  }
  await db.insert<QueuedMessageRow>(db.tables.queuedMessages, queuedMessageColumns, [row], { transaction })
  return row
}

/** True = it was there and is gone; false = it was taken into the transcript or unqueued before, or is another chat's. */
export async function unqueueMessage(
  db: Database,
  chatId: string,
  id: string,
  transaction: Transaction,
): Promise<boolean> {
  await lockChat(db, chatId, transaction)
  const rows = await db.write(
    `DELETE FROM ${db.tables.queuedMessages} WHERE id = $id AND chat_id = $chatId`,
    { id, chatId },
    transaction,
  )
  return rows === 1
}
