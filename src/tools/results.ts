import type { ToolResult } from './tool.ts'

/**
 * What a tool returned, as the model gets it: a string as it is, null and undefined as `''`, objects and arrays as JSON
 * (errors inside them as their message), anything else as text. An object whose only key is `error`, and an `Error`,
 * are failures. What can't be written (a cycle, a bigint inside an object, a function) is a failure that says so.
 * Never throws.
 */
export function resultOf(value: unknown): ToolResult {
  try {
    return written(value)
  } catch (error) {
    return { outcome: 'failed', content: unserialisable(messageOf(error)), encoding: 'json' }
  }
}

function written(value: unknown): ToolResult {
  if (value === null || value === undefined) return { outcome: 'succeeded', content: '', encoding: 'text' }
  if (typeof value === 'function' || typeof value === 'symbol') {
    return { outcome: 'failed', content: unserialisable(`it is a ${typeof value}`), encoding: 'json' }
  }
  if (typeof value !== 'object') return primitive(value)
  if (value instanceof Error) return { outcome: 'failed', content: errorText(messageOf(value)), encoding: 'json' }
  const outcome = isErrorObject(value) ? 'failed' : 'succeeded'
  const json: string | undefined = JSON.stringify(value, (_key, inner: unknown) =>
    inner instanceof Error ? messageOf(inner) : inner,
  )
  return { outcome, content: json ?? '', encoding: 'json' }
}

/** A number and a truth value are JSON as they are; what JSON has no word for is a text. */
function primitive(value: unknown): ToolResult {
  const isJson = typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
  return { outcome: 'succeeded', content: wellFormed(String(value)), encoding: isJson ? 'json' : 'text' }
}

function isErrorObject(value: object): boolean {
  const keys = Object.keys(value)
  if (keys.length !== 1 || keys[0] !== 'error') return false
  const { error } = value as { readonly error: unknown }
  return error !== null && error !== undefined
}

/** Replaces halves of surrogate pairs by U+FFFD: databases and providers refuse them. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD')
}

/** The content of every failure: a JSON object with the one key `error`. */
export function errorText(message: string): string {
  return JSON.stringify({ error: wellFormed(message) })
}

/** What a thrown value says. Never throws and never returns an empty text. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name
  try {
    const json = typeof thrown === 'object' ? JSON.stringify(thrown) : undefined
    return (json ?? String(thrown)) || 'unknown error'
  } catch {
    return 'unknown error'
  }
}

/** For a call of a tool that was never offered. */
export function unknownTool(name: string, available: readonly string[]): string {
  const rest = available.length === 0 ? 'No tools are available.' : `Available tools: ${available.join(', ')}.`
  return errorText(`There is no tool named ${name}. ${rest}`)
}

/** For arguments that the tool's schema refuses. `message` is what `validate` said. */
export function invalidArguments(name: string, message: string): string {
  return errorText(`Invalid arguments for the ${name} tool, which did not run: ${message}`)
}

const OUTPUT_LIMITS = ['length', 'max_tokens', 'max_output_tokens']

/** Whether an answer was cut off by the limit on its length, as the provider's finish reason says it. */
export function isCutByLimit(finishReason: string | null): boolean {
  return finishReason !== null && OUTPUT_LIMITS.includes(finishReason.toLowerCase())
}

/**
 * For argument text that is not one JSON object.
 * @param finishReason why the answer ended, in the provider's words; null if it is not known.
 */
export function malformedArguments(name: string, finishReason: string | null): string {
  const why = isCutByLimit(finishReason)
    ? 'the output limit was hit before they were complete. Call it again with shorter arguments.'
    : 'they are not one JSON object, or one that is nested too deep. Call it again with one JSON object.'
  return errorText(`The ${name} tool did not run, because its arguments can not be read: ${why}`)
}

/** For a call beyond the limit on the calls of one answer. */
export function tooManyCalls(name: string, limit: number): string {
  return errorText(
    `The ${name} tool call did not run: of one answer's calls only the first ${limit} do. Go on with ${limit} calls at a time.`,
  )
}

/** For a call that someone denied. */
export function deniedCall(name: string, reason: string | null = null): string {
  const why = reason === null || reason.trim() === '' ? '' : ` Reason: ${sentencePart(reason)}.`
  return errorText(`The user denied the ${name} tool call.${why}`)
}

/** For a call that began, or could have begun, and has no known end. `reason` is a part of a sentence. */
export function interruptedCall(name: string, reason: string): string {
  return errorText(
    `The ${name} tool call was interrupted: ${sentencePart(reason)}. Whether it had an effect is not known.`,
  )
}

/** For a call that ended before the tool began. `reason` as in {@link interruptedCall}. */
export function notStartedCall(name: string, reason: string): string {
  return errorText(`The ${name} tool call did not run: ${sentencePart(reason)}.`)
}

/** For a call that ran longer than its tool allows. */
export function timedOutCall(name: string, timeoutMs: number): string {
  return interruptedCall(name, `it did not finish within its limit of ${durationText(timeoutMs)}`)
}

function unserialisable(why: string): string {
  return errorText(`The tool ran, but its result can not be written as text: ${why.split('\n')[0]}`)
}

function sentencePart(text: string): string {
  return text.trim().replace(/\.$/, '')
}

function durationText(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${Number((ms / 1000).toFixed(1))} s`
}
