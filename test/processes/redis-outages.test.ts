import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import type { Chat, Threadmill } from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { busyness } from '../support/busy-machine.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { startProxy, type TcpProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/load.ts'
import { useJobs } from './support/jobs.ts'
import { loadModel, report } from './support/load.ts'
import { expectWhole, isAtRest } from './support/rows.ts'
import { useWorkers } from './support/workers.ts'

const LIMIT_MS = 120_000
const isFull = process.env.THREADMILL_FULL === '1'
const OUTAGE_MS = 6_000
/** Within so long after the return of Redis jobs of every queue are done again, the 0.4 s of a turn's own included. */
const FLOW_MS = 5_400
/** Most that a verb may take while Redis is away. */
const VERB_MS = 3_000

/** How Redis fails, until the promise inside is called; its jobs and locks are kept or lost. */
type Failing = () => Promise<() => Promise<unknown>>

onEachDatabase('Workers whose Redis fails', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 4_000, sweepEveryMs: 1_000 })
  const workers = useWorkers()
  const jobs = useJobs(() => bench.redis.url)
  let proxy: TcpProxy
  before(async () => {
    proxy = await startProxy(bench.redis.port)
  })
  after(() => proxy.close())

  const failures: Record<'killed' | 'refusing' | 'emptied', Failing> = {
    killed: async () => {
      await bench.redis.kill()
      return () => bench.redis.restart()
    },
    refusing: async () => {
      await proxy.cut()
      return () => proxy.mend()
    },
    emptied: async () => {
      await jobs().redis.flushall()
      return async () => {}
    },
  }

  const recover = async (fail: Failing, busy: number, lastsMs: number) => {
    const turn = loadModel({ rounds: 1, latencyMs: 100 })
    await bench.script((request, at) =>
      `${request.messages.at(-1)?.content}`.startsWith('Summarise') ? text('Much was said.') : turn(request, at),
    )
    const through = { redisUrl: `redis://127.0.0.1:${proxy.port}/0` }
    const mill = await bench.connect({ agents, ...through })
    const create = (agent: string) => mill.chats.create({ agent })
    const running = await Promise.all(Array.from({ length: busy }, (_, at) => create(at % 2 ? 'load' : 'queued load')))
    const [complete, queued, posted, asked, summed] = await Promise.all([
      ...['load', 'queued load', 'load', 'load'].map(create),
      longChat(mill),
    ])
    if (!complete || !queued || !posted || !asked || !summed) throw new Error('A chat is missing')
    const options = { ...bench.options(), ...through, counts: { complete: 6, runTools: 6, compact: 2 } }
    await Promise.all([0, 1].map(() => workers.start({ app: 'load', options })))
    await Promise.all(running.map((chat) => chat.askLater('busy', { enqueue: true })))
    if (busy > 0) await bench.model.waitForRequests(Math.floor(busy / 2))

    const usual = await timed(async () => (await create('load')).ask('before'))
    const recovered = await fail()
    const asking = timed(() => asked.ask('asked'))
    const took = await Promise.all([
      timed(() => complete.askLater('chat', { enqueue: true })),
      timed(() => queued.askLater('queued', { enqueue: true })),
      timed(() => posted.post('posted')),
      timed(() => mill.jobs.compact.enqueue(summed.id)),
      timed(() => complete.diagnosis()),
    ])
    expect(Math.max(...took)).to.be.lessThan(VERB_MS * busyness())
    expect(await asking).to.be.lessThan(usual + VERB_MS * busyness())
    await wait(lastsMs)
    await recovered()
    const back = performance.now()
    await until(
      'every queue flows',
      async () => {
        const rest = await Promise.all([complete, queued, posted, asked, ...running].map(isAtRest))
        return rest.every(Boolean) && (await isSummed(summed))
      },
      60_000,
    )
    const flowed = performance.now() - back
    report(
      `verbs took ${Math.max(...took).toFixed(0)} ms at most, all jobs were done ${flowed.toFixed(0)} ms after the return`,
    )
    expect(flowed).to.be.lessThan(FLOW_MS * busyness())
    for (const chat of [complete, queued, posted, asked, ...running]) await expectWhole(mill, chat)
  }

  const scenario = (name: keyof typeof failures, busy: number) => {
    const title = {
      killed: 'is killed and comes back empty',
      refusing: 'refuses connections and comes back as it was',
      emptied: 'is emptied',
    }[name]
    const lastsMs = name === 'emptied' ? 0 : OUTAGE_MS
    it(`go on within 5 s of its return when it ${title}, ${busy > 0 ? 'busy' : 'idle'} ones, and verbs answer within 3 s meanwhile (E143, E144)`, () =>
      recover(failures[name], busy, lastsMs)).timeout(LIMIT_MS)
  }
  if (isFull || kind.name === 'SQLite') scenario('killed', 0)
  if (isFull || kind.name === 'MariaDB') scenario('refusing', 8)
  if (isFull && kind.name === 'MariaDB') scenario('killed', 8)
  if (isFull && kind.name === 'SQLite') scenario('refusing', 0)
  scenario('emptied', kind.name === 'SQLite' ? 8 : 0)
})

async function timed(act: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await act()
  return performance.now() - begun
}

/** A chat that is answered, of which a summary can be made. */
async function longChat(mill: Threadmill): Promise<Chat> {
  const chat = await mill.chats.create()
  for (const at of [1, 2]) {
    await chat.addMessage({ role: 'user', content: `question ${at}`.padEnd(400, '.') })
    await chat.addMessage({ role: 'assistant', content: `answer ${at}`.padEnd(400, '.') })
  }
  return chat
}

async function isSummed(chat: Chat): Promise<boolean> {
  return (await chat.messages()).some(({ summaryThrough }) => summaryThrough !== null)
}
