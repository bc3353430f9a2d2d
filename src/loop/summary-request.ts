import type { ModelRequest, RequestMessage } from '../providers/provider.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { CHARACTERS_PER_TOKEN, charactersOf, sum, tokensOf } from './context-size.ts'
import { promptOf } from './model-request.ts'
import { toolSpecs } from './request.ts'
import type { Configuration, RunContext } from './run-context.ts'
import { shorten } from './shorten.ts'
import { newestSummary } from './transcript.ts'

/** How a summary is to be made. */
export interface SummaryOrder {
  readonly instructions: string | undefined
  readonly model: string | undefined
  readonly keep: number
}

const standing =
  'Summarise the conversation so far, so that it can be carried on from your summary alone. Keep what the user wants and has ' +
  'decided, facts, names, numbers and identifiers as they were given, what was done with which result, and what is still ' +
  'open. Quote word for word every request of the user that has no answer yet.'
const form = 'Answer with the summary alone, without calling tools, in the language of the conversation.'

/** Of the window, what a summary's request may take up: the summary itself needs room too. */
const share = 0.75

/**
 * Begins as the chat's own requests do, with the same system messages, tools and history, so that the provider's prompt
 * cache serves it; the order to summarise comes last.
 */
export function summaryRequest(
  run: RunContext,
  plan: CompactionPlan,
  order: SummaryOrder,
  window: number | null,
): ModelRequest {
  const { configuration } = run
  const prompt = promptOf(configuration, run.transcript, plan.through)
  const messages = [
    ...prompt.messages,
    { role: 'user' as const, content: `${order.instructions ?? standing}\n\n${form}` },
  ]
  return {
    ...prompt,
    model: order.model ?? configuration.model,
    messages: window === null ? messages : fitted(messages, configuration, window),
    toolChoice: 'none',
    streaming: configuration.agent.streaming,
  }
}

/** What can't be sent whole, since one of its messages is too large, is sent shortened. */
function fitted(
  messages: readonly RequestMessage[],
  configuration: Configuration,
  window: number,
): readonly RequestMessage[] {
  const tools = JSON.stringify(toolSpecs(configuration)).length
  const size = tools + sum(messages.map((message) => (message.content ?? '').length))
  return tokensOf(size) < window ? messages : shorten(messages, window * share * CHARACTERS_PER_TOKEN - tools)
}

/** Characters of everything that a summary replaces, an earlier summary included. */
export function replacedCharacters(run: RunContext, plan: CompactionPlan): number {
  const summary = newestSummary(run.transcript)
  return sum([...plan.covered, ...(summary === null ? [] : [summary])].map(charactersOf))
}
