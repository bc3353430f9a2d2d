import type { Role, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { storedCall } from '../tools/rows.ts'

/** A message without a place; {@link transcriptOf} gives it one. */
export function message(role: Role, given: Partial<TranscriptMessage> = {}): TranscriptMessage {
  return {
    id: role,
    chatId: 'chat-1',
    position: 0,
    role,
    content: role === 'assistant' ? null : 'words',
    thinkingText: null,
    thinkingSignature: null,
    rawReasoning: null,
    citations: null,
    finishReason: null,
    outcome: null,
    summaryThrough: null,
    encoding: null,
    attachments: null,
    cacheBoundary: null,
    createdAt: new Date(0),
    updatedAt: new Date(0),
    toolCalls: [],
    ...given,
  }
}

/** Messages in their places, each with an id of its own. */
export function transcriptOf(...messages: readonly TranscriptMessage[]): TranscriptMessage[] {
  return messages.map((one, position) => ({
    ...one,
    id: one.role === 'tool' ? one.id : `message-${position}`,
    position,
  }))
}

/** A call that has its result, under the id that {@link result} makes. */
export const answered = (id: string, given: Partial<ToolCallRow> = {}) =>
  storedCall({ id, toolCallId: id, resultId: `result-${id}`, ...given })
export const open = (id: string) => storedCall({ id, toolCallId: id, resultId: null })
export const result = (id: string) => message('tool', { id: `result-${id}`, content: `result of ${id}` })
export const asks = (...toolCalls: ToolCallRow[]) => message('assistant', { toolCalls })
export const says = (content: string) => message('assistant', { content })
export const user = (content = 'a question') => message('user', { content })
