import type { Role, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'

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

function lastWhere(
  transcript: readonly TranscriptMessage[],
  matches: (message: TranscriptMessage) => boolean,
): TranscriptMessage | null {
  return transcript.findLast((message) => !isBlank(message) && matches(message)) ?? null
}

const unless =
  (...roles: Role[]) =>
  (message: TranscriptMessage) =>
    !roles.includes(message.role)

/** The last message that is neither a system message nor a tool result. */
export function latestResponse(transcript: readonly TranscriptMessage[]): TranscriptMessage | null {
  return lastWhere(transcript, unless('system', 'tool'))
}

/** The last message that is not a system message, or else the last message. What verbs return. */
export function latestMessage(transcript: readonly TranscriptMessage[]): TranscriptMessage | null {
  return lastWhere(transcript, unless('system')) ?? transcript.at(-1) ?? null
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

export function isPaused(call: ToolCallRow): boolean {
  return call.mcpState !== null && Object.keys(call.mcpState).length > 0
}

/** Whether an earlier call of the same tool was approved for the rest of the chat. */
export function isRemembered(
  transcript: readonly TranscriptMessage[],
  call: Pick<ToolCallRow, 'name' | 'namespace'>,
): boolean {
  return transcript.some((message) =>
    message.toolCalls.some(
      (other) => other.approval === 'remembered' && other.name === call.name && other.namespace === call.namespace,
    ),
  )
}
