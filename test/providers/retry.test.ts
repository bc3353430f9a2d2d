import { expect } from 'chai'
import { BadRequestError, RateLimitError, ServerError } from '../../src/errors.ts'
import { readRetryAfter, retryDelayMs } from '../../src/providers/retry.ts'

describe('The delay before another attempt', () => {
  const failed = new ServerError('down', { retryable: true })

  it('doubles from half a second up to eight', () => {
    const delays = [1, 2, 3, 4, 5, 6, 60].map((attempt) => retryDelayMs(failed, attempt, () => 0))
    expect(delays).to.deep.equal([500, 1000, 2000, 4000, 8000, 8000, 8000])
  })

  it('is shortened by chance, by up to half', () => {
    expect(retryDelayMs(failed, 2, () => 0.5)).to.equal(750)
    expect(retryDelayMs(failed, 2, () => 1)).to.equal(500)
  })

  it('is null for what can’t be retried', () => {
    expect(retryDelayMs(new BadRequestError('no'), 1, () => 0)).to.equal(null)
    expect(retryDelayMs(new Error('bug'), 1, () => 0)).to.equal(null)
    expect(retryDelayMs(undefined, 1, () => 0)).to.equal(null)
  })

  it('is what the provider asks for, but never more than a minute', () => {
    const limited = (retryAfterMs: number) => new RateLimitError('slow', { retryable: true, retryAfterMs })
    expect(retryDelayMs(limited(41_000), 1, () => 0)).to.equal(41_000)
    expect(retryDelayMs(limited(60_000), 1, () => 0)).to.equal(60_000)
    expect(retryDelayMs(limited(60_001), 1, () => 0)).to.equal(null)
  })
})

describe('What a response asks its client to wait', () => {
  const read = (headers: Record<string, string>) => readRetryAfter(new Headers(headers), Date.UTC(2026, 0, 1))

  it('is read in seconds, in milliseconds and as a date', () => {
    expect(read({ 'retry-after': '41' })).to.equal(41_000)
    expect(read({ 'retry-after': '2', 'retry-after-ms': '1500' })).to.equal(1500)
    expect(read({ 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' })).to.equal(7000)
  })

  it('goes by the seconds when the milliseconds say 0', () => {
    expect(read({ 'retry-after': '1', 'retry-after-ms': '0' })).to.equal(1000)
  })

  it('is null when nothing usable is said', () => {
    const useless = [
      {},
      { 'retry-after': 'soon' },
      { 'retry-after': '0' },
      { 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' },
    ]
    for (const headers of useless) expect(read(headers as Record<string, string>)).to.equal(null)
  })
})
