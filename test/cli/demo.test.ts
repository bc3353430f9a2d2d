import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { httpError, type ModelServer, startModelServer, text } from '../../src/testing/index.ts'
import { startRedisServer } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { type Demo, useDemos } from './support.ts'

/** Long enough to be stopped in the middle: the demo model takes 15 ms a word. */
const longMessage = 'and so on '.repeat(300).trim()

describe('The demo', function () {
  this.timeout(240_000)
  const { folder, start, run, runSources, remains } = useDemos()
  const servers: ModelServer[] = []

  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close()))
  })

  /** It ended so, and nothing of it is left. */
  async function expectEnd(demo: Demo, code: number): Promise<void> {
    expect(await demo.ended, `${demo.out}\n${demo.err}`).to.equal(code)
    expect(await remains(demo)).to.deep.equal([])
  }

  it('tells the time of a city by a tool, shows each event on a line without colours, and leaves nothing behind', async () => {
    const { demo } = await runSources(['--once', 'What time is it in Tokyo?'])
    await expectEnd(demo, 0)
    expect(demo.out).to.match(/^· run started\n/)
    expect(demo.out).to.include('· tool clock {"city":"Tokyo"}\n')
    expect(demo.out).to.match(/^In Tokyo, the clock says: .*\d\d:\d\d \(Asia\/Tokyo\)$/m)
    expect(demo.out).to.match(/· run finished\n$/)
    expect(demo.out).not.to.include('\u001b')
    expect(demo.err).to.match(/^Model: threadmill-demo, a stand-in .*OPENAI_API_KEY/m)
    expect(await readdir(join(folder().path, '.threadmill'))).to.deep.equal(['threadmill.sqlite'])
  })

  it('parks at a refund with a card and 3, and goes on in another process a while later (S35)', async () => {
    const parked = await run(['--once', 'Refund order 42'])
    await expectEnd(parked.demo, 3)
    expect(parked.demo.out).to.include('│ refund_order\n│   order: 42\n')
    expect(parked.demo.out).to.include(`npm run demo -- --chat ${parked.demo.chatId} --approve`)
    expect(parked.demo.out).not.to.include('receipt')

    const approved = await run(['--chat', parked.demo.chatId, '--approve'])
    await expectEnd(approved.demo, 0)
    expect(approved.demo.out).to.match(/^About order 42: .*receipt R-[0-9A-F]{8}/m)
  })

  it('holds a conversation: a sum, a file, an echo, a refund that is denied, one that is approved for good', async () => {
    await writeFile(join(folder().path, 'notes.txt'), 'buy milk')
    const demo = start([])
    demo.type('12 * 7\nread notes.txt\nHello\nrefund order 1\nperhaps\nn\nrefund order 2\na\nrefund order 3\n/quit\n')
    await expectEnd(demo, 0)
    expect(demo.out).to.include('\n12 * 7 = 84.\n')
    expect(demo.out).to.include('\nbuy milk\n')
    expect(demo.out).to.include('\nYou said: Hello\n')
    expect(demo.out).to.include('· please answer y, n or a\n· denied refund_order\n')
    expect(demo.out).to.include('· remembered refund_order\n')
    expect(demo.out.match(/waits for your approval/g)).to.have.length(2)
    expect(demo.out).to.match(/· tool refund_order \{"order":"3"\}\n· succeeded refund_order/)
  })

  it('runs twice at once in one folder, and approves by itself where it is told to', async () => {
    const both = await Promise.all([run(['--once', 'What is 2 ^ 10?']), run(['--once', 'Refund order 7', '--approve'])])
    for (const { demo } of both) await expectEnd(demo, 0)
    expect(both[0].demo.out).to.include('2 ^ 10 = 1024.')
    expect(both[1].demo.out).to.include('· approved refund_order\n')
    expect(both[1].demo.out).to.match(/^About order 7: .*receipt R-/m)
  })

  it('needs nothing but Node on PATH, and says that its Redis is a stand-in', async () => {
    const path = join(folder().path, 'bin')
    await mkdir(path)
    await symlink(process.execPath, join(path, 'node'))
    const { demo } = await run(['--once', 'Refund order 42', '--approve'], { PATH: path })
    await expectEnd(demo, 0)
    expect(demo.out).to.include('About order 42:')
    expect(demo.err).to.match(/Redis: a stand-in written in JavaScript .* It is slow/)
  })

  it('uses the database, the Redis and the model that the environment names, and starts none', async () => {
    const redis = await startRedisServer()
    const server = await startModelServer({ respond: text('Real enough.') })
    servers.push(server)
    try {
      const { demo } = await run(['--once', 'Hello'], {
        DATABASE_URL: `sqlite:${join(folder().path, 'own.sqlite')}`,
        REDIS_URL: redis.url,
        OPENAI_BASE_URL: server.url,
      })
      await expectEnd(demo, 0)
      expect(demo.out).to.include('\nReal enough.\n')
      expect(demo.err).to.match(
        /^Model: gpt-4o-mini at 127\.0\.0\.1:\d+ \(the default; THREADMILL_MODEL names another\)\.$/m,
      )
      expect(demo.err).not.to.include('Redis:')
      expect(server.requests[0]?.body.model).to.equal('gpt-4o-mini')
      expect(await readdir(folder().path)).to.deep.equal(['own.sqlite'])
    } finally {
      await redis.stop()
    }
  })

  it('fails with the message and the code of the error', async () => {
    const server = await startModelServer({ respond: httpError(401, 'Incorrect API key') })
    servers.push(server)
    const { demo } = await run(['--once', 'Hello'], { OPENAI_BASE_URL: server.url, THREADMILL_MODEL: 'some-model' })
    await expectEnd(demo, 1)
    expect(demo.err).to.match(/Incorrect API key.*\(provider\.authentication\)/s)
    expect(demo.err).to.include('Model: some-model at')
  })

  it('stops the answer at Ctrl-C, takes the next message, and leaves at /quit', async () => {
    const demo = start([])
    demo.type(`${longMessage}\n`)
    await demo.says('You said: and so on and so on')
    demo.interrupt()
    await demo.says('· stopped\n')
    demo.type('12 * 7\n/quit\n')
    await expectEnd(demo, 0)
    expect(demo.out).to.include('· stopping\n')
    expect(demo.out).to.include('12 * 7 = 84.')
    expect(demo.out).not.to.include('I am threadmill-demo')
  })

  it('leaves a conversation at the second Ctrl-C between two answers', async () => {
    const demo = start([])
    demo.type('12 * 7\n/where\n')
    // It takes commands, so the answer is over for it, too.
    await demo.says('· there is no command /where')
    demo.interrupt()
    await demo.says('· Ctrl-C again, or /quit, leaves\n')
    await untilNextPress()
    demo.interrupt()
    await expectEnd(demo, 0)
  })

  it('ends with 130, and without a complaint, when Ctrl-C comes while it starts', async () => {
    const demo = start(['--once', 'Hello'])
    await until('it has begun to start', () => demo.err.includes('Database:'), 60_000)
    demo.interrupt()
    await expectEnd(demo, 130)
    expect(demo.err).not.to.include('did not start')
    expect(demo.out).to.equal('')
  })

  it('says by its code that it knows no such chat', async () => {
    const { demo } = await run(['--chat', 'nobody', '--approve'])
    await expectEnd(demo, 1)
    expect(demo.err).to.include('(chat.not_found)')
  })

  it('ends with 130 when a single question is stopped by Ctrl-C', async () => {
    const demo = start(['--once', longMessage])
    await demo.says('You said: and so on and so on')
    demo.interrupt()
    await expectEnd(demo, 130)
    expect(demo.out).to.match(/· stopping\n(.*\n)*· stopped\n/)
  })

  it('gives the chat up at SIGTERM, and the next demo answers it (S13)', async () => {
    const demo = start(['--once', longMessage])
    await demo.says('You said: and so on and so on')
    demo.process.kill('SIGTERM')
    await expectEnd(demo, 143)
    expect(demo.err).to.include(`npm run demo -- --chat ${demo.chatId}`)

    const next = start(['--chat', demo.chatId])
    await next.says('I am threadmill-demo')
    next.type('/quit\n')
    await expectEnd(next, 0)
  })

  it('says that no worker is left when both were killed', async () => {
    const demo = start(['--once', longMessage])
    await demo.says('You said: and so on and so on')
    const pids = /^Workers: processes (\d+) and (\d+)\.$/m.exec(demo.err)?.slice(1) ?? []
    expect(pids).to.have.length(2)
    for (const pid of pids) process.kill(Number(pid), 'SIGKILL')
    await expectEnd(demo, 1)
    expect(demo.err).to.match(/No worker process is left \(SIGKILL, SIGKILL\).*\(configuration\)/)
  })

  it('refuses an unknown option with 2 before it starts anything', async () => {
    const { demo } = await run(['--bogus'])
    await expectEnd(demo, 2)
    expect(demo.err).to.match(/unknown option '--bogus'\nSee npm run demo -- --help\n/)
    expect(await readdir(folder().path)).to.deep.equal([])
  })

  /** Two presses at the same moment count as one. */
  async function untilNextPress(): Promise<void> {
    const from = performance.now()
    await until('the next press counts', () => performance.now() - from > 400)
  }
})
