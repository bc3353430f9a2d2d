import { Big } from 'big.js'
import type { UsageRow } from './rows.ts'

/** Tokens of many attempts; null where none of them reported any. */
export interface ChatTokens {
  /** Cached input not counted. */
  readonly input: number | null
  /** Tokens of the answers. */
  readonly output: number | null
  /** Input that came from the provider's cache. */
  readonly cacheRead: number | null
  /** Input that was written to the provider's cache. */
  readonly cacheWrite: number | null
  /** The part of the output that was reasoning. */
  readonly thinking: number | null
}

/** USD of many attempts as decimal texts; null where any attempt's part is unknown, or there was none. */
export interface ChatCost {
  /** Of input that did not come from a cache. */
  readonly input: string | null
  /** Of output. */
  readonly output: string | null
  /** Of input that came from a cache; '0' where none did. */
  readonly cacheRead: string | null
  /** Of input that was written to a cache; '0' where none was. */
  readonly cacheWrite: string | null
  /** Of everything. */
  readonly total: string | null
}

export function sumTokens(usages: readonly UsageRow[]): ChatTokens {
  const sum = (key: 'inputTokens' | 'outputTokens' | 'cacheReadTokens' | 'cacheWriteTokens' | 'thinkingTokens') => {
    const reported = usages.map((usage) => usage[key]).filter((tokens) => tokens !== null)
    return reported.length === 0 ? null : reported.reduce((total, tokens) => total + tokens, 0)
  }
  return {
    input: sum('inputTokens'),
    output: sum('outputTokens'),
    cacheRead: sum('cacheReadTokens'),
    cacheWrite: sum('cacheWriteTokens'),
    thinking: sum('thinkingTokens'),
  }
}

export function sumCost(usages: readonly UsageRow[]): ChatCost {
  const sum = (cost: (usage: UsageRow) => string | null) => {
    const known = usages.map(cost).filter((amount) => amount !== null)
    if (known.length === 0 || known.length < usages.length) return null
    return known.reduce((total, amount) => total.plus(amount), new Big(0)).toFixed()
  }
  return {
    input: sum((usage) => usage.inputCost),
    output: sum((usage) => usage.outputCost),
    // An attempt that used no cache cost nothing there.
    cacheRead: sum((usage) => usage.cacheReadCost ?? unused(usage, usage.cacheReadTokens)),
    cacheWrite: sum((usage) => usage.cacheWriteCost ?? unused(usage, usage.cacheWriteTokens)),
    total: sum((usage) => usage.totalCost),
  }
}

function unused(usage: UsageRow, tokens: number | null): string | null {
  return usage.totalCost !== null && (tokens ?? 0) === 0 ? '0' : null
}
