import { expect } from 'chai'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import type { Memory } from './support/counts.ts'
import { expectKept } from './support/expect-kept.ts'
import { reported, usePrograms } from './support/programs.ts'

interface Cycles {
  readonly times: number
  /** What was open beyond what was before, however long it was waited for. */
  readonly left: readonly string[]
  readonly begin: Memory
  readonly end: Memory
}

const times = process.env.THREADMILL_FULL === '1' ? 50 : 12

onEachDatabase('What is opened and closed again many times in one process', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const programs = usePrograms()

  itOnRealRedis(
    'leaves nothing open and nothing in memory: connections, pools, probes, schemas, viewers (E151)',
    async () => {
      const model = await bench.script(() => text('Hello.'))
      const { databaseUrl = '', redisUrl = '', ...options } = bench.options()
      const input = { options: { ...options, databaseUrl, redisUrl }, numbers: { times } }
      const reports = await programs.run('leak-cycles', input, (name) => {
        // The connections that fetch keeps for later end with the server.
        if (name === 'closed') void model.close()
      })
      for (const what of ['connections', 'pools', 'probes', 'schemas', 'viewers']) {
        const { left, begin, end, times: pieces } = reported<Cycles>(reports, what)
        expect(left, what).to.deep.equal([])
        expectKept(what, [begin, end], { pieces, perPiece: 1, slack: 400 })
      }
    },
  ).timeout(600_000)
})
