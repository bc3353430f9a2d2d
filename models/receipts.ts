import type { Transaction } from 'sequelize'
import { receiptColumns } from './columns.ts'
import type { Database } from './database.ts'
import { readFailure } from './read-row.ts'
import type { Failure, QueuedMessageRow, ReceiptRow } from './rows.ts'

/**
 * Keeps which messages of the transcript queued ones became, in the transaction that moves them.
 * @param messages in the order of `queued`.
 */
export async function noteDelivered(
  db: Database,
  queued: readonly Pick<QueuedMessageRow, 'id' | 'chatId' | 'createdAt'>[],
  messages: readonly { readonly id: string; readonly createdAt: Date }[],
  transaction: Transaction,
): Promise<void> {
  const rows = queued.flatMap(({ id, chatId, createdAt: queuedAt }, at): ReceiptRow[] => {
    const message = messages[at]
    if (message === undefined) return []
    return [{ id, chatId, status: 'delivered', messageId: message.id, queuedAt, settledAt: message.createdAt }]
  })
  await db.insert<ReceiptRow>(db.tables.receipts, receiptColumns, rows, { transaction })
}

/** Keeps that a queued message was taken back, in the transaction that removes it. */
export async function noteUnqueued(
  db: Database,
  { id, chatId, createdAt: queuedAt }: Pick<QueuedMessageRow, 'id' | 'chatId' | 'createdAt'>,
  transaction: Transaction,
): Promise<void> {
  const row: ReceiptRow = { id, chatId, status: 'unqueued', messageId: null, queuedAt, settledAt: new Date() }
  await db.insert<ReceiptRow>(db.tables.receipts, receiptColumns, [row], { transaction })
}

/** All that the rows say of one message, as of one moment. */
export interface Whereabouts {
  /** Why the chat's turn was given up; null when it was not. */
  readonly failure: Failure | null
  /** Its row in the queue. */
  readonly queued: Pick<QueuedMessageRow, 'createdAt' | 'steer'> | null
  /** What was kept when it left the queue. */
  readonly settled: Pick<ReceiptRow, 'status' | 'messageId' | 'settledAt'> | null
  /** The user message of the transcript that has this very id. */
  readonly message: { readonly createdAt: Date } | null
}

/** One statement, so that a message that is just moving is seen on one side or the other. Null: there is no such chat. */
export async function readWhereabouts(db: Database, chatId: string, id: string): Promise<Whereabouts | null> {
  const { chats, queuedMessages, receipts, messages } = db.tables
  const [raw] = await db.read(
    'SELECT c.failure AS failure, q.created_at AS queuedAt, q.steer AS steer, r.status AS status, r.message_id AS messageId, ' +
      `r.settled_at AS settledAt, m.created_at AS storedAt FROM ${chats} c ` +
      `LEFT JOIN ${queuedMessages} q ON q.id = $id AND q.chat_id = c.id ` +
      `LEFT JOIN ${receipts} r ON r.id = $id AND r.chat_id = c.id ` +
      `LEFT JOIN ${messages} m ON m.id = $id AND m.chat_id = c.id AND m.role = 'user' WHERE c.id = $chatId`,
    { chatId, id },
  )
  if (raw === undefined) return null
  const { readTime } = db.dialect
  const { failure, queuedAt, steer, status, messageId, settledAt, storedAt } = raw
  return {
    failure: failure === null ? null : readFailure(failure, db.dialect),
    queued: queuedAt === null ? null : { createdAt: readTime(queuedAt), steer: Boolean(steer) },
    settled:
      settledAt === null
        ? null
        : {
            status: status as ReceiptRow['status'],
            messageId: messageId as string | null,
            settledAt: readTime(settledAt),
          },
    message: storedAt === null ? null : { createdAt: readTime(storedAt) },
  }
}
