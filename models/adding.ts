import { isDeepStrictEqual } from 'node:util'
import type { Transaction } from 'sequelize'
import { ArgumentError, ChatRunningError } from '../src/errors.ts'
import { holdBlobs } from './blobs.ts'
import { cancelSubChat } from './cancelling.ts'
import { selectList, toolCallColumns } from './columns.ts'
import type { Database } from './database.ts'
import { liftFailure } from './deaths.ts'
import { lockChat } from './lock.ts'
import type { ToolCallRow } from './rows.ts'
import { type PendingSettings, savePending } from './settings.ts'
import { readToolCall } from './transcript.ts'
import { freshCallId, insertMessages, type NewMessage } from './turns.ts'
import { openSubChat } from './waiting.ts'

/** A message that an application adds by hand, with the calls that it requests. */
export interface AddedMessage {
  readonly message: NewMessage
  readonly toolCalls: readonly ToolCallRow[]
  /** Of a tool message: the public id of the call that it answers. */
  readonly answers: string | null
  readonly pending: PendingSettings
}

/**
 * Adds one message at the end of the transcript, as it is. A user message starts a turn. Returns the id of the stored message: that of
 * the earlier result where a tool message answers a call that has one already, that of the message there is where all of
 * its calls are known.
 * @throws {ChatRunningError} while another process runs the chat.
 * @throws {ArgumentError} when a tool message answers a call that the chat does not have.
 */
export async function addMessage(db: Database, added: AddedMessage, transaction: Transaction): Promise<string> {
  const { chat, claimed } = await lockChat(db, added.message.chatId, transaction)
  if (claimed) {
    throw new ChatRunningError(
      `Chat ${chat.id} is being run by another process: add the message when it is idle, or queue it.`,
      {
        chatId: chat.id,
      },
    )
  }
  await savePending(db, chat, added.pending, transaction)
  const known = await findRound(db, chat.id, added.toolCalls, transaction)
  if (known !== null) return known
  const answered = added.answers === null ? null : await findAnswered(db, chat.id, added.answers, transaction)
  await makeIdsUnique(db, chat.id, added.toolCalls, transaction)
  if (added.answers !== null && answered === null) {
    throw new ArgumentError(
      `Chat ${chat.id} has no tool call ${added.answers}: a result must answer a call of its chat.`,
      {
        chatId: chat.id,
      },
    )
  }
  if (answered !== null && answered.resultId !== null) return answered.resultId
  const turn =
    added.message.role === 'user'
      ? `turn = turn + 1, rounds = 0, compactions = 0, ${liftFailure}, cancelled_turn = NULL, cancel_turn = NULL, `
      : ''
  await db.write(
    `UPDATE ${db.tables.chats} SET ${turn}next_position = next_position + 1, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId: chat.id },
    transaction,
  )
  await holdBlobs(db, added.message.attachments ?? [], transaction)
  await insertMessages(db, [added.message], transaction)
  await db.insert<ToolCallRow>(db.tables.toolCalls, toolCallColumns, added.toolCalls, { transaction })
  if (answered !== null) {
    await db.write(
      `UPDATE ${db.tables.toolCalls} SET result_id = $resultId, claimed_by = NULL, claimed_until = NULL, started_at = NULL, ` +
        `mcp_state = NULL, updated_at = ${db.dialect.now} WHERE id = $id`,
      { id: answered.id, resultId: added.message.id },
      transaction,
    )
    const subChat = openSubChat(answered)
    // Nobody is rung for it: the process that runs it sees that within a second, and else the sweeper wakes one.
    if (subChat !== null) await cancelSubChat(db, subChat.id, transaction)
  }
  return added.message.id
}

/** The call that a result by hand is for, by its id here or by its provider's; of several, the latest open one. */
async function findAnswered(
  db: Database,
  chatId: string,
  call: string,
  transaction: Transaction,
): Promise<ToolCallRow | null> {
  const { toolCalls, messages } = db.tables
  const [raw] = await db.read(
    `SELECT ${selectList(toolCallColumns, 't')} FROM ${toolCalls} t JOIN ${messages} m ON m.id = t.message_id ` +
      'WHERE t.chat_id = $chatId AND (t.id = $call OR t.tool_call_id = $call OR t.provider_call_id = $call) ' +
      'ORDER BY CASE WHEN t.result_id IS NULL THEN 0 ELSE 1 END, m.position DESC LIMIT 1',
    { chatId, call },
    transaction,
  )
  return raw === undefined ? null : readToolCall(db, raw)
}

/** The message of this chat that requested just these calls; null where there is none. */
async function findRound(
  db: Database,
  chatId: string,
  toolCalls: readonly ToolCallRow[],
  transaction: Transaction,
): Promise<string | null> {
  const [first] = toolCalls
  if (first === undefined) return null
  const { toolCalls: table } = db.tables
  const rows = await db.read(
    `SELECT ${selectList(toolCallColumns, 't')} FROM ${table} t WHERE t.chat_id = $chatId AND t.message_id = ` +
      `(SELECT o.message_id FROM ${table} o WHERE o.chat_id = $chatId AND o.tool_call_id = $call) ORDER BY t.position`,
    { chatId, call: first.toolCallId },
    transaction,
  )
  const stored = rows.map((raw) => readToolCall(db, raw))
  const same = (call: ToolCallRow, at: number) =>
    call.toolCallId === stored[at]?.toolCallId &&
    call.name === stored[at].name &&
    isDeepStrictEqual(call.arguments, stored[at].arguments)
  return stored.length === toolCalls.length && toolCalls.every(same) ? (stored[0]?.messageId ?? null) : null
}

/** An id that another chat has already is kept as the provider's; within a chat it would be a mistake. */
async function makeIdsUnique(
  db: Database,
  chatId: string,
  toolCalls: readonly ToolCallRow[],
  transaction: Transaction,
): Promise<void> {
  if (toolCalls.length === 0) return
  const taken = await db.read(
    `SELECT t.tool_call_id AS toolCallId, t.chat_id AS chatId FROM ${db.tables.toolCalls} t ` +
      `WHERE t.tool_call_id IN (${toolCalls.map((_, at) => `$id${at}`).join(', ')})`,
    Object.fromEntries(toolCalls.map((call, at) => [`id${at}`, call.toolCallId])),
    transaction,
  )
  const seen = new Set(taken.filter((row) => row.chatId === chatId).map((row) => row.toolCallId))
  const elsewhere = new Set(taken.map((row) => row.toolCallId))
  for (const call of toolCalls) {
    if (seen.has(call.toolCallId)) {
      throw new ArgumentError(
        `Chat ${chatId} has a tool call ${call.toolCallId} already: the ids of its calls must differ.`,
        { chatId },
      )
    }
    seen.add(call.toolCallId)
    if (!elsewhere.has(call.toolCallId)) continue
    call.providerCallId = call.toolCallId
    call.toolCallId = freshCallId()
  }
}
