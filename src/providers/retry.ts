import { ProviderError } from '../errors.ts'

const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 8_000
const MAX_RETRY_AFTER_MS = 60_000

/**
 * How long to wait before an attempt that failed is made again, in ms: what the provider asked for, else 0.5 s doubled
 * with each attempt up to 8 s, less a random part of up to half so that many clients don't come back at once.
 * @param attempt The number of the attempt that failed, from 1.
 * @param random Returns a number from 0 up to 1.
 * @returns null when the error can't be retried, or when the provider asks for more than a minute.
 */
export function retryDelayMs(error: unknown, attempt: number, random: () => number): number | null {
  if (!(error instanceof ProviderError) || !error.retryable) return null
  if (error.retryAfterMs !== undefined) return error.retryAfterMs > MAX_RETRY_AFTER_MS ? null : error.retryAfterMs
  const delay = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1))
  return Math.round(delay * (1 - random() / 2))
}

/**
 * How long a response asks its client to wait, in ms, by `retry-after-ms`, else by `retry-after` (seconds or a date).
 * @param now The time that a date is compared with, in ms since the epoch.
 * @returns null when neither header names a time to come; `retry-after-ms: 0` beside `retry-after: 1` means 1 s.
 */
export function readRetryAfter(headers: { get(name: string): string | null }, now: number): number | null {
  const milliseconds = Number.parseFloat(headers.get('retry-after-ms') ?? '')
  if (milliseconds > 0) return Math.ceil(milliseconds)
  const after = headers.get('retry-after') ?? ''
  const wait = /^\s*\d/.test(after) ? Number.parseFloat(after) * 1000 : Date.parse(after) - now
  return wait > 0 ? Math.ceil(wait) : null
}
