import { expect } from 'chai'
import { Widening } from '../../src/claims/widening.ts'
import { until } from '../support/until.ts'
import { deferred } from '../tools/rows.ts'

describe('The statements that renew claims', () => {
  /** Statements that come back when the test says so. */
  function begin(widening: Widening, count: number) {
    const begun: number[] = []
    const gates = Array.from({ length: count }, () => deferred<void>())
    const done = gates.map((gate, at) =>
      widening.run(() => {
        begun.push(at)
        return gate.promise
      }),
    )
    return { begun, gates, done }
  }

  it('go two at a time while the database is quick, first come, first served', async () => {
    const { begun, gates, done } = begin(new Widening({ usual: 2, most: 8, slowMs: 60_000 }), 5)
    for (let at = 0; at < 5; at++) {
      expect(begun).to.eql([0, 1, 2, 3, 4].slice(0, at + 2))
      gates[at]?.resolve()
      await done[at]
    }
  })

  it('go past those that are slow, up to a limit, and two at a time again after them (E142)', async () => {
    const widening = new Widening({ usual: 2, most: 4, slowMs: 10 })
    const slow = begin(widening, 6)
    await until('two more went', () => slow.begun.length === 4)
    const then = performance.now()
    await until('these are slow as well', () => performance.now() - then > 40)
    expect(slow.begun).to.eql([0, 1, 2, 3])
    for (const gate of slow.gates) gate.resolve()
    await Promise.all(slow.done)
    const next = begin(widening, 3)
    expect(next.begun).to.eql([0, 1])
    for (const gate of next.gates) gate.resolve()
    await Promise.all(next.done)
  })

  it('make room when they fail', async () => {
    const widening = new Widening({ usual: 1, most: 1, slowMs: 60_000 })
    const failed = widening.run(() => Promise.reject(new Error('away')))
    const second = widening.run(async () => 'done')
    expect(await failed.catch((error: Error) => error.message)).to.equal('away')
    expect(await second).to.equal('done')
  })
})
