import { type ClaimKey, claimLost, type WishAfter } from '../../models/claims.ts'
import type { CompactWishAfter, MeasuredContext } from '../../models/compaction.ts'
import type { ChatRow, ToolCallRow } from '../../models/rows.ts'
import { freshCallId, type NewResult } from '../../models/turns.ts'
import { openRequests } from '../../models/waiting.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

/** The rows of chats that live in this process alone: each statement of `models/` in the same words. */
export function memoryRows(tables: MemoryTables): RowsPort {
  return {
    look: async (chatId) => tables.look(chatId),
    transcript: async (chatId, through) => tables.transcript(chatId, through),
    remembered: async (chatId) =>
      tables
        .toolCalls(chatId)
        .filter((call) => call.approval === 'remembered')
        .map(({ name, namespace }) => ({ name, namespace })),
    measuredContext: async (chatId) => measuredContext(tables, chatId),
    toolCalls: async (messageId) => callsOf(tables, messageId),
    queue: async (chatId) => tables.queue(chatId).map((row) => ({ ...row })),
    ...answers(tables),
    ...calls(tables),
    ...endings(tables),
    ...summaries(tables),
    ...usages(tables),
  }
}

function answers(tables: MemoryTables): Pick<RowsPort, 'commitAnswer' | 'takeQueued'> {
  return {
    async commitAnswer(key, { message, toolCalls, usageIds }) {
      const chat = fence(tables, key)
      if (isCancelled(chat)) return false
      for (const call of toolCalls) {
        if (!isTaken(tables, call.toolCallId)) continue
        call.providerCallId ??= call.toolCallId
        call.toolCallId = freshCallId()
      }
      moved(chat)
      if (toolCalls.length > 0) chat.rounds++
      tables.append(key.chatId, [message], toolCalls)
      linkUsages(tables, usageIds, message.id)
      return true
    },
    async takeQueued(key, { queued, messages, startsTurn }) {
      const chat = fence(tables, key)
      if (!startsTurn && isCancelled(chat)) return false
      if (!tables.unqueue(queued.map((row) => row.id))) return false
      moved(chat)
      if (startsTurn) Object.assign(chat, { turn: chat.turn + 1, rounds: 0, compactions: 0 })
      tables.append(key.chatId, messages)
      return true
    },
  }
}

type CallRows = Pick<
  RowsPort,
  | 'startToolCall'
  | 'setApproval'
  | 'pauseToolCall'
  | 'commitToolResult'
  | 'reportToParent'
  | 'transfer'
  | 'closeToolCalls'
>

function calls(tables: MemoryTables): CallRows {
  return {
    async startToolCall(key, { id, approval }) {
      const chat = fence(tables, key)
      const call = tables.toolCall(id)
      if (isCancelled(chat) || !rests(call, approval)) return false
      const now = tables.now()
      // Begun and pending would read as a question about an interruption.
      const decided = call.approval === 'pending' ? null : call.approval
      Object.assign(call, {
        claimedBy: key.claimId,
        claimedUntil: chat.claimedUntil,
        startedAt: now,
        approval: decided,
        askedAt: null,
        expiresAt: null,
      })
      return true
    },
    async setApproval(key, { id, from, to, interrupted, expiresAt = null, expired }) {
      fence(tables, key)
      const call = tables.toolCall(id)
      if (!rests(call, from)) return false
      const askedAt = expired === undefined ? (call.askedAt ?? tables.now()) : null
      Object.assign(call, { approval: to, askedAt, expiresAt, decisionReason: expired ?? null })
      if (interrupted) Object.assign(call, { claimedBy: null, claimedUntil: null })
      return true
    },
    async pauseToolCall(key, { id, state, expired }) {
      fence(tables, key)
      const call = tables.toolCall(id)
      if (call === null || call.resultId !== null) return false
      const open = openRequests(call).map((request) => request.key)
      if (expired !== undefined && !expired.seen.every((one) => open.includes(one))) return false
      Object.assign(call, { mcpState: state, claimedBy: null, claimedUntil: null, startedAt: null })
      return true
    },
    async commitToolResult(key, result) {
      const chat = fence(tables, key)
      if (!canAnswer(tables, result)) return false
      moved(chat)
      answerCall(tables, key.chatId, result)
      return true
    },
    // Chats in memory have no parents, and one agent.
    reportToParent: async () => false,
    transfer: async () => {},
    async closeToolCalls(key, results) {
      moved(fence(tables, key))
      for (const result of results) answerCall(tables, key.chatId, result)
    },
  }
}

function endings(tables: MemoryTables): Pick<RowsPort, 'release' | 'settleCancelled'> {
  return {
    async release(key, { seen, wish, parked, failure, turnEnded }) {
      const chat = heldChat(tables, key)
      if (chat === null) return false
      const wanted = chat.wantedSeq !== seen
      if (wish.kind !== 'later') chat.attempts = 0
      chat.putOff = wish.kind === 'put-off' ? chat.putOff + 1 : 0
      if (!wanted) chat.wantedAt = dueAfter(chat, wish, tables.now())
      if (wish.kind === 'none' && !wanted) chat.cancelTurn = null
      chat.failure = wanted ? null : failure
      if (turnEnded && (failure === null || !wanted)) chat.endedTurn = chat.turn
      chat.wantedQueue = wish.kind === 'now' ? wish.queue : null
      Object.assign(chat, { claimedBy: null, claimedUntil: null, parked, updatedAt: tables.now() })
      return true
    },
    async settleCancelled(key, { shown, usageIds, closed }) {
      const chat = fence(tables, key)
      if (shown !== null) {
        tables.append(key.chatId, [shown])
        linkUsages(tables, usageIds, shown.id)
      }
      for (const result of closed) answerCall(tables, key.chatId, result)
      meetCancel(tables, chat)
      Object.assign(chat, { cancelledTurn: chat.turn, endedTurn: chat.turn, attempts: 0, failure: null, parked: false })
    },
  }
}

type SummaryRows = Pick<
  RowsPort,
  'countCompaction' | 'commitSummary' | 'releaseCompaction' | 'releaseCancelledCompaction'
>

function summaries(tables: MemoryTables): SummaryRows {
  return {
    async countCompaction(key) {
      const chat = fence(tables, key)
      if (isCancelled(chat)) return false
      chat.compactions++
      return true
    },
    async commitSummary(key, { message, usageIds, seen }) {
      const chat = fence(tables, key)
      if (isCancelled(chat)) return false
      if (chat.compactSeq === seen) chat.compactAt = null
      tables.append(key.chatId, [message])
      linkUsages(tables, usageIds, message.id)
      return true
    },
    async releaseCompaction(key, { seen, wish }) {
      const chat = heldChat(tables, key)
      if (chat === null) return false
      if (chat.compactSeq === seen) chat.compactAt = compactDueAfter(chat, wish, tables.now())
      if (wish.kind === 'none') chat.compactAttempts = 0
      Object.assign(chat, { claimedBy: null, claimedUntil: null })
      return true
    },
    async releaseCancelledCompaction(key) {
      const chat = heldChat(tables, key)
      if (chat === null) return false
      meetCancel(tables, chat)
      return true
    },
  }
}

function usages(tables: MemoryTables): Pick<RowsPort, 'openUsage' | 'closeUsage' | 'closeOrphanedUsages'> {
  return {
    async openUsage(usage) {
      const now = tables.now()
      tables.usages.push({
        ...unreported,
        ...usage,
        messageId: null,
        status: 'pending',
        createdAt: now,
        updatedAt: now,
      })
    },
    async closeUsage(id, closing) {
      const usage = tables.usages.find((row) => row.id === id)
      if (usage !== undefined) Object.assign(usage, closing, { updatedAt: tables.now() })
    },
    async closeOrphanedUsages(chatId, claimToken) {
      for (const usage of tables.usages) {
        if (usage.chatId !== chatId || usage.status !== 'pending' || usage.claimToken >= claimToken) continue
        Object.assign(usage, { status: 'failed', errorCode: 'orphaned', updatedAt: tables.now() })
      }
    },
  }
}

/** @throws {ClaimLostError} {ChatNotFoundError} */
function fence(tables: MemoryTables, key: ClaimKey): ChatRow {
  tables.chat(key.chatId)
  const chat = heldChat(tables, key)
  if (chat === null) throw claimLost(key.chatId)
  chat.updatedAt = tables.now()
  return chat
}

function heldChat(tables: MemoryTables, { chatId, claimId }: ClaimKey): ChatRow | null {
  const chat = tables.chats.get(chatId)
  return chat !== undefined && chat.claimedBy === claimId && isClaimed(chat, tables.now().getTime()) ? chat : null
}

/** A message is progress of the turn. */
function moved(chat: ChatRow): void {
  chat.attempts = 0
  chat.putOff = 0
}

function isCancelled(chat: ChatRow): boolean {
  return chat.cancelTurn !== null && chat.cancelTurn === chat.turn
}

/** Consumes a cancel and gives the chat back: the wish goes unless something newer waits. */
function meetCancel(tables: MemoryTables, chat: ChatRow): void {
  const newer = chat.wantedSeq > (chat.cancelSeq ?? -1) || tables.queue(chat.id).length > 0
  if (!newer) chat.wantedAt = null
  Object.assign(chat, { cancelTurn: null, claimedBy: null, claimedUntil: null })
}

function dueAfter(chat: ChatRow, wish: WishAfter, now: Date): Date | null {
  switch (wish.kind) {
    case 'none':
      return null
    case 'now':
      return chat.wantedAt === null || chat.wantedAt > now ? now : chat.wantedAt
    case 'later':
    case 'look-again':
    case 'put-off':
      return new Date(now.getTime() + wish.delayMs)
    default:
      return wish satisfies never
  }
}

function compactDueAfter(chat: ChatRow, wish: CompactWishAfter, now: Date): Date | null {
  if (wish.kind === 'unchanged') return chat.compactAt
  return wish.kind === 'none' ? null : new Date(now.getTime() + wish.delayMs)
}

function rests(call: ToolCallRow | null, approval: ToolCallRow['approval']): call is ToolCallRow {
  return call !== null && call.resultId === null && call.approval === approval
}

function canAnswer(tables: MemoryTables, { callId, approval }: NewResult): boolean {
  const call = tables.toolCall(callId)
  return call !== null && call.resultId === null && (approval === undefined || call.approval === approval)
}

function answerCall(tables: MemoryTables, chatId: string, result: NewResult): void {
  tables.append(chatId, [result.message])
  const call = tables.toolCall(result.callId)
  if (call === null || !canAnswer(tables, result)) return
  Object.assign(call, {
    resultId: result.message.id,
    claimedBy: null,
    claimedUntil: null,
    startedAt: null,
    mcpState: null,
  })
}

function linkUsages(tables: MemoryTables, usageIds: readonly string[], messageId: string): void {
  for (const usage of tables.usages) if (usageIds.includes(usage.id)) usage.messageId = messageId
}

function isTaken(tables: MemoryTables, toolCallId: string): boolean {
  return [...tables.chats.keys()].some((id) => tables.toolCalls(id).some((call) => call.toolCallId === toolCallId))
}

function callsOf(tables: MemoryTables, messageId: string): ToolCallRow[] {
  const calls = [...tables.chats.keys()].flatMap((id) => tables.toolCalls(id))
  return calls.filter((call) => call.messageId === messageId).map((call) => ({ ...call }))
}

function measuredContext(tables: MemoryTables, chatId: string): MeasuredContext | null {
  const measured = tables.usages.findLast(
    ({ chatId: of, operation, status, messageId }) =>
      of === chatId && operation === 'chat' && status === 'succeeded' && messageId !== null,
  )
  if (measured === undefined || measured.messageId === null) return null
  const { messageId, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = measured
  if (inputTokens === null || outputTokens === null) return null
  return { messageId, tokens: inputTokens + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0) + outputTokens }
}

const unreported = {
  inputTokens: null,
  outputTokens: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  thinkingTokens: null,
  inputCost: null,
  outputCost: null,
  cacheReadCost: null,
  cacheWriteCost: null,
  totalCost: null,
  errorCode: null,
}
