import type { Transaction } from 'sequelize'
import { PendingToolCallsError } from '../src/errors.ts'
import { holdBlobs } from './blobs.ts'
import { wantNow } from './claims.ts'
import { chatColumns } from './columns.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import { findOrCreateModel, type NamedModel } from './model-rows.ts'
import { userMessage } from './new-message.ts'
import { enqueueMessage } from './queue.ts'
import type { ChatRow, MessageRow, QueuedMessageRow } from './rows.ts'
import { type PendingSettings, savePending } from './settings.ts'
import { readQueue } from './transcript.ts'
import { deleteQueued, insertMessages, type NewMessage } from './turns.ts'

// What applications write without holding the chat: each locks the chat row first, then reads, then writes.

/** A chat to be made. */
export interface NewChatRow {
  readonly row: Pick<ChatRow, 'id' | 'agent' | 'model' | 'provider' | 'owner' | 'settings' | 'inputs'>
  /** What is known of its model, for the model's row; null where it names none. */
  readonly named: NamedModel | null
  /** Its system message; null = none. */
  readonly instructions: string | null
}

export async function insertChat(db: Database, chat: NewChatRow, transaction?: Transaction): Promise<void> {
  const { row, named, instructions } = chat
  if ((named !== null || instructions !== null) && transaction === undefined) {
    await db.transaction((own) => insertChat(db, chat, own))
    return
  }
  const now = new Date()
  const modelRowId =
    named === null || transaction === undefined ? null : await findOrCreateModel(db, named, transaction)
  await db.insert<ChatRow>(db.tables.chats, chatColumns, [{ ...row, modelRowId, createdAt: now, updatedAt: now }], {
    transaction,
  })
  if (instructions === null || transaction === undefined) return
  await savePending(db, row, { instructions: [{ content: instructions, cacheBoundary: null }] }, transaction)
}

export type Staged =
  | { readonly kind: 'staged'; readonly drained: readonly QueuedMessageRow[] }
  /** Another process runs the chat: the message waits in the queue and starts the next turn. */
  | { readonly kind: 'queued'; readonly queued: QueuedMessageRow }

export interface Staging {
  readonly chatId: string
  readonly message: Pick<MessageRow, 'id' | 'content' | 'attachments'>
  /** Also want the chat run now. */
  readonly want: boolean
  readonly pending: PendingSettings
  /** Makes the message of a queued row. */
  readonly toMessage: (queued: QueuedMessageRow) => NewMessage
}

/**
 * Adds a user message behind everything that waits in the queue, and starts a turn.
 * @throws {PendingToolCallsError} when the last answer's calls are open; nothing is written then.
 */
export async function stageMessage(db: Database, staging: Staging, transaction: Transaction): Promise<Staged> {
  const { chat, claimed, queued } = await lockChat(db, staging.chatId, transaction)
  if (claimed) {
    const row = await enqueueMessage(
      db,
      {
        chatId: chat.id,
        id: staging.message.id,
        content: staging.message.content,
        attachments: staging.message.attachments,
        steer: false,
        owner: null,
        wake: true,
      },
      transaction,
      chat,
    )
    await savePending(db, chat, staging.pending, transaction)
    return { kind: 'queued', queued: row }
  }
  await refuseOpenRound(db, chat.id, transaction)
  await savePending(db, chat, staging.pending, transaction)
  const drained = queued.total === 0 ? [] : await readQueue(db, chat.id, transaction)
  await db.write(
    `UPDATE ${db.tables.chats} SET next_position = next_position + $added, turn = turn + 1, rounds = 0, compactions = 0, failure = NULL, ` +
      `cancelled_turn = NULL, cancel_turn = NULL, ${staging.want ? `${wantNow(db)}, ` : ''}updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId: chat.id, added: drained.length + 1 },
    transaction,
  )
  const message = userMessage(chat.id, staging.message.id, staging.message)
  await holdBlobs(db, message.attachments ?? [], transaction)
  await insertMessages(db, [...drained.map(staging.toMessage), message], transaction)
  await deleteQueued(db, drained, transaction)
  return { kind: 'staged', drained }
}

/** The calls of the last answer that have no result. */
async function readOpenRound(db: Database, chatId: string, transaction: Transaction) {
  const { messages, toolCalls } = db.tables
  return db.read(
    `SELECT t.name AS name, t.tool_call_id AS toolCallId FROM ${toolCalls} t WHERE t.result_id IS NULL AND t.message_id = ` +
      `(SELECT m.id FROM ${messages} m WHERE m.chat_id = $chatId AND m.role NOT IN ('system', 'tool') AND m.summary_through IS NULL ` +
      'ORDER BY m.position DESC LIMIT 1) ORDER BY t.position',
    { chatId },
    transaction,
  )
}

/** Whether calls of the last answer have no result. */
export async function hasOpenRound(db: Database, chatId: string, transaction: Transaction): Promise<boolean> {
  return (await readOpenRound(db, chatId, transaction)).length > 0
}

/** @throws {PendingToolCallsError} naming the tools whose calls have no result. */
export async function refuseOpenRound(db: Database, chatId: string, transaction: Transaction): Promise<void> {
  const open = await readOpenRound(db, chatId, transaction)
  if (open.length === 0) return
  const calls = open.map((call) => `${call.name} (${call.toolCallId})`).join(', ')
  throw new PendingToolCallsError(
    `Chat ${chatId} waits for tool calls without a result: ${calls}. Approve or deny them, run complete(), then ask; ` +
      'or put the message in the queue.',
    { chatId },
  )
}
