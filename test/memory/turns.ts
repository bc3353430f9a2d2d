import type { ToolCallRow } from '../../models/rows.ts'
import { freshCallId, type NewResult } from '../../models/turns.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import { cancelSubChat } from './cancelling.ts'
import { fence, pass, prove, wishAfterCancel } from './fence.ts'
import type { MemoryTables } from './tables.ts'
import { noteDelivered } from './writers.ts'

type TurnRows = Pick<
  RowsPort,
  'commitAnswer' | 'startToolCall' | 'commitToolResult' | 'closeToolCalls' | 'takeQueued' | 'settleCancelled'
>

/** The transactions of `models/turns.ts`. */
export function turnRows(tables: MemoryTables, ttlMs: number): TurnRows {
  return {
    async commitAnswer(key, { message, toolCalls, usageIds }) {
      const chat = fence(tables, key, { messages: 1, round: toolCalls.length > 0, unlessCancelled: true })
      if (chat === null) return false
      if (toolCalls.some((call) => tables.isTaken(call.toolCallId))) {
        for (const call of toolCalls) {
          call.providerCallId ??= call.toolCallId
          call.toolCallId = freshCallId()
        }
      }
      tables.append(key.chatId, [message], toolCalls)
      linkUsages(tables, usageIds, message.id)
      return true
    },
    async startToolCall(key, { id, approval }) {
      if (fence(tables, key, { unlessCancelled: true }) === null) return false
      const call = tables.toolCall(id)
      if (!rests(call, approval)) return false
      const now = tables.now()
      Object.assign(call, {
        claimedBy: key.claimId,
        claimedUntil: new Date(now.getTime() + ttlMs),
        startedAt: now,
        updatedAt: now,
        // Begun and pending would read as a question about an interruption.
        approval: call.approval === 'pending' ? null : call.approval,
        askedAt: null,
        expiresAt: null,
      })
      return true
    },
    async commitToolResult(key, result) {
      const chat = prove(tables, key)
      if (chat === null || !canAnswer(tables, result)) return false
      pass(tables, chat, { messages: 1 })
      tables.append(key.chatId, [result.message])
      answerCall(tables, result)
      return true
    },
    async closeToolCalls(key, results) {
      fence(tables, key, { messages: results.length })
      insertResults(tables, key.chatId, results)
    },
    async takeQueued(key, { queued, messages, startsTurn }) {
      const chat = prove(tables, key, { unlessCancelled: !startsTurn })
      if (chat === null || !tables.unqueue(queued.map((row) => row.id))) return false
      pass(tables, chat, { messages: messages.length })
      if (startsTurn) Object.assign(chat, { turn: chat.turn + 1, rounds: 0, compactions: 0 })
      tables.append(key.chatId, messages)
      noteDelivered(tables, queued, messages)
      return true
    },
    async settleCancelled(key, { shown, usageIds, closed }) {
      const messages = (shown === null ? 0 : 1) + closed.length
      const chat = fence(tables, key, { messages })
      if (chat === null) return
      const { turn } = chat
      chat.wantedAt = wishAfterCancel(tables, chat)
      Object.assign(chat, { cancelledTurn: turn, endedTurn: turn, cancelTurn: null, attempts: 0, failure: null })
      Object.assign(chat, { deaths: 0, parked: false, claimedBy: null, claimedUntil: null })
      if (shown !== null) {
        tables.append(key.chatId, [shown])
        linkUsages(tables, usageIds, shown.id)
      }
      insertResults(tables, key.chatId, closed)
    },
  }
}

/** Whether a call is open and the decision about it is still that one. */
export function rests(call: ToolCallRow | null, approval: ToolCallRow['approval']): call is ToolCallRow {
  return call !== null && call.resultId === null && call.approval === approval
}

function insertResults(tables: MemoryTables, chatId: string, results: readonly NewResult[]): void {
  tables.append(
    chatId,
    results.map((result) => result.message),
  )
  for (const result of results) if (canAnswer(tables, result)) answerCall(tables, result)
}

function canAnswer(tables: MemoryTables, { callId, approval }: NewResult): boolean {
  const call = tables.toolCall(callId)
  return call !== null && call.resultId === null && (approval === undefined || call.approval === approval)
}

function answerCall(tables: MemoryTables, { callId, message, transfer, abandons }: NewResult): void {
  const call = tables.toolCall(callId)
  const nothing = { claimedBy: null, claimedUntil: null, startedAt: null, mcpState: null }
  if (call !== null) Object.assign(call, { ...nothing, resultId: message.id, updatedAt: tables.now() })
  if (transfer !== undefined) tables.chat(message.chatId).transferTo = transfer
  if (abandons !== undefined) cancelSubChat(tables, abandons)
}

/** Names the message that attempts led to. */
export function linkUsages(tables: MemoryTables, usageIds: readonly string[], messageId: string): void {
  for (const usage of tables.usages) if (usageIds.includes(usage.id)) usage.messageId = messageId
}
