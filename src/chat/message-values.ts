import type { ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { InvalidMessageError, OrphanedResultError } from '../errors.ts'
import { isBlank, isSummary } from '../loop/transcript.ts'
import { isPlainObject, shown } from '../messages/check.ts'
import { TextMessage, ToolCallMessage, ToolResultMessage } from '../messages/message.ts'
import { ToolMessage } from '../messages/tool-message.ts'
import { parsedOf } from './message.ts'

/** One message of a transcript as a value. */
export type TranscriptValue = TextMessage | ToolCallMessage | ToolResultMessage

/**
 * A transcript as values, in its order: an answer with text and calls is a text that stops for tools, then the calls. Blank
 * rows and summaries are no messages. (M16, M18)
 * @throws {OrphanedResultError} for a result whose call is not there. (M19)
 */
export function valuesOf(transcript: readonly TranscriptMessage[]): TranscriptValue[] {
  const calls = transcript.flatMap((message) => message.toolCalls)
  const answered = new Map(calls.flatMap((call) => (call.resultId === null ? [] : [[call.resultId, call] as const])))
  return transcript
    .filter((message) => !isBlank(message) && !isSummary(message))
    .flatMap((message) => {
      if (message.role === 'tool') return [resultValue(message, answered.get(message.id))]
      if (message.role === 'assistant') return assistantValues(message)
      return [new TextMessage({ role: message.role, content: message.content ?? '' })]
    })
}

function assistantValues(message: TranscriptMessage): TranscriptValue[] {
  const { content, finishReason, toolCalls } = message
  const says = (content ?? '') !== ''
  if (toolCalls.length === 0) {
    return [new TextMessage({ role: 'assistant', content, stopReason: finishReason === null ? null : 'stop' })]
  }
  const tools = [...toolCalls].sort((a, b) => a.position - b.position).map(toolValue)
  const asks = new ToolCallMessage({ role: 'assistant', tools })
  return says ? [new TextMessage({ role: 'assistant', content, stopReason: 'tool' }), asks] : [asks]
}

function toolValue({ toolCallId, name, arguments: input }: ToolCallRow): ToolMessage {
  return new ToolMessage({ id: toolCallId, name, input })
}

function resultValue(message: TranscriptMessage, call: ToolCallRow | undefined): ToolResultMessage {
  if (call === undefined) {
    throw new OrphanedResultError(
      `Message ${message.id} of chat ${message.chatId} is the result of a call that is not there: a transcript from elsewhere. ` +
        'Read messages() in place of it, or delete the row.',
      { chatId: message.chatId },
    )
  }
  return new ToolResultMessage({ tool: toolValue(call), content: envelopeOf(message) })
}

/** What a tool came to, as its outcome and encoding say. */
function envelopeOf({ content, outcome, encoding }: TranscriptMessage): { data: unknown } | { error: unknown } {
  const text = content ?? ''
  if (outcome !== null && outcome !== 'succeeded') {
    const parsed = parsedOf(text)
    return { error: isPlainObject(parsed) && Object.hasOwn(parsed, 'error') ? parsed.error : text }
  }
  return { data: encoding === 'json' ? parsedOf(text) : text }
}

/** What a result's content says, as it is stored. */
export interface StoredResult {
  readonly content: string
  readonly outcome: 'succeeded' | 'failed'
  readonly encoding: 'text' | 'json'
}

/**
 * An envelope as it is stored: the data bare, an error under its key. What is neither is data as a whole. (M23, M24)
 * @throws {InvalidMessageError} for data and an error at once, of which a row would lose one, and for what is no JSON.
 */
export function storedResult(message: ToolResultMessage): StoredResult {
  if (message.isError() && message.success()) {
    throw new InvalidMessageError('A stored ToolResultMessage has data or an error, not both.')
  }
  if (message.isError()) {
    return { content: jsonOf({ error: message.error ?? null }), outcome: 'failed', encoding: 'json' }
  }
  const data = message.success() ? message.data : message.content
  if (typeof data === 'string') return { content: data, outcome: 'succeeded', encoding: 'text' }
  return { content: jsonOf(data ?? null), outcome: 'succeeded', encoding: 'json' }
}

function jsonOf(value: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch {
    // A cycle or a bigint is refused below like a function; what JSON says of them can quote the value.
  }
  if (json !== undefined) return json
  throw new InvalidMessageError(
    `The content of a stored ToolResultMessage must be what JSON can hold; ${shown(value)} in it is not.`,
  )
}
