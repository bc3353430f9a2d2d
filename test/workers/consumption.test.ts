import { expect } from 'chai'
import { type FetchLook, isLate, standing } from '../../workers/consumption.ts'
import { elapsedOf } from '../../workers/worker-watch.ts'

const limitMs = 10_000
const look = (more: Partial<FetchLook>): FetchLook => ({
  phase: { kind: 'asking' },
  hasFreeSlot: true,
  quietMs: limitMs + 1,
  ...more,
})

describe('A worker that should have been heard of', () => {
  it('has a free slot, and gets no answer or asks for nothing for longer than the limit (E130)', () => {
    expect(isLate(look({}), limitMs)).to.equal(true)
    expect(isLate(look({ phase: { kind: 'between' } }), limitMs)).to.equal(true)
    expect(isLate(look({ quietMs: limitMs }), limitMs)).to.equal(false)
  })

  it('may wait for a ring as long as it said that it would (E130)', () => {
    const waiting = (quietMs: number) => isLate(look({ phase: { kind: 'waiting', atMostMs: 5_000 }, quietMs }), limitMs)
    expect(waiting(20_000)).to.equal(false)
    expect(waiting(20_001)).to.equal(true)
  })

  it('is none that has no room for a job, or was told that the rate of its queue is reached (E130)', () => {
    expect(isLate(look({ hasFreeSlot: false, quietMs: 3_600_000 }), limitMs)).to.equal(false)
    expect(isLate(look({ phase: { kind: 'limited' }, quietMs: 3_600_000 }), limitMs)).to.equal(false)
  })

  it('is none whose event loop a tool blocked for two minutes (E130)', () => {
    expect(elapsedOf(500, 500)).to.equal(500)
    expect(isLate(look({ quietMs: 5_000 + elapsedOf(120_000, 500) }), limitMs)).to.equal(false)
  })

  it('is renewed first, then stuck; one that gets errors is refused (E130, E132, E135)', () => {
    expect(standing({ renewals: 0, refusedMs: 0 }, limitMs)).to.equal('taking')
    expect(standing({ renewals: 0, refusedMs: limitMs }, limitMs)).to.equal('taking')
    expect(standing({ renewals: 0, refusedMs: limitMs + 1 }, limitMs)).to.equal('refused')
    expect(standing({ renewals: 1, refusedMs: 0 }, limitMs)).to.equal('renewed')
    expect(standing({ renewals: 2, refusedMs: 0 }, limitMs)).to.equal('stuck')
  })
})
