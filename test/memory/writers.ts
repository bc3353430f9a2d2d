import { userMessage } from '../../models/new-message.ts'
import { isOwner, ownerKey } from '../../models/owner.ts'
import type { Posting } from '../../models/posting.ts'
import type { Queueing, Unqueued } from '../../models/queue.ts'
import type { Bell, ChatRow, QueuedMessageRow } from '../../models/rows.ts'
import type { PendingSettings } from '../../models/settings.ts'
import { type OpenCall, openRound, type Staged, type Staging } from '../../models/staging.ts'
import { ChatRunningError } from '../../src/errors.ts'
import { cancelTurn } from './cancelling.ts'
import { earliest, liftFailure, tryAgain, wakeUp } from './fence.ts'
import { savePending } from './settings.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

// What applications write without holding the chat: `models/{staging,posting,queue,wishes,receipts}.ts` in the same words.

/** @throws {PendingToolCallsError} */
export function stageMessage(tables: MemoryTables, staging: Staging): Staged {
  const chat = tables.chat(staging.chatId)
  if (isClaimed(chat, tables.now().getTime())) {
    return queueInstead(tables, chat, staging, { steer: false, owner: null, wake: true })
  }
  const open = openRoundOf(tables, chat.id)
  if (open.length > 0) throw openRound(chat.id, open)
  return stageNow(tables, chat, staging)
}

/** @throws {ChatRunningError} {PendingToolCallsError} */
export function postMessage(tables: MemoryTables, posting: Posting): Staged {
  const { chatId, whileRunning, owner, want } = posting
  const chat = tables.chat(chatId)
  const claimed = isClaimed(chat, tables.now().getTime())
  const open = openRoundOf(tables, chatId)
  if (!claimed && open.length === 0) return stageNow(tables, chat, posting)
  if (whileRunning === 'reject') {
    throw claimed ? new ChatRunningError(`Chat ${chatId} is being run.`, { chatId }) : openRound(chatId, open)
  }
  if (whileRunning === 'interrupt' && !cancelTurn(tables, chatId, null).includes(chatId)) {
    wakeUp(chat, tables.now())
    cancelTurn(tables, chatId, null)
  }
  return queueInstead(tables, chat, posting, { steer: whileRunning === 'steer', owner, wake: want })
}

function queueInstead(
  tables: MemoryTables,
  chat: ChatRow,
  { message, pending }: Pick<Staging, 'message' | 'pending'>,
  how: Pick<Queueing, 'steer' | 'owner' | 'wake'>,
): Staged {
  const queued = enqueueMessage(tables, { chatId: chat.id, ...message, ...how })
  savePending(tables, chat, pending)
  return { kind: 'queued', queued }
}

function stageNow(tables: MemoryTables, chat: ChatRow, staging: Staging): Staged {
  savePending(tables, chat, staging.pending)
  const now = tables.now()
  const drained = tables.queue(chat.id)
  Object.assign(chat, { turn: chat.turn + 1, rounds: 0, compactions: 0, updatedAt: now })
  liftFailure(chat)
  Object.assign(chat, { cancelledTurn: null, cancelTurn: null })
  if (staging.want) wakeUp(chat, now)
  const message = { ...userMessage(chat.id, staging.message.id, staging.message), createdAt: now }
  const taken = drained.map(staging.toMessage)
  tables.append(chat.id, [...taken, message])
  tables.unqueue(drained.map((row) => row.id))
  noteDelivered(tables, drained, taken)
  return { kind: 'staged', drained, at: message.createdAt }
}

/** The calls without a result of the last answer, whatever it says. */
function openRoundOf(tables: MemoryTables, chatId: string): OpenCall[] {
  const last = tables
    .messages(chatId)
    .findLast(({ role, summaryThrough }) => role !== 'system' && role !== 'tool' && summaryThrough === null)
  return tables.toolCalls(chatId).filter((call) => call.messageId === last?.id && call.resultId === null)
}

export function enqueueMessage(tables: MemoryTables, queueing: Queueing): QueuedMessageRow {
  const { chatId, id, content, attachments, steer, owner, wake } = queueing
  const chat = tables.chat(chatId)
  const now = tables.now()
  const key = isOwner(owner) ? ownerKey(owner) : null
  const position = chat.nextQueuePosition++
  wakeUp(chat, now, wake)
  liftFailure(chat)
  chat.updatedAt = now
  const row = { id, chatId, position, content, attachments, steer, owner, ownerKey: key, createdAt: now }
  tables.queuedMessages.push(row)
  return { ...row }
}

export function unqueueMessage(tables: MemoryTables, chatId: string, id: string): Unqueued {
  const row = tables.queue(tables.chat(chatId).id).find((queued) => queued.id === id)
  if (row === undefined || !tables.unqueue([id])) return { removed: false, files: [] }
  const left = { id, chatId, messageId: null, queuedAt: row.createdAt, settledAt: tables.now() }
  tables.receipts.push({ ...left, status: 'unqueued' })
  return { removed: true, files: row.attachments ?? [] }
}

export function wantChat(
  tables: MemoryTables,
  chatId: string,
  { delayMs, pending, queue }: { readonly delayMs: number; readonly pending: PendingSettings; readonly queue: Bell },
): void {
  const chat = tables.chat(chatId)
  const now = tables.now()
  savePending(tables, chat, pending)
  tryAgain(chat)
  chat.wantedAt = earliest(chat.wantedAt, new Date(now.getTime() + delayMs))
  Object.assign(chat, { wantedSeq: chat.wantedSeq + 1, wantedQueue: queue, updatedAt: now })
}

/** Keeps which messages of the transcript queued ones became. */
export function noteDelivered(
  tables: MemoryTables,
  queued: readonly QueuedMessageRow[],
  messages: readonly { readonly id: string; readonly createdAt: Date }[],
): void {
  for (const [at, { id, chatId, createdAt: queuedAt }] of queued.entries()) {
    const message = messages[at]
    if (message === undefined) continue
    const settled = { messageId: message.id, settledAt: message.createdAt }
    tables.receipts.push({ id, chatId, status: 'delivered', queuedAt, ...settled })
  }
}
