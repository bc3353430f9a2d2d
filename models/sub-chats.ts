import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import { cancelBelow } from './cancelling.ts'
import { type ClaimKey, fence } from './claims.ts'
import { chatColumns, selectList, toolCallColumns } from './columns.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import { newMessage, userMessage } from './new-message.ts'
import { readRow } from './read-row.ts'
import type { ChatRow, JsonObject, ToolCallRow } from './rows.ts'
import { storableJson } from './storable.ts'
import { findToolCall, readToolCall } from './transcript.ts'
import { insertMessages } from './turns.ts'
import { openSubChat, pauseOf, type SubChatOutcome } from './waiting.ts'
import { wakeUp } from './wishes.ts'

// Chats in which another agent answers a tool call. Such a chat is one like any other, claimed, run and cancelled by itself; it knows
// the call that it is for, and the call knows it. Parents are locked before their sub-chats, and never the other way round.

/** A sub-chat to be made along with the pause of its call. */
export interface NewSubChat {
  readonly id: string
  readonly agent: string
  /** The first message. */
  readonly messageId: string
  readonly message: string
  readonly inputs: JsonObject | null
  /** The system message that its agent stores with its chats; null = none. */
  readonly instructions: string | null
  /** Of the chat that the call belongs to. */
  readonly parent: Pick<ChatRow, 'id' | 'owner' | 'rootId' | 'depth'>
}

/** Makes the sub-chat of a call, wanted at once, in the transaction that holds its parent. */
export async function insertSubChat(
  db: Database,
  callId: string,
  subChat: NewSubChat,
  transaction: Transaction,
): Promise<void> {
  const { id, agent, inputs, instructions, parent } = subChat
  const system =
    instructions === null ? [] : [newMessage({ id: uuid(), chatId: id, role: 'system', content: instructions })]
  const messages = [...system, userMessage(id, subChat.messageId, { content: subChat.message, attachments: null })]
  const now = new Date()
  const row: Partial<ChatRow> = {
    ...{ id, agent, inputs, owner: parent.owner, settings: {}, createdAt: now, updatedAt: now },
    ...{ parentId: parent.id, parentCallId: callId, rootId: parent.rootId ?? parent.id, depth: parent.depth + 1 },
    ...{ turn: 1, wantedSeq: 1, nextPosition: messages.length },
  }
  await db.insert<ChatRow>(db.tables.chats, chatColumns, [row], {
    transaction,
    computed: { wantedAt: () => db.dialect.now },
  })
  await insertMessages(db, messages, transaction)
}

/**
 * Records in the call how its sub-chat ended, and wants the parent run. False = that is known already, or the call waits for it no
 * longer: it was answered, or is gone. May be said any number of times. One that was given up has the chats below it cancelled: its own
 * turn is not taken up again, and nobody else waits for them.
 * @param key the claim of the run that says it; null = somebody who deletes the sub-chat.
 * @throws {ClaimLostError} when that run does not hold the sub-chat any longer.
 */
export async function reportToParent(
  db: Database,
  { id, parentId, parentCallId }: Pick<ChatRow, 'id' | 'parentId' | 'parentCallId'>,
  outcome: SubChatOutcome,
  key: ClaimKey | null,
): Promise<boolean> {
  if (parentId === null || parentCallId === null) return false
  return db.transaction(async (transaction) => {
    const { chat: parent } = await lockChat(db, parentId, transaction)
    if (key !== null) await fence(db, transaction, key)
    if (outcome.kind === 'failed') await cancelBelow(db, id, null, transaction)
    const call = await findToolCall(db, parentId, parentCallId, transaction)
    const subChat = call === null || call.resultId !== null ? null : openSubChat(call)
    if (call === null || subChat === null || subChat.id !== id) return false
    const state = { ...pauseOf(call), subChat: { ...subChat, outcome } }
    await db.write(
      `UPDATE ${db.tables.toolCalls} SET mcp_state = $state, updated_at = ${db.dialect.now} WHERE id = $id AND result_id IS NULL`,
      { id: call.id, state: storableJson('outcome', state as JsonObject) },
      transaction,
    )
    // A turn that was given up is tried again by a person alone, who then finds the outcome.
    const wake = parent.failure === null
    await db.write(
      `UPDATE ${db.tables.chats} SET ${wakeUp(db, wake)}, updated_at = ${db.dialect.now} WHERE id = $parentId`,
      { parentId },
      transaction,
    )
    return true
  })
}

/** An open call of a sub-chat. */
export interface CallBelow {
  readonly chat: ChatRow
  readonly call: ToolCallRow
}

/** The open calls of the sub-chats that these calls wait for, and of theirs, level by level; nothing is read where none waits. */
export async function readCallsBelow(db: Database, calls: readonly ToolCallRow[]): Promise<CallBelow[]> {
  const found: CallBelow[] = []
  for (let level = calls; ; ) {
    const ids = level.flatMap((call) => openSubChat(call)?.id ?? [])
    if (ids.length === 0) return found
    const rows = await db.read(
      `SELECT ${selectList(toolCallColumns, 't')}, ${selectList(chatColumns, 'c', 'chat_')} FROM ${db.tables.chats} c ` +
        `JOIN ${db.tables.toolCalls} t ON t.chat_id = c.id AND t.result_id IS NULL WHERE c.id IN (${ids.map((_, at) => `$id${at}`).join(', ')}) ` +
        'ORDER BY c.created_at, c.id, t.message_id, t.position',
      Object.fromEntries(ids.map((id, at) => [`id${at}`, id])),
    )
    const below = rows.map((raw) => ({
      call: readToolCall(db, raw),
      chat: readRow(chatColumns, raw, db.dialect, 'chat_'),
    }))
    found.push(...below)
    level = below.map(({ call }) => call)
  }
}
