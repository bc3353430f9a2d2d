import { ConfigurationError } from '../errors.ts'
import { modelFacts } from '../providers/catalogue.ts'
import { contextTokens } from './context-size.ts'
import type { ContextPressure } from './decide.ts'
import { toolSpecs } from './request.ts'
import type { RunContext } from './run-context.ts'
import { hasPendingWork, openCalls } from './transcript.ts'

/** Tokens: where a summary is due, and what the next request may not exceed. */
export interface ContextLimits {
  readonly threshold: number
  /** The model's context window; where it isn't known, the threshold, which is then all that is known. */
  readonly limit: number
}

/**
 * How full the context is before the next model call; null where that decides nothing: compaction is off, or no answer is
 * owed.
 * @throws {ConfigurationError} when the threshold is a share of a context window that nobody knows.
 */
export async function contextOf(run: RunContext): Promise<ContextPressure | null> {
  const { compaction, instructions } = run.configuration
  const settles = run.chat.cancelTurn === run.chat.turn || run.order.verb === 'runTools'
  if (compaction === null || settles || openCalls(run.transcript).length > 0 || !hasPendingWork(run.transcript))
    return null
  if (run.limits === undefined) run.limits = await limitsOf(run, compaction.at)
  if (run.measured === undefined) run.measured = await run.ports.rows.measuredContext(run.chat.id)
  const frame = { instructions, tools: toolSpecs(run.configuration) }
  const tokens = contextTokens(run.transcript, run.measured, frame)
  return { ...run.limits, tokens, keep: compaction.keep ?? 0, spent: run.compactionFailure !== null }
}

/** The agent's word first, then the catalogue's; null where neither knows the model. */
export async function contextWindow(run: RunContext): Promise<number | null> {
  const { agent, model, client } = run.configuration
  return agent.contextWindow ?? (await modelFacts(model, client.provider)).contextWindow
}

async function limitsOf(run: RunContext, at: number): Promise<ContextLimits> {
  const window = await contextWindow(run)
  if (at > 1) return { threshold: at, limit: window ?? at }
  if (window !== null) return { threshold: at * window, limit: window }
  throw new ConfigurationError(
    `Chat ${run.chat.id} is to be summarised at ${at} of the context window of model ${run.configuration.model}, which is not ` +
      'in the catalogue: give its agent a contextWindow, or give `at` in tokens.',
    { chatId: run.chat.id },
  )
}
