import { type Conversation, contentText, type Exchange, isSystem, type RecordedMessage } from './recordings.ts'

/** What the application does before it asks for one run of the worker, and which exchanges that run makes. */
export interface Step {
  /** A new chat with these messages; the next user messages of the same chat; or the same turn once more. */
  readonly act: 'start' | 'ask' | 'again'
  readonly streaming: boolean
  /** The system text; undefined = unchanged. */
  readonly instructions: string | undefined
  /** For `start` all messages but the system's, for `ask` the user's. */
  readonly messages: readonly RecordedMessage[]
  /** Indexes of the exchanges: the first and the last. */
  readonly from: number
  to: number
}

/** Reads out of the recorded requests what the application did between them. */
export function planOf({ exchanges }: Conversation): Step[] {
  const steps: Step[] = []
  for (const [index, exchange] of exchanges.entries()) {
    const previous = exchanges[index - 1]
    const last = steps.at(-1)
    const added = previous === undefined ? null : addedMessages(previous, exchange)
    if (last !== undefined && added?.at(-1)?.role === 'tool') last.to = index
    else steps.push(stepOf(exchange, index, previous, added))
  }
  return steps
}

function stepOf(
  exchange: Exchange,
  index: number,
  previous: Exchange | undefined,
  added: readonly RecordedMessage[] | null,
): Step {
  const system = systemText(exchange)
  const base = { streaming: exchange.request.body.stream === true, from: index, to: index }
  // The same request again: after a failure that is a retry, after an answer another chat.
  const again = added?.length === 0 && previous?.expected.ok === false
  if (again) return { ...base, act: 'again', instructions: undefined, messages: [] }
  if (previous !== undefined && added !== null && added.length > 0) {
    const instructions = systemText(previous) === system ? undefined : system
    return { ...base, act: 'ask', instructions, messages: added.filter((message) => message.role === 'user') }
  }
  return { ...base, act: 'start', instructions: system, messages: conversational(exchange) }
}

/** What a request adds to the one before it; null when it does not go on with it. */
function addedMessages(previous: Exchange, exchange: Exchange): RecordedMessage[] | null {
  const before = conversational(previous)
  const now = conversational(exchange)
  const goesOn = JSON.stringify(now.slice(0, before.length)) === JSON.stringify(before)
  return goesOn ? now.slice(before.length) : null
}

function conversational({ request }: Exchange): RecordedMessage[] {
  return request.body.messages.filter((message) => !isSystem(message))
}

function systemText({ request }: Exchange): string | undefined {
  const system = request.body.messages.filter(isSystem)
  return system.length === 0 ? undefined : system.map((message) => contentText(message.content)).join('\n')
}
