import { join } from 'node:path'
import { expect } from 'chai'
import { defineAgent } from '../../../src/index.ts'
import { gate, text } from '../../../src/testing/index.ts'
import { sqlite } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { startSwallowingProxy } from '../../support/swallowing-proxy.ts'
import { until } from '../../support/until.ts'
import { environmentOf, jsonLines, type RunningCli, runCli, startCli } from '../run-cli.ts'

const app = join(import.meta.dirname, '../apps/plain.ts')
const support = defineAgent({ name: 'support' })

interface LogLine {
  readonly level: string
  readonly msg: string
  readonly err?: { readonly code: string; readonly message: string }
}

describe('threadmill worker', function () {
  // The first one loads the whole library.
  this.timeout(60_000)
  const bench = useBench(sqlite)
  let running: RunningCli[] = []
  afterEach(async () => {
    for (const worker of running) worker.process.emit('SIGTERM')
    await Promise.all(running.map(({ ended }) => ended))
    running = []
  })

  async function start(argv: readonly string[] = [], more: { env?: Record<string, string>; tty?: boolean } = {}) {
    const env = { ...environmentOf(bench.options()), ...more.env }
    const worker = startCli(['worker', '--app', app, ...argv], { ...more, env })
    running.push(worker)
    const ended = worker.ended.then(({ code, err, out }) => `it ended with ${code}: ${err}${out}`)
    const ready = until('it is ready', () => worker.out().includes('ready'), 50_000).then(() => 'ready')
    expect(await Promise.race([ready, ended])).to.equal('ready')
    return worker
  }
  const logOf = (out: string) => jsonLines(out) as LogLine[]

  it('says that it is ready in one line, runs chats, and exits with 0 at SIGTERM', async () => {
    await bench.script(text('hello'))
    const worker = await start(['--complete', '2', '--run-tools', '0'])
    expect(logOf(worker.out())).to.have.length(1)
    expect(logOf(worker.out())[0]).to.deep.include({ msg: 'ready', agents: ['support'], complete: 2, runTools: 0 })
    const mill = await bench.connect({ agents: [support] })
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    await until('it answers', () => chat.isComplete())
    worker.process.emit('SIGTERM')
    const { code, out, err } = await worker.ended
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    expect(logOf(out).map(({ msg }) => msg)).to.include.members(['closing', 'closed'])
    expect(worker.exits).to.deep.equal([])
  })

  it('serves its probe where it is told to', async () => {
    const worker = await start(['--probe', '127.0.0.1:0'])
    const [line] = logOf(worker.out()) as unknown as { probe: string }[]
    const ready = await fetch(`${line?.probe}/ready`)
    expect([ready.status, ((await ready.json()) as { checks: { workers: string } }).checks.workers]).to.deep.equal([
      200,
      'ok',
    ])
    expect(await (await fetch(`${line?.probe}/metrics`)).text()).to.include('threadmill_claims_held 0')
    worker.process.emit('SIGTERM')
    expect(await worker.ended).to.include({ code: 0 })
    const wrong = startCli(['worker', '--app', app, '--probe', 'nowhere'], { env: environmentOf(bench.options()) })
    expect((await wrong.ended).err).to.include('host:port')
  })

  it('ends the running move first, or aborts it when the grace is over, and gives the chat back', async () => {
    const held = gate(text('hello'))
    await bench.script(held)
    const worker = await start(['--shutdown-grace-ms', '50', '--log-level', 'silent'])
    expect(logOf(worker.out()), 'the ready line, however little is logged').to.have.length(1)
    const mill = await bench.connect({ agents: [support] })
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    await held.reached
    worker.process.emit('SIGHUP')
    expect(await worker.ended).to.include({ code: 0 })
    const row = (await mill.models.Chat.findByPk(chat.id, { rejectOnEmpty: true })).get({ plain: true })
    expect(row).to.include({ claimedBy: null, failure: null })
    expect(row.wantedAt).to.be.instanceOf(Date)
    held.release()
  })

  it('logs an error that nobody caught without what it holds, closes, and exits with 1', async () => {
    const worker = await start()
    const error = Object.assign(new Error('lost redis://me:s3cret@host'), { headers: { authorization: 'Bearer k3y' } })
    worker.process.emit('uncaughtException', error)
    const { code, out } = await worker.ended
    expect(code).to.equal(1)
    expect(logOf(out).find(({ level }) => level === 'fatal')?.err).to.deep.equal({
      code: 'error',
      message: 'lost redis://***@host',
    })
    expect(out).not.to.match(/s3cret|k3y/)
  })

  it('counts it as a death of what it could not finish then, and of nothing else (E126)', async () => {
    const held = gate(text('hello'))
    await bench.script(held)
    const mill = await bench.connect({ agents: [support] })
    // Those of earlier tests would be taken up first.
    await mill.models.Chat.destroy({ where: {} })
    const worker = await start(['--shutdown-grace-ms', '50'])
    const rests = await mill.chats.create({ agent: support })
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    await held.reached
    worker.process.emit('uncaughtException', new Error('nobody catches this'))
    expect(await worker.ended).to.include({ code: 1 })
    const deathsOf = async ({ id }: { id: string }) => (await mill.models.Chat.findByPk(id))?.deaths
    expect([await deathsOf(chat), await deathsOf(rests)]).to.eql([1, 0])
    expect((await mill.models.Chat.findByPk(chat.id))?.claimedBy).to.equal(null)
    held.release()
  })

  it('exits with 4 when it takes no jobs and can’t help itself, its chats given back (E132)', async () => {
    const held = gate(text('hello'))
    await bench.script(held)
    const proxy = await startSwallowingProxy(bench.redis.port)
    try {
      const env = { REDIS_URL: proxy.url }
      const worker = await start(
        ['--complete', '2', '--run-tools', '0', '--compact', '0', '--stuck-after-ms', '2000'],
        {
          env,
        },
      )
      const mill = await bench.connect({ agents: [support] })
      const chat = await mill.chats.create({ agent: support })
      await chat.askLater('help', { enqueue: true })
      await held.reached
      proxy.swallow('complete:limiter')
      // Wakes what waits, so that it asks.
      await (await mill.chats.create({ agent: support })).askLater('help', { enqueue: true })
      const helpless = () => logOf(worker.out()).some(({ msg }) => msg.includes('could not be helped'))
      await until('it says so', helpless, 40_000)
      held.release()
      const { code, out } = await worker.ended
      expect(code).to.equal(4)
      expect(logOf(out).map(({ level, msg }) => [level, msg])).to.deep.include(['info', 'closed'])
      expect(worker.exits).to.deep.equal([])
      await until('the chat is given back', async () => !(await chat.running()))
    } finally {
      await proxy.close()
    }
  })

  it('logs lines for people on a terminal', async () => {
    const worker = await start([], { tty: true })
    expect(worker.out()).to.match(/^\d\d:\d\d:\d\d\.\d{3} \S*INFO.* ready .*agents=\["support"\]/m)
  })

  it('exits with 2 for an app file with a mistake, and for embedded services in production', async () => {
    const env = environmentOf(bench.options())
    const missing = await runCli(['worker', '--app', 'nowhere.ts'], { env })
    expect(missing).to.include({ code: 2, out: '' })
    expect(missing.err).to.match(/^error: --app: there is no file .*nowhere\.ts\. \(configuration\)$/m)
    const { DATABASE_URL = '' } = env
    const production = await runCli(['worker', '--app', app], { env: { DATABASE_URL, NODE_ENV: 'production' } })
    expect(production).to.include({ code: 2 })
    expect(production.err).to.include('REDIS_URL is missing')
  })
})
