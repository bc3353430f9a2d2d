import { Queue } from 'bullmq'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { queueNames } from '../../../config/queues.ts'
import { defineAgent } from '../../../src/index.ts'
import { gate, text } from '../../../src/testing/index.ts'
import { allRows } from '../../support/all-rows.ts'
import { onEachDatabase, type TestDatabase } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { itOnRealRedis } from '../../support/real-redis.ts'
import { until } from '../../support/until.ts'
import { environmentOf, runCli } from '../run-cli.ts'

const support = defineAgent({ name: 'support' })

interface Shown {
  readonly status: string
  readonly parts: readonly { readonly part: string; readonly status: string; readonly what: string }[]
}

onEachDatabase('threadmill health', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  let redis: Redis
  let queue: Queue
  beforeEach(() => {
    redis = new Redis(bench.redis.url, { maxRetriesPerRequest: null })
    queue = new Queue(queueNames.complete, { connection: redis, prefix: 'threadmill' })
  })
  afterEach(async () => {
    await queue.resume()
    await queue.close()
    redis.disconnect()
  })

  const health = async (...argv: string[]) => {
    const { code, out, err } = await runCli(['health', ...argv], { env: environmentOf(bench.options()) })
    const json = () => JSON.parse(out) as Shown
    return { code, out, err, json, statuses: () => json().parts.map(({ part, status }) => `${part} ${status}`) }
  }
  const left = async () => [
    await queue.getJobCounts('waiting', 'active'),
    await redis.keys('threadmill:complete:[1-9]*'),
  ]
  const nothing = [{ waiting: 0, active: 0 }, []]

  it('exits with 0 when workers take jobs, names them, and leaves neither jobs, rows nor a trace of them (E136)', async () => {
    const seen: string[] = []
    const mill = await bench.connect({ agents: [support], onObservation: ({ type }) => seen.push(type) })
    await mill.startWorkers({ complete: 1, runTools: 1, compact: 0 }).ready()
    const before = await allRows(mill)
    const { code, out, err } = await health()
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    expect(out)
      .to.match(/^ok +database +it answers/m)
      .and.to.match(/^ok +redis +it answers$/m)
      .and.to.match(new RegExp(`^ok +complete +taken by \\S+:${process.pid} in \\d+ ms$`, 'm'))
      .and.to.match(/^ok +runTools +taken by/m)
      .and.to.match(/^none +compact +no worker/m)
    expect(await left()).to.deep.equal(nothing)
    expect(await allRows(mill)).to.deep.equal(before)
    expect(seen.filter((type) => type.startsWith('job.') || type.startsWith('run.'))).to.deep.equal([])
  }).timeout(60_000)

  it('exits with 4 when nobody takes jobs, and takes its own back (E136)', async () => {
    const short = ['--timeout', '1500ms', '--json']
    const [all, named] = await Promise.all([health(...short), health(...short, '--queue', 'runTools')])
    const { code, json, statuses } = all
    expect(code).to.equal(4)
    expect(json().status).to.equal('failing')
    expect(statuses()).to.deep.equal(['database ok', 'redis ok', 'complete untaken', 'runTools none', 'compact none'])
    expect(await left()).to.deep.equal(nothing)
    expect(named.code).to.equal(4)
    expect(named.statuses().slice(2)).to.deep.equal(['complete none', 'runTools untaken', 'compact none'])
  })

  it('goes before the chats that wait, disturbs none, and knows busy workers and a paused queue (E137)', async () => {
    const held = gate(text('hello'))
    await bench.script([held])
    const mill = await bench.connect({ agents: [support] })
    const chats = await Promise.all([1, 2, 3].map(() => mill.chats.create({ agent: support })))
    for (const chat of chats) await chat.askLater('help', { enqueue: true })
    await queue.pause()
    const paused = await health('--timeout', '5s', '--json')
    expect(paused.code).to.equal(0)
    expect(paused.statuses()).to.include('complete paused')
    await queue.resume()
    const asked = health('--timeout', '45s', '--json')
    const waiting = async () => (await queue.getJobs('waiting')).map(({ name }) => name)
    await until('the canary waits', async () => (await waiting()).includes('canary'))
    await mill.startWorkers({ complete: 1, runTools: 0, compact: 0 }).ready()
    await held.reached
    expect((await asked).out).to.match(/"part":"complete","status":"ok"/)
    const busy = await health('--timeout', '1500ms', '--json')
    expect(busy.code).to.equal(0)
    expect(busy.statuses()).to.include('complete busy')
    expect(await waiting()).not.to.include('canary')
    held.release()
  }).timeout(90_000)

  it('exits with 1 while Redis or the database can’t be used, and shows no secret (E136)', async () => {
    const away = await health('--json', '--timeout', '1500ms', '--redis-url', 'redis://someone:s3cret@127.0.0.1:1')
    expect(away.code).to.equal(1)
    expect(away.statuses()).to.deep.equal(['database ok', 'redis failed'])
    expect(away.out).to.include('127.0.0.1:1').and.not.to.include('s3cret')
  })

  itOnRealRedis('exits with 1 when Redis does not answer in time, or refuses (E136)', async () => {
    await redis.call('CLIENT', 'PAUSE', '1500', 'ALL')
    const mute = await health('--json', '--timeout', '300ms')
    expect(mute.code).to.equal(1)
    expect(mute.statuses()).to.include('redis failed')
    await redis.config('SET', 'maxmemory', '1')
    const full = await health('--json')
    await redis.config('SET', 'maxmemory', '0')
    expect(full.code).to.equal(1)
    expect(full.json().parts[1]?.what).to.include('OOM')
  })

  describe('on a database without tables', () => {
    let database: TestDatabase
    before(async () => {
      database = await kind.create()
    })
    after(() => database.drop())

    it('exits with 1 (E136)', async () => {
      const { code, json } = await health('--json', '--timeout', '1500ms', '--database-url', database.url)
      expect(code).to.equal(1)
      expect(json().parts[0]).to.include({ part: 'database', status: 'failed' })
      expect(json().parts[0]?.what).to.include('migrate')
    })
  })
})
