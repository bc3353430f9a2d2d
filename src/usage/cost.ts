import Big from 'big.js'
import type { Prices, TokenUsage } from '../providers/provider.ts'

/** USD as decimal strings with up to 10 places; null = unknown. */
export interface Cost {
  readonly input: string | null
  readonly output: string | null
  readonly cacheRead: string | null
  readonly cacheWrite: string | null
  readonly total: string | null
}

type Bucket = 'input' | 'output' | 'cacheRead' | 'cacheWrite'

const TOKENS_PER_PRICE = 1_000_000
const PLACES = 10
const BUCKETS: readonly Bucket[] = ['input', 'output', 'cacheRead', 'cacheWrite']

/**
 * What an attempt cost. Zero tokens cost 0 at any price. Tokens that have no price, and tokens that nobody reported, cost
 * null. The total is the sum of what is known, but null as soon as tokens are without a price or the provider reported
 * no input or no output; a provider that reports no cache is taken to have used none.
 */
export function costOf(usage: TokenUsage | null, prices: Prices | null): Cost {
  const costs = new Map(BUCKETS.map((bucket) => [bucket, costOfBucket(usage?.[bucket] ?? null, prices?.[bucket])]))
  const text = (bucket: Bucket) => costs.get(bucket)?.toFixed() ?? null
  return {
    input: text('input'),
    output: text('output'),
    cacheRead: text('cacheRead'),
    cacheWrite: text('cacheWrite'),
    total: total(usage, costs)?.toFixed() ?? null,
  }
}

function costOfBucket(tokens: number | null, price: number | undefined): Big | null {
  if (tokens === null) return null
  if (tokens === 0) return new Big(0)
  return price === undefined ? null : new Big(tokens).times(price).div(TOKENS_PER_PRICE).round(PLACES)
}

function total(usage: TokenUsage | null, costs: ReadonlyMap<Bucket, Big | null>): Big | null {
  if (usage === null || usage.input === null || usage.output === null) return null
  let sum = new Big(0)
  for (const bucket of BUCKETS) {
    const cost = costs.get(bucket)
    if (cost) sum = sum.plus(cost)
    else if (usage[bucket] !== null) return null
  }
  return sum
}
