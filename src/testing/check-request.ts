import type { WireMessage, WireRequest } from './wire.ts'

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a parsed body has the few fields without which it can't be answered at all. */
export function isWireRequest(body: unknown): body is WireRequest {
  return (
    isRecord(body) &&
    typeof body.model === 'string' &&
    Array.isArray(body.messages) &&
    body.messages.every((message) => isRecord(message) && typeof message.role === 'string') &&
    (body.tools === undefined || body.tools === null || Array.isArray(body.tools))
  )
}

/**
 * What the real API would refuse in a transcript: none at all, a call without its result right after it, a result
 * without its call. Returns the complaint, or null when the transcript can be sent.
 */
export function findFault(messages: readonly WireMessage[]): string | null {
  if (messages.length === 0) return 'messages: at least one message is needed'
  let open = new Set<string>()
  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id ?? '')) {
        return `messages[${at}]: the tool message answers ${message.tool_call_id ?? 'no call id'}, which is not an open call of the assistant message before it`
      }
      continue
    }
    if (open.size > 0) return unanswered(open, `messages[${at}]`)
    if (message.role === 'assistant') open = new Set((message.tool_calls ?? []).map((call) => call.id))
  }
  return open.size > 0 ? unanswered(open, 'the end of the messages') : null
}

const unanswered = (open: ReadonlySet<string>, where: string): string =>
  `messages: no tool message answers the tool calls ${[...open].join(', ')} before ${where}`
