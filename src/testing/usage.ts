import type { WireRequest, WireUsage } from './wire.ts'
import { textOf } from './wire.ts'

/** What an answer consists of, as far as counting goes. */
export interface Countable {
  /** The answer's text. */
  readonly text: string
  /** Its reasoning. */
  readonly thinking: string
  /** Its tool calls, with their arguments as text. */
  readonly calls: readonly {
    /** The tool's name. */
    readonly name: string
    /** Its arguments as they were sent. */
    readonly arguments: string
  }[]
}

/**
 * A piece of text in tokens: its length in UTF-16 units divided by 4, rounded up. No tokenizer, so that a test can
 * work the number out by hand.
 */
export const countTokens = (text: string): number => Math.ceil(text.length / 4)

const sum = (texts: readonly string[]): number => texts.reduce((total, text) => total + countTokens(text), 0)

/**
 * The usage that an answer reports unless the reply names its own. Each of these is counted by {@link countTokens} and
 * added up: for the prompt, the text, call names and call arguments of every message, and the JSON of every tool; for
 * the completion, the text, the thinking, and the names and arguments of its calls.
 */
export function defaultUsage(request: WireRequest, answer: Countable): WireUsage {
  const prompt =
    sum(request.messages.map(textOf)) +
    sum(request.messages.flatMap((m) => (m.tool_calls ?? []).flatMap((c) => [c.function.name, c.function.arguments]))) +
    sum((request.tools ?? []).map((tool) => JSON.stringify(tool)))
  const reasoning = countTokens(answer.thinking)
  const completion = sum([answer.text, ...answer.calls.flatMap((call) => [call.name, call.arguments])]) + reasoning
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

/** A reply's own usage with the total added where both halves are there and the total is not. */
export function withTotal(usage: WireUsage): WireUsage {
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage
  if (total !== undefined || prompt === undefined || completion === undefined) return usage
  return { ...usage, total_tokens: prompt + completion }
}
