import type { WireError, WireUsage } from './wire.ts'

/** What all chunks of one streamed answer have in common. */
export interface StreamHead {
  readonly id: string
  readonly model: string
  /** Unix time in seconds. */
  readonly created: number
  /** Whether the request asked for usage: then every other chunk says `usage: null`, as the real API does. */
  readonly includeUsage: boolean
}

/** One server-sent event that carries JSON. */
export const sseData = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`

/** The event that ends a whole stream. */
export const sseDone = 'data: [DONE]\n\n'

/** An event with a piece of the answer, and the finish reason if it is the last one. */
export function deltaEvent(head: StreamHead, delta: object, finishReason: string | null = null): string {
  const choice = { index: 0, delta, logprobs: null, finish_reason: finishReason }
  return sseData({ ...chunkHead(head), choices: [choice], ...(head.includeUsage ? { usage: null } : {}) })
}

/** The event without choices that reports usage at the end. */
export const usageEvent = (head: StreamHead, usage: WireUsage): string =>
  sseData({ ...chunkHead(head), choices: [], usage })

/** An event that carries an error inside a stream that began well. */
export const errorEvent = (error: WireError): string => sseData({ error })

/** The events that spread one tool call over the stream: its id and name first, then the arguments in pieces. */
export function toolCallEvents(
  head: StreamHead,
  index: number,
  call: { readonly id: string | null; readonly name: string },
  argumentPieces: readonly string[],
): string[] {
  const id = call.id === null ? {} : { id: call.id }
  const first = { index, ...id, type: 'function', function: { name: call.name, arguments: '' } }
  const rest = argumentPieces.map((piece) => ({ index, function: { arguments: piece } }))
  return [first, ...rest].map((part) => deltaEvent(head, { tool_calls: [part] }))
}

const chunkHead = (head: StreamHead): object => ({
  id: head.id,
  object: 'chat.completion.chunk',
  created: head.created,
  model: head.model,
})
