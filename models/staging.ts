import type { Transaction } from 'sequelize'
import { PendingToolCallsError } from '../src/errors.ts'
import { holdBlobs } from './blobs.ts'
import { wantNow } from './claims.ts'
import { chatColumns } from './columns.ts'
import type { Database } from './database.ts'
import { liftFailure } from './deaths.ts'
import { lockChat } from './lock.ts'
import { findOrCreateModel, type NamedModel } from './model-rows.ts'
import { userMessage } from './new-message.ts'
import { enqueueMessage, type Queueing } from './queue.ts'
import { readStored } from './read-row.ts'
import { noteDelivered } from './receipts.ts'
import type { ChatRow, JsonObject, MessageRow, QueuedMessageRow, ToolCallRow } from './rows.ts'
import { type PendingSettings, savePending } from './settings.ts'
import { type ChatLook, readQueue } from './transcript.ts'
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
  /** It stands in the transcript since `at`, behind what was drained from the queue. */
  | { readonly kind: 'staged'; readonly drained: readonly QueuedMessageRow[]; readonly at: Date }
  /** Another process runs the chat, or calls of its last answer are open: the message waits in the queue. */
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
  const look = await lockChat(db, staging.chatId, transaction)
  if (look.claimed) return queueInstead(db, staging, { steer: false, owner: null, wake: true }, look.chat, transaction)
  const open = await readOpenRound(db, staging.chatId, transaction)
  if (open.length > 0) throw openRound(staging.chatId, open)
  return stageNow(db, staging, look, transaction)
}

/** Queues a message that can't go into the transcript now, under the lock of the chat row. */
export async function queueInstead(
  db: Database,
  { message, pending }: Pick<Staging, 'message' | 'pending'>,
  how: Pick<Queueing, 'steer' | 'owner' | 'wake'>,
  chat: ChatRow,
  transaction: Transaction,
): Promise<Staged> {
  const queued = await enqueueMessage(db, { chatId: chat.id, ...message, ...how }, transaction, chat)
  await savePending(db, chat, pending, transaction)
  return { kind: 'queued', queued }
}

/** Adds the message, and what waits in the queue before it, to a chat that nobody runs and that has no open round. */
export async function stageNow(
  db: Database,
  staging: Staging,
  { chat, queued }: Pick<ChatLook, 'chat' | 'queued'>,
  transaction: Transaction,
): Promise<Staged> {
  await savePending(db, chat, staging.pending, transaction)
  const drained = queued.total === 0 ? [] : await readQueue(db, chat.id, transaction)
  await db.write(
    `UPDATE ${db.tables.chats} SET next_position = next_position + $added, turn = turn + 1, rounds = 0, compactions = 0, ${liftFailure}, ` +
      `cancelled_turn = NULL, cancel_turn = NULL, ${staging.want ? `${wantNow(db)}, ` : ''}updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId: chat.id, added: drained.length + 1 },
    transaction,
  )
  const message = userMessage(chat.id, staging.message.id, staging.message)
  const taken = drained.map(staging.toMessage)
  await holdBlobs(db, message.attachments ?? [], transaction)
  await insertMessages(db, [...taken, message], transaction)
  await deleteQueued(db, drained, transaction)
  await noteDelivered(db, drained, taken, transaction)
  return { kind: 'staged', drained, at: message.createdAt }
}

/** A call of the last answer that has no result. */
export type OpenCall = Pick<ToolCallRow, 'name' | 'toolCallId' | 'resultId' | 'mcpState'>

/** The calls without a result of the last answer, in the model's order; empty where no round is open. */
export async function readOpenRound(db: Database, chatId: string, transaction: Transaction): Promise<OpenCall[]> {
  const { messages, toolCalls } = db.tables
  const open = await db.read(
    `SELECT t.name AS name, t.tool_call_id AS toolCallId, t.mcp_state AS mcpState FROM ${toolCalls} t WHERE t.result_id IS NULL AND t.message_id = ` +
      `(SELECT m.id FROM ${messages} m WHERE m.chat_id = $chatId AND m.role NOT IN ('system', 'tool') AND m.summary_through IS NULL ` +
      'ORDER BY m.position DESC LIMIT 1) ORDER BY t.position',
    { chatId },
    transaction,
  )
  return open.map(({ name, toolCallId, mcpState }) => ({
    name: name as string,
    toolCallId: toolCallId as string,
    resultId: null,
    mcpState: readStored('pause', mcpState, db.dialect) as JsonObject | null,
  }))
}

/** For a message that can't be added before these calls have their results. */
export function openRound(chatId: string, open: readonly OpenCall[]): PendingToolCallsError {
  const calls = open.map((call) => `${call.name} (${call.toolCallId})`).join(', ')
  return new PendingToolCallsError(
    `Chat ${chatId} waits for tool calls without a result: ${calls}. Approve or deny them, run complete(), then ask; ` +
      'or put the message in the queue.',
    { chatId },
  )
}
