import { setTimeout as wait } from 'node:timers/promises'
import type { Job } from 'bullmq'
import { expect } from 'chai'
import type { Transaction } from 'sequelize'
import type { Chat } from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/load.ts'
import { useJobs } from './support/jobs.ts'
import { allAtRest, askAll, expectAnswered, loadModel, makeChats, overlapsOf, report } from './support/load.ts'
import { expectWhole, isAtRest, transcriptOf } from './support/rows.ts'
import { useWorkers } from './support/workers.ts'

const LIMIT_MS = 180_000
const TURNS = 50
const OUTAGE_MS = 10_000
/** Longer than the longest pause between two tries to reach Redis again has grown to. */
const IDLE_OUTAGE_MS = process.env.THREADMILL_FULL === '1' ? 20_000 : 6_000

onEachDatabase('Turns that run or wait while Redis fails', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 5_000 })
  const workers = useWorkers()
  const jobs = useJobs(() => bench.redis.url)

  const survive = async (fail: () => Promise<unknown>) => {
    const model = await bench.script(loadModel({ rounds: 1, latencyMs: 500 }))
    const mill = await bench.connect({ agents })
    const chats = await makeChats(mill, TURNS)
    const options = { ...bench.options(), counts: { complete: 6, runTools: 0 } }
    await Promise.all([0, 1].map(() => workers.start({ app: 'load', options })))
    await askAll(chats, 0, TURNS)
    await model.waitForRequests(14)
    const running = model.requests.filter(({ ended }) => ended === null).length
    expect(running).to.be.greaterThan(0)
    const begun = performance.now()
    await fail()
    await allAtRest(chats, 90_000)
    report(
      `${running} answers under way; the last of ${TURNS} after ${((performance.now() - begun) / 1_000).toFixed(1)} s`,
    )
    // A question, its tool, an answer: two requests each, so that no running answer was bought twice.
    expect(model.requests).to.have.length(2 * TURNS)
    expect(overlapsOf(model.requests)).to.eql([])
    await expectAnswered(mill, chats, 1)
  }

  it('are all answered by themselves after a FLUSHALL, none bought twice', () =>
    survive(() => jobs().redis.flushall())).timeout(LIMIT_MS)

  it('are all answered by themselves after 10 s without Redis, none bought twice', () =>
    survive(async () => {
      await bench.redis.kill()
      await wait(OUTAGE_MS)
      await bench.redis.restart()
    })).timeout(LIMIT_MS)
})

onEachDatabase('An idle worker', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 4_000 })
  const workers = useWorkers()
  const jobs = useJobs(() => bench.redis.url)

  it('answers within seconds of Redis’s return what was posted while it was away (B48)', async () => {
    const model = await bench.script(text('pong'))
    const mill = await bench.connect()
    const [during, after] = [await mill.chats.create(), await mill.chats.create()]
    const worker = await workers.start({ app: 'clerk', options: bench.options() })
    await bench.redis.kill()
    const posted = performance.now()
    await during.askLater('ping', { enqueue: true })
    expect(performance.now() - posted).to.be.lessThan(3_000)
    expect(await transcriptOf(during)).to.eql(['U ping'])
    await wait(IDLE_OUTAGE_MS)
    await bench.redis.restart()
    await after.askLater('ping', { enqueue: true })
    await until('both are answered', async () => (await isAtRest(during)) && (await isAtRest(after)), 10_000)
    expect(model.requests).to.have.length(2)
    await expectWhole(mill, during)
    await expectWhole(mill, after)
    worker.signal('SIGTERM')
    expect(await worker.ended).to.equal(0)
  }).timeout(LIMIT_MS)

  itOnRealRedis('answers within seconds after its connections to Redis were cut (B48)', async () => {
    await bench.script(text('pong'))
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const worker = await workers.start({ app: 'clerk', options: bench.options() })
    const { redis } = jobs()
    const cut = await redis.client('KILL', 'SKIPME', 'yes')
    expect(cut, 'connections').to.be.greaterThan(2)
    await chat.askLater('ping', { enqueue: true })
    await until('it is answered', () => isAtRest(chat), 10_000)
    expect(await transcriptOf(chat)).to.eql(['U ping', 'A pong'])
    worker.signal('SIGTERM')
    expect(await worker.ended, 'it was never restarted').to.equal(0)
  }).timeout(LIMIT_MS)

  it('that is rung before the message is committed, or for one that never is, ends its job quietly (B49)', async () => {
    const model = await bench.script(text('pong'))
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await workers.start({ app: 'clerk', options: bench.options() })
    const early = [await jobs().ring(chat.id), await jobs().ring('00000000-0000-7000-8000-000000000000')]
    for (const job of early) {
      await until('the early job has ended', async () => {
        return (await jobs().job(job.id ?? ''))?.returnvalue === 'not wanted'
      })
    }
    expect(model.requests).to.have.length(0)
    await chat.askLater('ping', { enqueue: true })
    await until('it is answered', () => isAtRest(chat))
    expect(await transcriptOf(chat)).to.eql(['U ping', 'A pong'])
    expect(model.requests).to.have.length(1)
    expect(await jobs().failed()).to.equal(0)
  }).timeout(LIMIT_MS)

  it('answers once what is committed 300 ms after it was wanted, and nothing that is rolled back (B49)', async () => {
    const model = await bench.script(text('pong'))
    const mill = await bench.connect()
    const [kept, dropped] = [await mill.chats.create(), await mill.chats.create()]
    await workers.start({ app: 'clerk', options: bench.options() })
    const rungBefore = async (chat: Chat, transaction: Transaction) => {
      await chat.askLater('ping', { enqueue: true, transaction })
      // The job that other products add by now: its statement waits for the row, or finds nothing.
      const job = await jobs().ring(chat.id)
      await until('a worker has it', async () => (await job.getState()) !== 'waiting')
      await wait(300)
      return job
    }
    await mill.sequelize.transaction((transaction) => rungBefore(kept, transaction))
    await until('it is answered', () => isAtRest(kept))
    expect(await transcriptOf(kept)).to.eql(['U ping', 'A pong'])
    expect(model.requests).to.have.length(1)
    let early: Job | undefined
    const given = mill.sequelize.transaction(async (transaction) => {
      early = await rungBefore(dropped, transaction)
      throw new RangeError('the application thinks better of it')
    })
    await given.then(
      () => expect.fail('the transaction was committed'),
      (error) => expect(error).to.be.instanceOf(RangeError),
    )
    for (const job of [early, await jobs().ring(dropped.id)]) {
      await until('its jobs have ended', async () => (await jobs().job(job?.id ?? ''))?.returnvalue === 'not wanted')
    }
    expect(await dropped.messages()).to.eql([])
    expect(model.requests).to.have.length(1)
    expect(await jobs().failed()).to.equal(0)
    await expectWhole(mill, kept)
  }).timeout(LIMIT_MS)
})
