import type { Role, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { openRequests, openSubChat, pauseOf } from '../../models/waiting.ts'

// Readings of a transcript that every decision rests on. Pure: rows in, facts out.

/** An assistant row that says nothing at all; only a transcript from elsewhere can hold one. It answers nothing and is never sent. */
export function isBlank(message: TranscriptMessage): boolean {
  return (
    message.role === 'assistant' &&
    message.toolCalls.length === 0 &&
    (message.content ?? '').trim() === '' &&
    (message.thinkingText ?? '') === '' &&
    message.rawReasoning === null
  )
}

/** A compaction's summary: it stands for earlier messages in requests, and is no message to anything else. */
export function isSummary(message: TranscriptMessage): boolean {
  return message.summaryThrough !== null
}

/** The summary that stands for the beginning of the transcript; null without one. */
export function newestSummary(transcript: readonly TranscriptMessage[]): TranscriptMessage | null {
  return transcript.findLast(isSummary) ?? null
}

/** What the newest summary does not stand for: no system messages, no summaries, nothing blank. */
export function currentMessages(transcript: readonly TranscriptMessage[]): TranscriptMessage[] {
  const through = newestSummary(transcript)?.summaryThrough ?? -1
  return transcript.filter(
    (message) => message.position > through && message.role !== 'system' && !isSummary(message) && !isBlank(message),
  )
}

function lastWhere(
  transcript: readonly TranscriptMessage[],
  matches: (message: TranscriptMessage) => boolean,
): TranscriptMessage | null {
  return transcript.findLast((message) => !isBlank(message) && !isSummary(message) && matches(message)) ?? null
}

const unless =
  (...roles: Role[]) =>
  (message: TranscriptMessage) =>
    !roles.includes(message.role)

/** The last message that is neither a system message nor a tool result. */
export function latestResponse(transcript: readonly TranscriptMessage[]): TranscriptMessage | null {
  return lastWhere(transcript, unless('system', 'tool'))
}

/**
 * The last message that is not a system message, or else the last message. What verbs return. Null also where all that was
 * read of a transcript is a summary.
 */
export function latestMessage(transcript: readonly TranscriptMessage[]): TranscriptMessage | null {
  const latest = lastWhere(transcript, unless('system'))
  if (latest !== null || transcript.some(isSummary)) return latest
  return transcript.at(-1) ?? null
}

/** The calls without a result of the latest response, in the model's order: the open round. */
export function openCalls(transcript: readonly TranscriptMessage[]): ToolCallRow[] {
  return unanswered(latestResponse(transcript))
}

/** Calls without a result of earlier responses: their rounds were abandoned, they will never run. */
export function abandonedCalls(transcript: readonly TranscriptMessage[]): ToolCallRow[] {
  const latest = latestResponse(transcript)
  return transcript.filter((message) => message !== latest).flatMap(unanswered)
}

function unanswered(message: TranscriptMessage | null): ToolCallRow[] {
  return message === null ? [] : message.toolCalls.filter((call) => call.resultId === null)
}

/** Whether the transcript has work for the loop: an answer to generate, or calls to run. */
export function hasPendingWork(transcript: readonly TranscriptMessage[]): boolean {
  if (openCalls(transcript).length > 0) return true
  const last = lastWhere(transcript, unless('system'))
  return last !== null && (last.role !== 'assistant' || last.toolCalls.length > 0)
}

/** Whether a call waits on something outside: a decision, or what it paused on. */
export function isWaiting(call: ToolCallRow): boolean {
  return call.approval === 'pending' || isPaused(call)
}

/**
 * A call waits on a sub-chat, on a task, or on a question that has no answer yet; once all of them have one it can go on. One that
 * was denied waits for nothing.
 */
export function isPaused(call: ToolCallRow): boolean {
  if (call.approval === 'denied') return false
  return pauseOf(call).task !== undefined || openSubChat(call) !== null || openRequests(call).length > 0
}

/** A tool that was approved for the rest of the chat. */
export type RememberedTool = Pick<ToolCallRow, 'name' | 'namespace'>

/**
 * Whether an earlier call of the same tool was approved for the rest of the chat.
 * @param earlier those of messages that were not read.
 */
export function isRemembered(
  transcript: readonly TranscriptMessage[],
  call: RememberedTool,
  earlier: readonly RememberedTool[],
): boolean {
  if (earlier.some((other) => other.name === call.name && other.namespace === call.namespace)) return true
  return transcript.some((message) =>
    message.toolCalls.some(
      (other) => other.approval === 'remembered' && other.name === call.name && other.namespace === call.namespace,
    ),
  )
}
