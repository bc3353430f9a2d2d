import { expect } from 'chai'
import type { TokenUsage } from '../../src/providers/provider.ts'
import { costOf } from '../../src/usage/cost.ts'

const PRICES = { input: 2, output: 8, cacheRead: 0.5, cacheWrite: 2.5 }

function usage(changes: Partial<TokenUsage>): TokenUsage {
  return { input: null, output: null, cacheRead: null, cacheWrite: null, thinking: null, ...changes }
}

describe('The cost of an attempt', () => {
  it('is tokens times the price of a million', () => {
    expect(costOf(usage({ input: 19, output: 9 }), PRICES)).to.deep.equal({
      input: '0.000038',
      output: '0.000072',
      cacheRead: null,
      cacheWrite: null,
      total: '0.00011',
    })
  })

  it('counts cached input at its own price only', () => {
    expect(costOf(usage({ input: 400, output: 50, cacheRead: 1100 }), PRICES)).to.deep.equal({
      input: '0.0008',
      output: '0.0004',
      cacheRead: '0.00055',
      cacheWrite: null,
      total: '0.00175',
    })
    expect(costOf(usage({ input: 0, output: 0, cacheWrite: 4 }), PRICES)).to.include({ cacheWrite: '0.00001' })
  })

  it('is 0 for zero tokens, whatever is known of the prices', () => {
    const none = usage({ input: 0, output: 0 })
    expect(costOf(none, null)).to.include({ input: '0', output: '0', total: '0' })
    expect(costOf({ ...none, cacheWrite: 0 }, { input: 1, output: 1 })).to.include({ cacheWrite: '0', total: '0' })
  })

  it('is unknown in total when tokens have no price', () => {
    const cost = costOf(usage({ input: 10, output: 1, cacheRead: 5 }), { input: 2, output: 8 })
    expect(cost).to.deep.equal({ input: '0.00002', output: '0.000008', cacheRead: null, cacheWrite: null, total: null })
    expect(costOf(usage({ input: 10, output: 0 }), null)).to.include({ input: null, output: '0', total: null })
  })

  it('is unknown, and not a smaller sum, when input or output was not reported', () => {
    expect(costOf(usage({ input: 10 }), PRICES)).to.include({ input: '0.00002', output: null, total: null })
  })

  it('is all unknown when nothing was reported', () => {
    const unknown = { input: null, output: null, cacheRead: null, cacheWrite: null, total: null }
    expect(costOf(null, PRICES)).to.deep.equal(unknown)
    expect(costOf(usage({}), PRICES)).to.deep.equal(unknown)
  })

  it('has no rounding noise and no exponent, and at most ten places', () => {
    const prices = { input: 0.1, output: 0.2 }
    expect(costOf(usage({ input: 1, output: 1 }), prices)).to.include({ input: '0.0000001', total: '0.0000003' })
    expect(costOf(usage({ input: 1, output: 0 }), { input: 0.00012345, output: 0 }).input).to.equal('0.0000000001')
    expect(costOf(usage({ input: 1_000_000_000, output: 0 }), { input: 75, output: 0 }).input).to.equal('75000')
  })
})
