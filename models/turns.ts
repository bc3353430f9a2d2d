import { type Transaction, UniqueConstraintError } from 'sequelize'
import { v7 as uuid } from 'uuid'
import { isRefusedStatement } from '../config/refused-statement.ts'
import { DamagedChatError } from '../src/errors.ts'
import { holdBlobs } from './blobs.ts'
import { cancelSubChat } from './cancelling.ts'
import { type ClaimKey, fence } from './claims.ts'
import { messageColumns, toolCallColumns } from './columns.ts'
import type { Database } from './database.ts'
import { noteDelivered } from './receipts.ts'
import type { Approval, MessageRow, QueuedMessageRow, ToolCallRow, Transfer } from './rows.ts'
import { storableJson } from './storable.ts'

// Everything here is written by the run that holds the chat, each in one fenced transaction.

/** Rows that one statement names: placeholders are limited. */
const ROWS_AT_ONCE = 500

/** A message to insert: its time is the process's, its place is the end of the transcript. */
export type NewMessage = Omit<MessageRow, 'position' | 'updatedAt'>

/** The attempts that led to a message, failed ones included. */
export interface UsageLink {
  readonly usageIds: readonly string[]
  /** Told when the database refuses to name the message in their entries; the message is stored all the same. (S83) */
  readonly onUnlinked: (error: unknown) => void
}

export interface NewAnswer extends UsageLink {
  readonly message: NewMessage
  readonly toolCalls: readonly ToolCallRow[]
}

/**
 * Commits an answer: the message, its calls, the link of its usage entries. False = the turn was cancelled, nothing was
 * written. Call ids that the table holds already are replaced by fresh ones; the calls handed in are updated to match.
 */
export async function commitAnswer(db: Database, key: ClaimKey, answer: NewAnswer): Promise<boolean> {
  const commit = () =>
    db.transaction(async (transaction) => {
      const round = answer.toolCalls.length > 0
      if (!(await fence(db, transaction, key, { messages: 1, round, unlessCancelled: true }))) return false
      await insertMessages(db, [answer.message], transaction)
      await db.insert<ToolCallRow>(db.tables.toolCalls, toolCallColumns, answer.toolCalls, { transaction })
      await linkUsages(db, answer, answer.message.id, transaction)
      return true
    })
  try {
    return await commit()
  } catch (error) {
    if (!isTakenCallId(error)) throw error
    for (const call of answer.toolCalls) {
      call.providerCallId ??= call.toolCallId
      call.toolCallId = freshCallId()
    }
    return commit()
  }
}

/** An id for a call whose provider sent none that can be unique here. */
export function freshCallId(): string {
  return `call_${uuid().replaceAll('-', '')}`
}

/**
 * Marks a call as being executed under this claim. False = it was answered, the decision that it rests on has changed,
 * or the turn was cancelled: look again.
 */
export async function startToolCall(
  db: Database,
  key: ClaimKey,
  call: { readonly id: string; readonly approval: Approval | null; readonly ttlMs: number },
): Promise<boolean> {
  return db.transaction(async (transaction) => {
    if (!(await fence(db, transaction, key, { unlessCancelled: true }))) return false
    const rows = await db.write(
      `UPDATE ${db.tables.toolCalls} SET claimed_by = $claimId, claimed_until = ${db.dialect.nowPlus('$ttlMs')}, ` +
        `started_at = ${db.dialect.now}, updated_at = ${db.dialect.now}, ` +
        // Begun and pending would read as a question about an interruption.
        "approval = CASE WHEN approval = 'pending' THEN NULL ELSE approval END, asked_at = NULL, expires_at = NULL " +
        `WHERE id = $callId AND result_id IS NULL AND COALESCE(approval, '') = $approval`,
      { callId: call.id, claimId: key.claimId, ttlMs: call.ttlMs, approval: call.approval ?? '' },
      transaction,
    )
    return rows === 1
  })
}

export interface NewResult {
  readonly callId: string
  readonly message: NewMessage
  /** The decision that the result rests on; left out, any will do. */
  readonly approval?: Approval | null
  /** The agent that is to go on once the round is whole. */
  readonly transfer?: Transfer
  /** The sub-chat that this result does not wait for any longer: its turn is cancelled. */
  readonly abandons?: string
  /** Makes sure that the bytes of the message's files are there; called once they are held. (E61) */
  readonly keep?: () => Promise<void>
}

class NotApplied extends Error {}

/** Stores the result of one call, which holds its files. False = it has one, or the decision that this one rests on has changed. */
export async function commitToolResult(db: Database, key: ClaimKey, result: NewResult): Promise<boolean> {
  try {
    await db.transaction(async (transaction) => {
      await fence(db, transaction, key, { messages: 1 })
      await holdBlobs(db, result.message.attachments ?? [], transaction)
      await insertMessages(db, [result.message], transaction)
      if (!(await answerCall(db, result, transaction))) throw new NotApplied()
      await result.keep?.()
    })
    return true
  } catch (error) {
    if (error instanceof NotApplied) return false
    throw error
  }
}

/** Closes calls that will never run, each with its own result, in one transaction. */
export async function closeToolCalls(db: Database, key: ClaimKey, results: readonly NewResult[]): Promise<void> {
  await db.transaction(async (transaction) => {
    await fence(db, transaction, key, { messages: results.length })
    await insertResults(db, results, transaction)
  })
}

/**
 * Moves queued messages into the transcript, `messages` in the order of `queued`. False = one of them was unqueued meanwhile, or the turn was cancelled:
 * look again, nothing was moved.
 */
export async function takeQueued(
  db: Database,
  key: ClaimKey,
  take: {
    readonly queued: readonly QueuedMessageRow[]
    readonly messages: readonly NewMessage[]
    readonly startsTurn: boolean
  },
): Promise<boolean> {
  try {
    await db.transaction(async (transaction) => {
      const passed = await fence(db, transaction, key, {
        messages: take.messages.length,
        unlessCancelled: !take.startsTurn,
        ...(take.startsTurn ? { also: 'turn = turn + 1, rounds = 0, compactions = 0' } : {}),
      })
      if (!passed) throw new NotApplied()
      if ((await deleteQueued(db, take.queued, transaction)) !== take.queued.length) throw new NotApplied()
      await insertMessages(db, take.messages, transaction)
      await noteDelivered(db, take.queued, take.messages, transaction)
    })
    return true
  } catch (error) {
    if (error instanceof NotApplied) return false
    throw error
  }
}

/**
 * Consumes the cancel of the running turn and gives the chat back in the same statement: what was shown becomes a
 * message, open calls are closed, and the wish goes unless something newer waits.
 */
export async function settleCancelled(
  db: Database,
  key: ClaimKey,
  settled: UsageLink & {
    readonly shown: NewMessage | null
    readonly closed: readonly NewResult[]
  },
): Promise<void> {
  const shown = settled.shown === null ? [] : [settled.shown]
  await db.transaction(async (transaction) => {
    await fence(db, transaction, key, {
      messages: shown.length + settled.closed.length,
      also:
        `wanted_at = CASE WHEN wanted_seq <= cancel_seq AND NOT EXISTS (SELECT 1 FROM ${db.tables.queuedMessages} q ` +
        `WHERE q.chat_id = $chatId) THEN NULL ELSE wanted_at END, cancelled_turn = turn, ended_turn = turn, cancel_turn = NULL, ` +
        'attempts = 0, deaths = 0, failure = NULL, parked = 0, claimed_by = NULL, claimed_until = NULL',
    })
    await insertMessages(db, shown, transaction, shown.length + settled.closed.length)
    if (settled.shown !== null) await linkUsages(db, settled, settled.shown.id, transaction)
    await insertResults(db, settled.closed, transaction)
  })
}

/**
 * Inserts messages at the end of a chat. The transaction has locked the chat row and reserved their positions in it.
 */
export async function insertMessages(
  db: Database,
  messages: readonly NewMessage[],
  transaction: Transaction,
  reserved = messages.length,
): Promise<void> {
  const rows = messages.map((message) => ({ ...message, updatedAt: message.createdAt }))
  const next = `(SELECT c.next_position FROM ${db.tables.chats} c WHERE c.id = $chatId0)`
  try {
    await db.insert<MessageRow>(db.tables.messages, messageColumns, rows, {
      transaction,
      computed: { position: (at) => `${next} - ${reserved - at}` },
    })
  } catch (error) {
    throw isTakenPosition(error) ? placesTaken(messages[0]?.chatId, error) : error
  }
}

function isTakenPosition(error: unknown): boolean {
  return error instanceof UniqueConstraintError && /position/.test(JSON.stringify(error.fields) + error.message)
}

function placesTaken(chatId = '', cause: unknown): DamagedChatError {
  return new DamagedChatError(
    `Chat ${chatId} can't take a message: its next_position is behind the positions of its messages. Set it to one more than the last.`,
    { chatId, cause },
  )
}

/** Returns how many there were to delete. */
export async function deleteQueued(
  db: Database,
  queued: readonly { readonly id: string }[],
  transaction: Transaction,
): Promise<number> {
  let deleted = 0
  for (let from = 0; from < queued.length; from += ROWS_AT_ONCE) {
    const some = queued.slice(from, from + ROWS_AT_ONCE)
    deleted += await db.write(
      `DELETE FROM ${db.tables.queuedMessages} WHERE id IN (${some.map((_, at) => `$id${at}`).join(', ')})`,
      Object.fromEntries(some.map((row, at) => [`id${at}`, row.id])),
      transaction,
    )
  }
  return deleted
}

async function insertResults(db: Database, results: readonly NewResult[], transaction: Transaction): Promise<void> {
  await insertMessages(
    db,
    results.map((result) => result.message),
    transaction,
  )
  for (const result of results) await answerCall(db, result, transaction)
}

async function answerCall(db: Database, result: NewResult, transaction: Transaction): Promise<boolean> {
  const bound = result.approval !== undefined
  const rows = await db.write(
    `UPDATE ${db.tables.toolCalls} SET result_id = $resultId, claimed_by = NULL, claimed_until = NULL, started_at = NULL, ` +
      `mcp_state = NULL, updated_at = ${db.dialect.now} WHERE id = $callId AND result_id IS NULL` +
      (bound ? ` AND COALESCE(approval, '') = $approval` : ''),
    { callId: result.callId, resultId: result.message.id, ...(bound ? { approval: result.approval ?? '' } : {}) },
    transaction,
  )
  if (rows === 1 && result.transfer !== undefined)
    await wantTransfer(db, result.message.chatId, result.transfer, transaction)
  if (rows === 1 && result.abandons !== undefined) await cancelSubChat(db, result.abandons, transaction)
  return rows === 1
}

async function wantTransfer(db: Database, chatId: string, transfer: Transfer, transaction: Transaction): Promise<void> {
  await db.write(
    `UPDATE ${db.tables.chats} SET transfer_to = $transfer WHERE id = $chatId`,
    { chatId, transfer: storableJson('transfer', transfer) },
    transaction,
  )
}

/**
 * Names the message that attempts led to; an entry that is not there is none to name it in. A refused statement undoes itself
 * alone, on both databases, so the rest of the transaction stands.
 */
export async function linkUsages(
  db: Database,
  { usageIds, onUnlinked }: UsageLink,
  messageId: string,
  transaction: Transaction,
): Promise<void> {
  if (usageIds.length === 0) return
  try {
    await db.write(
      `UPDATE ${db.tables.usages} SET message_id = $messageId WHERE id IN (${usageIds.map((_, at) => `$id${at}`).join(', ')})`,
      { messageId, ...Object.fromEntries(usageIds.map((id, at) => [`id${at}`, id])) },
      transaction,
    )
  } catch (error) {
    if (!isRefusedStatement(error)) throw error
    onUnlinked(error)
  }
}

function isTakenCallId(error: unknown): boolean {
  return error instanceof UniqueConstraintError && /tool_call_id/.test(JSON.stringify(error.fields) + error.message)
}
