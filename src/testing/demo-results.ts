import type { WireMessage, WireToolCall } from './wire.ts'
import { textOf } from './wire.ts'

/** An answer in plain text from the tool results at the end of the messages, one sentence for each in their order. */
export function sayResults(messages: readonly WireMessage[]): string {
  const first = messages.findLastIndex((message) => message.role !== 'tool') + 1
  const calls = messages[first - 1]?.tool_calls ?? []
  return messages
    .slice(first)
    .map((result) =>
      sayResult(
        calls.find((call) => call.id === result.tool_call_id),
        textOf(result),
      ),
    )
    .join('\n')
}

function sayResult(call: WireToolCall | undefined, content: string): string {
  const name = call?.function.name ?? 'the tool'
  const args = objectOf(call?.function.arguments ?? '')
  const complaint = complaintIn(content)
  if (complaint !== null) return `I am sorry, ${attempt(name, args)} did not work out: ${sentence(complaint)}`
  const said = plain(content)
  if (said === '') return `${attempt(name, args, true)} is done; it returned nothing.`
  if (name === 'clock') return `In ${args.city ?? 'that city'}, the clock says: ${sentence(said)}`
  if (name === 'calculator') return `${args.expression ?? 'That'} = ${sentence(said)}`
  if (name === 'read_file') return `Here is what ${args.path ?? 'the file'} says:\n\n${said}`
  if (name === 'refund_order') return `About order ${args.order ?? ''}: ${sentence(said)}`
  return `${name} says: ${sentence(said)}`
}

/** What was tried, in words. */
function attempt(name: string, args: Readonly<Record<string, unknown>>, capital = false): string {
  const words: Readonly<Record<string, string>> = {
    clock: `asking the clock for ${args.city}`,
    calculator: `calculating ${args.expression}`,
    read_file: `reading ${args.path}`,
    refund_order: `refunding order ${args.order}`,
  }
  const said = words[name] ?? `calling ${name}`
  return capital ? said.charAt(0).toUpperCase() + said.slice(1) : said
}

const bad =
  /^\s*(?:\w*error\b|denied\b|refused\b|rejected\b|interrupted\b|cancelled\b|unknown tool\b|failed\b|the user (?:denied|refused|rejected|declined)\b)/i

/** What a result complains of: the `error` of a JSON object, or a text that begins like an error; null if it is fine. */
function complaintIn(content: string): string | null {
  const { error } = objectOf(content)
  if (error !== undefined && error !== null && error !== false) return plainValue(messageOf(error))
  return bad.test(content) ? content.trim() : null
}

const messageOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'message' in error ? error.message : error

/** JSON that holds one text or number as that text; everything else as it is. */
function plain(content: string): string {
  const value = parsed(content)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : content.trim()
}

const plainValue = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const sentence = (words: string): string => (/[.!?}\])]$/.test(words.trim()) ? words.trim() : `${words.trim()}.`)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  const value = parsed(text)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}
