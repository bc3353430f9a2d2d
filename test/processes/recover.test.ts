import { expect } from 'chai'
import type { Chat, Threadmill } from '../../src/index.ts'
import { gate, type ReplyFunction, text } from '../../src/testing/index.ts'
import { busyness } from '../support/busy-machine.ts'
import { type DatabaseKind, onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/load.ts'
import { allAtRest, askAll, expectAnswered, loadModel, makeChats, questionOf, report } from './support/load.ts'
import { kill, useWorkers } from './support/workers.ts'

const LIMIT_MS = 180_000
const HELD = 12
const DEFAULT_TTL_MS = 45_000

/** How long after a dead process's claim has lapsed the next worker may come, in ms: the bound that the documents give. */
const LATE_MS = 1_000

/** The first request of the chats that are held gets no answer, all others what a load test gives them. */
function silentAtFirst(then: ReplyFunction): ReplyFunction {
  const silent = new Set(Array.from({ length: HELD }, (_, at) => `chat ${at}`))
  const never = gate(text('never sent'))
  return (request, at) => (silent.delete(questionOf(request)) ? never : then(request, at))
}

/** When claims end, by the clock of the database, of chats that are held under this token or a later one. */
async function claimsOf(mill: Threadmill, chats: readonly Chat[], token: number): Promise<Map<string, number>> {
  const rows = await mill.models.Chat.findAll({ where: { id: chats.map(({ id }) => id) } })
  return new Map(
    rows.flatMap(({ id, claimToken, claimedUntil }) =>
      claimToken >= token && claimedUntil !== null ? [[id, claimedUntil.getTime()] as const] : [],
    ),
  )
}

interface Scenario {
  readonly title: string
  /** Workers beside the one that dies. */
  readonly left: number
  /** Chats that they are given in the moment in which it dies. */
  readonly others: number
  /** Tool rounds of each turn. */
  readonly rounds: number
}

function suite(kind: DatabaseKind, ttlMs: number, scenarios: readonly Scenario[]) {
  const bench = useBench(kind, { claimTtlMs: ttlMs, sweepEveryMs: 1_000 })
  const workers = useWorkers()
  const worker = () => workers.start({ app: 'load', options: bench.options() })

  for (const { title, left, others, rounds } of scenarios) {
    it(`${title} within its claim ttl and 1 s (E140)`, async () => {
      const model = await bench.script(silentAtFirst(loadModel({ rounds, latencyMs: 400 })))
      const mill = await bench.connect({ agents })
      const chats = await makeChats(mill, HELD + others)
      const dying = chats.slice(0, HELD)
      const dead = await worker()
      for (let at = 0; at < HELD; at++) {
        // One by one, so that their claims lapse one by one.
        await askAll(chats, at, 1)
        await model.waitForRequests(at + 1)
      }
      await Promise.all(Array.from({ length: left }, worker))
      await kill(dead)
      const lapses = await claimsOf(mill, dying, 1)
      await askAll(chats, HELD, others)
      const late = new Map<string, number>()
      await until(
        'every chat of the dead worker is taken',
        async () => {
          for (const [id, end] of await claimsOf(mill, dying, 2)) {
            if (!late.has(id)) late.set(id, end - ttlMs - (lapses.get(id) ?? Number.NaN))
          }
          return late.size === HELD
        },
        ttlMs + 30_000,
      )
      const sorted = [...late.values()].toSorted((one, other) => one - other)
      report(`taken ${sorted[0]} to ${sorted.at(-1)} ms after the claims of the dead worker had lapsed`)
      expect(sorted[0], 'never before').to.be.at.least(0)
      expect(sorted.at(-1)).to.be.at.most(LATE_MS * busyness())
      await allAtRest(chats, 90_000)
      expect(model.requests).to.have.length(HELD + (rounds + 1) * chats.length)
      await expectAnswered(mill, chats, rounds)
    }).timeout(LIMIT_MS)
  }
}

const amongIdle = { title: 'are taken by one of three idle workers', left: 3, others: 0, rounds: 0 }
const byLoaded = { title: 'are taken by the one that is left, which has other work', left: 1, others: 20, rounds: 3 }
const isFull = process.env.THREADMILL_FULL === '1'

onEachDatabase('The chats of a worker that was killed', (kind) => {
  suite(kind, 4_000, isFull ? [amongIdle, byLoaded] : [kind.name === 'SQLite' ? byLoaded : amongIdle])
})

onEachDatabase('With the settings as they are, the chats of a worker that was killed', (kind) => {
  if (isFull && kind.name === 'MariaDB') suite(kind, DEFAULT_TTL_MS, [amongIdle])
  else it('are taken within 46 s (left out: MariaDB and THREADMILL_FULL=1 only)')
})
