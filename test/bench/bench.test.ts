import { expect } from 'chai'
import { bare } from '../../bench/bare.ts'
import { measure } from '../../bench/measure.ts'
import { type Services, startServices } from '../../bench/services.ts'
import { otherProcess, sameProcess } from '../../bench/threadmill.ts'
import type { Workload } from '../../bench/workloads.ts'

describe('The benchmark', function () {
  this.timeout(120_000)
  let services: Services
  before(async () => {
    services = await startServices(undefined)
  })
  after(() => services.close())

  const small = { name: 'small', concurrency: 2, warmup: 1, turns: 4, chunks: 0, latencyMs: 0, history: 0 }

  const figuresOf = async (workload: Workload) => {
    const arena = { ...services, modelUrl: services.modelUrl(workload.latencyMs, workload.chunks) }
    const measured = []
    for (const contestant of [bare, sameProcess, otherProcess]) {
      measured.push(await measure(contestant, workload, arena, services.counters))
    }
    return measured
  }

  it('has every contestant answer every turn, whole, streamed, and behind a history', async () => {
    for (const workload of [small, { ...small, chunks: 5, history: 4 }]) {
      for (const figures of await figuresOf(workload)) {
        expect(figures.turnsPerSecond).to.be.greaterThan(0)
        expect(figures.cpuMsPerTurn).to.be.greaterThan(0)
        expect(figures.p99Ms).to.be.at.least(figures.p50Ms)
      }
    }
  })
})
