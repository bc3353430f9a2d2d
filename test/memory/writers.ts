import type { DecisionOutcome } from '../../models/decisions.ts'
import { userMessage } from '../../models/new-message.ts'
import type { Approval, QueuedMessageRow } from '../../models/rows.ts'
import type { Staged } from '../../models/staging.ts'
import { PendingToolCallsError } from '../../src/errors.ts'
import { openCalls } from '../../src/loop/transcript.ts'
import { type MemoryClaims, want } from './claims.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

// What applications write without holding the chat, in the words of `models/`.

/** Adds a user message behind everything queued, and starts a turn; while the chat is run it is queued. */
export function stage(tables: MemoryTables, chatId: string, { id, content }: { id: string; content: string }): Staged {
  const chat = tables.chat(chatId)
  if (isClaimed(chat, tables.now().getTime())) {
    return { kind: 'queued', queued: enqueue(tables, chatId, { id, content, steer: false }) }
  }
  const open = openCalls(tables.transcript(chatId, null))
  if (open.length > 0) {
    const calls = open.map((call) => `${call.name} (${call.toolCallId})`).join(', ')
    throw new PendingToolCallsError(`Chat ${chatId} waits for tool calls without a result: ${calls}.`, { chatId })
  }
  const drained = tables.queue(chatId)
  Object.assign(chat, { turn: chat.turn + 1, rounds: 0, compactions: 0 })
  Object.assign(chat, { failure: null, cancelledTurn: null, cancelTurn: null })
  tables.unqueue(drained.map((row) => row.id))
  const taken = drained.map((row) => userMessage(chatId, row.id, row))
  tables.append(chatId, [...taken, userMessage(chatId, id, { content, attachments: null })])
  return { kind: 'staged', drained, at: tables.now() }
}

/** Puts a message in the queue, and wants the chat run. */
export function enqueue(
  tables: MemoryTables,
  chatId: string,
  message: Pick<QueuedMessageRow, 'id' | 'content' | 'steer'>,
): QueuedMessageRow {
  const chat = tables.chat(chatId)
  chat.failure = null
  want(chat, tables.now())
  const row = {
    ...message,
    chatId,
    position: chat.nextQueuePosition++,
    owner: null,
    attachments: null,
    ownerKey: null,
    createdAt: tables.now(),
  }
  tables.queuedMessages.push(row)
  return row
}

/** Records a decision about a call, unless it is answered or being executed. */
export function decideCall(
  tables: MemoryTables,
  chatId: string,
  { id, approval }: { id: string; approval: Exclude<Approval, 'pending'> },
): DecisionOutcome {
  const chat = tables.chat(chatId)
  const call = tables.toolCalls(chatId).find((row) => row.id === id)
  if (call === undefined) return 'unknown'
  if (call.resultId !== null) return 'answered'
  const now = tables.now().getTime()
  if (call.claimedBy !== null && call.claimedBy === chat.claimedBy && isClaimed(chat, now)) return 'running'
  call.approval = approval
  want(chat, tables.now())
  return 'recorded'
}

/** Cancels the running, wanted or parked turn. False = there is nothing to cancel. */
export function cancel(tables: MemoryTables, claims: MemoryClaims, chatId: string): boolean {
  const chat = tables.chat(chatId)
  const claimed = isClaimed(chat, tables.now().getTime())
  if (chat.wantedAt === null && chat.compactAt === null && !claimed && !chat.parked) return false
  want(chat, tables.now())
  Object.assign(chat, { cancelTurn: chat.turn, cancelSeq: chat.wantedSeq, compactAttempts: 0, compactAt: null })
  claims.cancelled(chatId)
  return true
}
