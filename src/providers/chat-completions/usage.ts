import type { TokenUsage } from '../provider.ts'
import type { ReportedUsage } from './schema.ts'

/**
 * Reads a usage report. What was read from or written to the cache is part of `prompt_tokens`, so it is taken off the
 * input, which never goes below 0 (some servers report more cached tokens than prompt tokens).
 * @returns null when the report names neither prompt nor completion tokens.
 */
export function readUsage(reported: ReportedUsage | null | undefined): TokenUsage | null {
  if (!reported) return null
  const prompt = reported.prompt_tokens ?? null
  const output = reported.completion_tokens ?? null
  if (prompt === null && output === null) return null
  const cacheRead =
    reported.prompt_tokens_details?.cached_tokens ??
    reported.prompt_cache_hit_tokens ??
    reported.num_cached_tokens ??
    null
  const cacheWrite = reported.prompt_tokens_details?.cache_write_tokens ?? null
  return {
    input: prompt === null ? null : Math.max(0, prompt - (cacheRead ?? 0) - (cacheWrite ?? 0)),
    output,
    cacheRead,
    cacheWrite,
    thinking: reported.completion_tokens_details?.reasoning_tokens ?? reported.reasoning_tokens ?? null,
  }
}
