import { Queue } from 'bullmq'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { queueNames } from '../../config/queues.ts'
import type { ConnectOptions, Observation, Threadmill } from '../../src/index.ts'
import { gate, text } from '../../src/testing/index.ts'
import { environmentOf, runCli } from '../cli/run-cli.ts'
import { startProxy } from '../events/proxy.ts'
import { onEachDatabase, sqlite } from '../support/databases.ts'
import { type Bench, useBench } from '../support/mills.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { startSwallowingProxy } from '../support/swallowing-proxy.ts'
import { until } from '../support/until.ts'

/** How long a chat may wait whose worker was cut off, in ms; it takes half of it on a machine that does nothing else. */
const answeredWithinMs = 20_000

async function working(bench: Bench, options: ConnectOptions = {}) {
  const seen: Observation[] = []
  const mill = await bench.connect({ onObservation: (one) => seen.push(one), ...options })
  const pool = mill.startWorkers({ complete: 1, runTools: 0, compact: 0 })
  await pool.ready()
  const types = () => seen.map(({ type }) => type).filter((type) => type.startsWith('worker.'))
  return { mill, pool, seen, types }
}

async function answer(mill: Threadmill, withinMs = answeredWithinMs): Promise<void> {
  const chat = await mill.chats.create()
  await chat.askLater('ping', { enqueue: true })
  await until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()), withinMs)
}

describe('A worker that is alive and takes nothing', function () {
  this.timeout(60_000)
  const bench = useBench(sqlite)
  const closers: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })

  it('since its connections swallow everything gets new ones, and answers (E130, E131)', async () => {
    await bench.script(text('pong'))
    const proxy = await startProxy(bench.redis.port)
    closers.push(() => proxy.close())
    const application = await bench.connect()
    const { pool, types } = await working(bench, { redisUrl: proxy.url })
    await answer(application)
    proxy.muteOpenConnections()
    await answer(application)
    expect(pool.state).to.equal('running')
    expect(types()).to.deep.equal([])
    await pool.close()
  })

  it('is replaced, then stuck, and comes back by itself once something is heard of it (E130, E132)', async () => {
    await bench.script(text('pong'))
    const proxy = await startSwallowingProxy(bench.redis.port)
    closers.push(() => proxy.close())
    const application = await bench.connect()
    const { mill, pool, types } = await working(bench, { redisUrl: proxy.url, stuckAfterMs: 2_000 })
    const probe = await mill.serveProbe({ port: 0 })
    const ask = async (path: string) => {
      const response = await fetch(`${probe.url}${path}`)
      const { checks } = (await response.json()) as { checks: { workers: string } }
      return [response.status, checks.workers]
    }
    await answer(application)
    const keys = new Redis(bench.redis.url)
    closers.push(async () => keys.disconnect())
    await until('its job has ended', async () => (await keys.llen('threadmill:complete:active')) === 0)
    // A key that is named where a worker asks for a job, or ends one.
    proxy.swallow('complete:limiter')
    const waiting = await application.chats.create()
    await waiting.askLater('ping', { enqueue: true })
    await until('it is made anew', () => pool.state === 'renewed', 30_000)
    expect(await ask('/ready')).to.deep.equal([503, 'renewed'])
    expect(await ask('/live')).to.deep.equal([200, 'ok'])
    await until('it is stuck', () => pool.state === 'stuck', 30_000)
    expect(await ask('/ready')).to.deep.equal([503, 'stuck'])
    expect(await ask('/live')).to.deep.equal([503, 'stuck'])
    expect(types()).to.deep.equal(['worker.renewed', 'worker.renewed', 'worker.stuck'])
    const env = environmentOf(bench.options())
    expect(await runCli(['health', '--timeout', '300ms'], { env })).to.include({ code: 4, err: '' })
    proxy.passOn()
    await until('the chat is answered that waited', () => waiting.isComplete(), answeredWithinMs)
    await until('it is well', () => pool.state === 'running')
    expect(types().at(-1)).to.equal('worker.recovered')
    expect(types().filter((type) => type === 'worker.stuck')).to.have.length(1)
    await pool.close()
  })

  for (const [what, refuse, allow] of [
    ['full', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
    ['read-only', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
  ] as const) {
    itOnRealRedis(
      `since Redis is ${what} says so without a flood, and goes on when it no longer is (E135)`,
      async () => {
        const held = gate(text('pong'))
        await bench.script(held)
        const { mill, pool, seen, types } = await working(bench, { stuckAfterMs: 2_000 })
        const chat = await mill.chats.create()
        await chat.askLater('ping', { enqueue: true })
        await held.reached
        const server = new Redis(bench.redis.url)
        closers.push(async () => server.disconnect())
        const [first, ...more] = refuse
        await server.call(first, ...more)
        held.release()
        await until('the turn has ended', async () => (await chat.isComplete()) && !(await chat.running()))
        await until('the workers are refused', () => pool.state === 'refused')
        const troubles = seen.filter((one) => one.type === 'redis.trouble' && one.doing.startsWith('working on'))
        expect(troubles.length).to.be.within(1, 20)
        await server.call(allow[0], ...allow.slice(1))
        await answer(mill)
        await until('the workers are well', () => pool.state === 'running')
        expect(types()).to.deep.equal([])
        await pool.close()
      },
    )
  }

  itOnRealRedis(
    'is none that is idle, full or paused, or stood still; and looking costs Redis no command (E138)',
    async () => {
      const commands: string[] = []
      const idle = await working(bench, {
        sweepEveryMs: 60_000,
        stuckAfterMs: 2_000,
        observe: { onCommand: (name) => commands.push(name) },
      })
      const server = new Redis(bench.redis.url, { maxRetriesPerRequest: null })
      const paused = new Queue(queueNames.complete, { connection: server, prefix: 'paused' })
      closers.push(async () => {
        await paused.close()
        server.disconnect()
      })
      await paused.pause()
      const held = gate(text('pong'))
      await bench.script(held)
      const full = await working(bench, { redisPrefix: 'full', stuckAfterMs: 2_000 })
      const halted = await working(bench, { redisPrefix: 'paused', stuckAfterMs: 2_000 })
      const chat = await full.mill.chats.create()
      await chat.askLater('ping', { enqueue: true })
      await held.reached
      await paused.add('ring', { chatId: chat.id })
      const waits = async () =>
        Number(/^cmdstat_bzpopmin:calls=(\d+)/m.exec(await server.info('commandstats'))?.[1] ?? 0)
      const before = await waits()
      commands.length = 0
      // As a tool does that computes for seconds.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_000)
      // The idle one and the halted one wait 5 s each time.
      await until('both have waited in vain', async () => (await waits()) >= before + 2)
      expect(commands.every((name) => name === 'evalsha' || name === 'eval')).to.equal(true)
      expect(commands.length).to.be.within(1, 3)
      for (const { pool, seen, types } of [idle, full, halted]) {
        expect(pool.state).to.equal('running')
        expect(types()).to.deep.equal([])
        expect(seen.filter(({ type }) => type === 'redis.trouble')).to.deep.equal([])
      }
      expect(await paused.getWaitingCount()).to.be.at.least(1)
      held.release()
      await until('the held chat is answered', () => chat.isComplete())
    },
  )
})

onEachDatabase('A worker whose Redis', (kind) => {
  const bench = useBench(kind, { stuckAfterMs: 2_000 })
  const redises: Redis[] = []
  const redis = () => {
    const client = new Redis(bench.redis.url)
    redises.push(client)
    return client
  }
  afterEach(() => {
    for (const client of redises.splice(0)) client.disconnect()
  })

  it('forgets its queue, all of it or the marker alone, answers within seconds what waited in it (E133)', async () => {
    const keys = redis()
    for (const lose of [
      () => keys.flushall(),
      () => keys.del('threadmill:complete:marker', 'threadmill:complete:meta'),
      async () => keys.del(...(await keys.keys('threadmill:complete:*'))),
    ]) {
      const held = gate(text('pong'))
      await bench.script([held, text('pong'), text('pong')])
      const { mill, pool, types } = await working(bench, { sweepEveryMs: 500 })
      const chats = await Promise.all([1, 2, 3].map(() => mill.chats.create()))
      await chats[0]?.askLater('ping', { enqueue: true })
      await held.reached
      for (const chat of chats.slice(1)) await chat.askLater('ping', { enqueue: true })
      await lose()
      held.release()
      const all = async () => (await Promise.all(chats.map((chat) => chat.isComplete()))).every(Boolean)
      await until('all are answered', all, answeredWithinMs)
      expect(types()).to.deep.equal([])
      await pool.close()
    }
  }).timeout(60_000)

  it('loses the lock of a job in the middle of its turn ends the turn under its claim, once (E134)', async () => {
    const held = gate(text('pong'))
    const model = await bench.script(held)
    const { mill, types } = await working(bench)
    const chat = await mill.chats.create()
    await chat.askLater('ping', { enqueue: true })
    await held.reached
    const keys = redis()
    expect(await keys.del(...(await keys.keys('threadmill:complete:*:lock')))).to.equal(1)
    held.release()
    await until('it is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    expect(model.requests).to.have.length(1)
    await chat.askLater('ping', { enqueue: true })
    await until('it is answered again', () => chat.isComplete(), answeredWithinMs)
    expect(model.requests).to.have.length(2)
    expect(types()).to.deep.equal([])
  }).timeout(60_000)

  if (kind.name === 'MariaDB') {
    it('is well, and whose connections to the database swallow everything, gets new ones, and answers (E131)', async () => {
      await bench.script(text('pong'))
      const url = new URL(bench.database.url)
      const proxy = await startProxy(Number(url.port))
      url.port = new URL(proxy.url).port
      try {
        const application = await bench.connect()
        const { mill, pool } = await working(bench, { databaseUrl: url.href, claimTtlMs: 45_000 })
        await answer(application)
        proxy.muteOpenConnections()
        await answer(application)
        await pool.close()
        await mill.close()
      } finally {
        await proxy.close()
      }
    }).timeout(90_000)
  }
})
