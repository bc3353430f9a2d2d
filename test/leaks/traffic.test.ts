import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { report } from '../processes/support/load.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import type { Keys, Memory } from './support/counts.ts'
import { expectKept } from './support/expect-kept.ts'
import { reported, usePrograms } from './support/programs.ts'
import { trafficModel } from './traffic/model.ts'

interface Point {
  readonly turns: number
  /** What was open beyond the limits, however long it was waited for. */
  readonly left: readonly string[]
  readonly memory: Memory
  readonly keys: Keys
}

const full = process.env.THREADMILL_FULL === '1'
const numbers = full
  ? { warmUpRounds: 8, rounds: 12, waitForThread: 1 }
  : { warmUpRounds: 3, rounds: 3, waitForThread: 0 }
/** Objects of compiled code, of a library's caches, and of the statements that each connection remembers, which fill up slowly. */
const slack = 4_000
/** How many answered and failed jobs queues keep, for three of them. */
const keptJobs = 3 * (1_000 + 5_000)
/** A stream outlives a run that parked, or that nobody ended, for so long. */
const streamLifeMs = 3_600_000

onEachDatabase('An hour of traffic in one process', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000, databasePool: 4 })
  const programs = usePrograms()
  let dataDir = ''
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'threadmill-leaks-'))
  })
  after(() => rm(dataDir, { recursive: true }))

  itOnRealRedis('leaves memory, handles, connections and keys as they were (E150)', async () => {
    const model = await bench.script(trafficModel())
    const { databaseUrl = '', redisUrl = '', ...options } = bench.options()
    const input = { options: { ...options, databaseUrl, redisUrl, dataDir }, numbers }
    const reports = await programs.run('leak-traffic', input, (name) => {
      // The connections that fetch keeps for later end with the server.
      if (name === 'closed') void model.close()
    })
    const [begin, middle, end] = ['begin', 'middle', 'end'].map((name) => reported<Point>(reports, name))
    if (begin === undefined || middle === undefined || end === undefined) throw new Error('Three points are reported')
    for (const { left, keys } of [begin, middle, end]) {
      expect(left, 'open beyond what was at the begin').to.deep.equal([])
      expect(keys.endedJobs).to.be.at.most(keptJobs)
      expect(keys.longestLifeMs).to.be.at.most(streamLifeMs)
    }
    expect(reported(reports, 'left'), 'open after all is closed').to.deep.equal([])
    // What is remembered of a chat's live events is an object, up to 20,000 of them.
    expectKept('traffic', [middle.memory, end.memory], {
      pieces: end.turns - middle.turns,
      perPiece: 1.5,
      slack,
    })
    const bytes = [begin, middle, end].map(({ memory }) => `${(memory.heapUsed / 1e6).toFixed(1)} MB`).join(', ')
    report(`${end.turns} turns; heap ${bytes}`)
  }).timeout(600_000)
})
