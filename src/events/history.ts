import type { QueuedMessageRow, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import { openRequests, openSubChat } from '../../models/waiting.ts'
import { eventAttachments } from './attachments.ts'
import type { LiveEvent } from './event.ts'
import type { RunEnd } from './run-end.ts'
import { eventToolCall } from './tool-call.ts'

/** The rows that viewers are told of. */
export interface RowsOfChat {
  readonly look: ChatLook
  readonly transcript: readonly TranscriptMessage[]
  readonly queue: readonly QueuedMessageRow[]
  /** Open calls of the sub-chats that it waits for. */
  readonly below: readonly ToolCallRow[]
}

/**
 * Whether nobody runs the chat and nobody wants it run, or only later, since what it waits for may not come. A claim that lapsed
 * is a dead worker's: another goes on. (E48)
 */
export function isAtRest({ chat, due }: Pick<ChatLook, 'chat' | 'due'>): boolean {
  if (chat.claimedBy !== null) return false
  return chat.wantedAt === null || (chat.parked && !due && chat.putOff === 0)
}

/** What the rows say has happened, in the order in which it did: as much as events would have told. */
export function historyOf(rows: RowsOfChat): LiveEvent[] {
  const { look, queue, below } = rows
  const transcript = rows.transcript.filter(isShown)
  const calls = new Map(
    transcript.flatMap(({ toolCalls }) => toolCalls.map((call) => [call.resultId ?? '', call] as const)),
  )
  const end = endOf(rows)
  return [
    ...(look.chat.claimedBy === null ? [] : [{ type: 'run.started', turn: look.chat.turn } as const]),
    ...transcript.flatMap((message) => eventsOf(message, calls.get(message.id))),
    ...below.filter(({ approval }) => approval === 'pending').flatMap(approvalOf),
    ...below.flatMap(questionsOf),
    ...queue.map(({ id, content, steer }) => ({ type: 'queued', queuedId: id, content, steer }) as const),
    ...(end === null ? [] : [end]),
  ]
}

function eventsOf(message: TranscriptMessage, answered: ToolCallRow | undefined): LiveEvent[] {
  const { id, role, content, finishReason, outcome, attachments, toolCalls } = message
  if (role === 'tool' && answered !== undefined) {
    const { toolCallId, name } = answered
    const told = { toolCallId, name, outcome: outcome ?? 'succeeded', content: content ?? '' }
    return [{ type: 'tool.result', ...told, attachments: eventAttachments(attachments) }]
  }
  if (role !== 'assistant') return []
  return [
    { type: 'message.finished', messageId: id, text: content, finishReason },
    ...toolCalls.map(
      (call) => ({ type: 'tool_call.requested', messageId: id, toolCall: eventToolCall(call) }) as const,
    ),
    ...toolCalls.flatMap(approvalOf),
    ...toolCalls.flatMap(questionsOf),
    ...toolCalls.flatMap(subChatOf),
  ]
}

function approvalOf(call: ToolCallRow): LiveEvent[] {
  const toolCall = eventToolCall(call)
  if (call.approval === null) return []
  if (call.approval === 'pending') return [{ type: 'approval.requested', toolCall }]
  return [{ type: 'approval.decided', toolCall, approval: call.approval }]
}

function questionsOf(call: ToolCallRow): LiveEvent[] {
  const { toolCallId, name } = call
  return openRequests(call).map(({ key, message, fields }) => ({
    type: 'input.requested',
    toolCallId,
    name,
    key,
    message,
    fields,
  }))
}

function subChatOf(call: ToolCallRow): LiveEvent[] {
  const { toolCallId, name } = call
  const subChat = openSubChat(call)
  return subChat === null
    ? []
    : [{ type: 'sub_chat.started', toolCallId, name, subChatId: subChat.id, agent: subChat.agent }]
}

/** How the last turn ended; null while it goes on, or where there was none. */
export function endOf({ look, ...rows }: Pick<RowsOfChat, 'look' | 'transcript'>): RunEnd | null {
  const { chat } = look
  const transcript = rows.transcript.filter(isShown)
  if (!isAtRest(look)) return null
  if (chat.failure !== null) return { type: 'run.failed', failure: chat.failure, retryInMs: null }
  const answer = transcript.findLast(({ role }) => role === 'assistant')
  if (chat.parked) {
    const open = answer?.toolCalls.filter(({ resultId }) => resultId === null) ?? []
    return { type: 'run.waiting', toolCalls: open.map(eventToolCall) }
  }
  if (chat.turn > 0 && chat.cancelledTurn === chat.turn) return { type: 'run.cancelled' }
  const last = transcript.findLast(({ role }) => role !== 'system')
  return chat.claimToken > 0 && answer !== undefined && answer === last && answer.toolCalls.length === 0
    ? { type: 'run.finished', messageId: answer.id }
    : null
}

/** A summary stands for other messages, which viewers were told of. */
function isShown({ summaryThrough }: TranscriptMessage): boolean {
  return summaryThrough === null
}
