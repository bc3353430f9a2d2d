import { Big } from 'big.js'
import type { Database } from './database.ts'
import type { ChatTokens } from './usage-totals.ts'

/** What all attempts of an owner, or of everybody, took. */
export interface UsageTotal {
  /** How many attempts there were, failed ones included. */
  readonly attempts: number
  /** Tokens of all of them; null where none reported any. */
  readonly tokens: ChatTokens
  /** USD of those whose cost is known, as a decimal text; '0' where there are none. */
  readonly cost: string
  /** How many are left out of `cost`, since theirs is unknown. */
  readonly unknownCosts: number
}

/** By when attempts began: from `since` on, before `until`. */
export async function totalUsage(
  db: Database,
  of: { readonly owner: string | null; readonly since: Date | null; readonly until: Date | null },
): Promise<UsageTotal> {
  const { owner, since, until } = of
  const { dialect, tables } = db
  const wanted = [
    ...(owner === null ? [] : ['owner = $owner']),
    ...(since === null ? [] : ['created_at >= $since']),
    ...(until === null ? [] : ['created_at < $until']),
  ]
  // SQLite would add up floats: whole parts of the last decimal place are exact.
  const cost = dialect.name === 'sqlite' ? 'SUM(CAST(ROUND(total_cost * 10000000000) AS INTEGER))' : 'SUM(total_cost)'
  const [raw = {}] = await db.read(
    'SELECT COUNT(*) AS attempts, COUNT(total_cost) AS priced, SUM(input_tokens) AS input, SUM(output_tokens) AS output, ' +
      'SUM(cache_read_tokens) AS cacheRead, SUM(cache_write_tokens) AS cacheWrite, SUM(thinking_tokens) AS thinking, ' +
      `${cost} AS cost FROM ${tables.usages}${wanted.length === 0 ? '' : ` WHERE ${wanted.join(' AND ')}`}`,
    {
      ...(owner === null ? {} : { owner }),
      ...(since === null ? {} : { since: dialect.time(since) }),
      ...(until === null ? {} : { until: dialect.time(until) }),
    },
  )
  const tokens = (value: unknown) => (value == null ? null : Number(value))
  const sum = new Big(String(raw.cost ?? 0))
  return {
    attempts: Number(raw.attempts),
    tokens: {
      input: tokens(raw.input),
      output: tokens(raw.output),
      cacheRead: tokens(raw.cacheRead),
      cacheWrite: tokens(raw.cacheWrite),
      thinking: tokens(raw.thinking),
    },
    cost: (dialect.name === 'sqlite' ? sum.div(10_000_000_000) : sum).toFixed(),
    unknownCosts: Number(raw.attempts) - Number(raw.priced),
  }
}
