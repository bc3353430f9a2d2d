import type { MeasuredContext } from '../../models/compaction.ts'
import type { TranscriptMessage } from '../../models/rows.ts'
import type { TokenUsage, ToolSpec } from '../providers/provider.ts'
import { currentMessages, isSummary, newestSummary } from './transcript.ts'

// How large the next request is. What providers count is taken from the last answer's report; the rest is estimated,
// without a tokenizer: each model has another one, and what matters is being near the mark long before the end.

/** Rough for any model: four characters of English or code are about one token. */
export const CHARACTERS_PER_TOKEN = 4

export const tokensOf = (characters: number) => Math.ceil(characters / CHARACTERS_PER_TOKEN)

/** Everything of a message that goes into a request, its reasoning included, in UTF-16 units. */
export function charactersOf(message: TranscriptMessage): number {
  const reasoning = message.rawReasoning === null ? (message.thinkingText ?? '') : JSON.stringify(message.rawReasoning)
  const calls = message.toolCalls.map(
    (call) => call.name.length + (call.malformedArguments ?? JSON.stringify(call.arguments)).length,
  )
  return (message.content ?? '').length + reasoning.length + sum(calls)
}

/** What a request says before its first message: system messages, else the agent's instructions, and the tools. */
export interface RequestFrame {
  readonly instructions: string | null
  readonly tools: readonly ToolSpec[]
}

/**
 * Tokens of the next request. The report of the last answer counts where that answer and everything before it is still sent
 * as it was: not once a newer summary has replaced a part of it.
 */
export function contextTokens(
  transcript: readonly TranscriptMessage[],
  measured: MeasuredContext | null,
  frame: RequestFrame,
): number {
  const summary = newestSummary(transcript)
  const since = transcript.findIndex((message) => message.id === measured?.messageId)
  const isValid = since >= 0 && (summary === null || since > transcript.indexOf(summary))
  if (measured !== null && isValid) {
    const after = transcript.slice(since + 1).filter((message) => message.role !== 'system' && !isSummary(message))
    return measured.tokens + tokensOf(sum(after.map(charactersOf)))
  }
  const system = transcript.filter((message) => message.role === 'system')
  const said = [...system, ...(summary === null ? [] : [summary]), ...currentMessages(transcript)]
  const framed = system.length > 0 ? 0 : (frame.instructions ?? '').length
  return tokensOf(sum(said.map(charactersOf)) + framed + JSON.stringify(frame.tools).length)
}

/** The context that an attempt took up, its answer included; null where the provider did not say. */
export function measuredTokens(usage: TokenUsage | null): number | null {
  if (usage === null || usage.input === null || usage.output === null) return null
  return usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0) + usage.output
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
