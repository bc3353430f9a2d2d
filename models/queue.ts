import type { Transaction } from 'sequelize'
import type { AttachmentValue } from './attachment-value.ts'
import { dropBlobs, holdBlobs } from './blobs.ts'
import { queuedMessageColumns } from './columns.ts'
import type { Database } from './database.ts'
import { liftFailure } from './deaths.ts'
import { lockChat } from './lock.ts'
import { isOwner, ownerKey } from './owner.ts'
import { readFiles } from './read-row.ts'
import { noteUnqueued } from './receipts.ts'
import type { ChatRow, Json, QueuedMessageRow } from './rows.ts'
import { wakeUp } from './wishes.ts'

export interface Queueing {
  readonly chatId: string
  readonly id: string
  readonly content: string | null
  readonly attachments: AttachmentValue[] | null
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
    `UPDATE ${db.tables.chats} SET next_queue_position = next_queue_position + 1, ${liftFailure}, ` +
      `${wakeUp(db, queueing.wake)}, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId: chat.id },
    transaction,
  )
  const row: QueuedMessageRow = {
    id: queueing.id,
    chatId: chat.id,
    position: chat.nextQueuePosition,
    content: queueing.content,
    attachments: queueing.attachments,
    steer: queueing.steer,
    owner: queueing.owner,
    ownerKey: isOwner(queueing.owner) ? ownerKey(queueing.owner) : null,
    createdAt: new Date(),
  }
  await holdBlobs(db, row.attachments ?? [], transaction)
  await db.insert<QueuedMessageRow>(db.tables.queuedMessages, queuedMessageColumns, [row], { transaction })
  return row
}

/** What became of a message that was to be taken out of the queue. */
export interface Unqueued {
  /** False = it was taken into the transcript or unqueued before, or is another chat's. */
  readonly removed: boolean
  /** Its files, for `purgeBlob` once that is committed. */
  readonly files: readonly AttachmentValue[]
}

export async function unqueueMessage(
  db: Database,
  chatId: string,
  id: string,
  transaction: Transaction,
): Promise<Unqueued> {
  await lockChat(db, chatId, transaction)
  const [raw] = await db.read(
    `SELECT attachments, created_at AS createdAt FROM ${db.tables.queuedMessages} WHERE id = $id AND chat_id = $chatId`,
    { id, chatId },
    transaction,
  )
  const rows = await db.write(
    `DELETE FROM ${db.tables.queuedMessages} WHERE id = $id AND chat_id = $chatId`,
    { id, chatId },
    transaction,
  )
  if (rows === 0 || raw === undefined) return { removed: false, files: [] }
  await noteUnqueued(db, { id, chatId, createdAt: db.dialect.readTime(raw.createdAt) }, transaction)
  const files = readFiles(raw.attachments, db.dialect)
  await dropBlobs(db, files, transaction)
  return { removed: true, files }
}
