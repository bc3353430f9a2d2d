import type { UsageClosing } from '../../models/usages.ts'
import { ProviderError } from '../errors.ts'
import type { Prices, TokenUsage } from '../providers/provider.ts'
import { wellFormed } from '../tools/results.ts'
import { costOf } from '../usage/cost.ts'

const nothing: TokenUsage = { input: 0, output: 0, cacheRead: null, cacheWrite: null, thinking: null }

/** What an attempt's usage entry says at its end. */
export function usageClosing(attempt: {
  readonly status: UsageClosing['status']
  readonly usage: TokenUsage | null
  readonly prices: Prices | null
  readonly error?: unknown
}): UsageClosing {
  const { error } = attempt
  // What never reached the provider can't have been billed, so it must not make the chat's cost unknown.
  const unsent = error instanceof ProviderError && !error.reachedProvider
  const usage = attempt.usage ?? (unsent ? nothing : null)
  const cost = unsent && attempt.usage === null ? free : costOf(usage, attempt.prices)
  return {
    status: attempt.status,
    inputTokens: usage?.input ?? null,
    outputTokens: usage?.output ?? null,
    cacheReadTokens: usage?.cacheRead ?? null,
    cacheWriteTokens: usage?.cacheWrite ?? null,
    thinkingTokens: usage?.thinking ?? null,
    inputCost: cost.input,
    outputCost: cost.output,
    cacheReadCost: cost.cacheRead,
    cacheWriteCost: cost.cacheWrite,
    totalCost: cost.total,
    errorCode: codeOf(error),
  }
}

const free = { input: '0', output: '0', cacheRead: null, cacheWrite: null, total: '0' }

function codeOf(error: unknown): string | null {
  if (error === undefined) return null
  if (typeof error === 'string') return error
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? wellFormed(code.slice(0, 255)) : 'error'
}
