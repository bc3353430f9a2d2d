import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { networkInterfaces } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import ts from 'typescript'
import { ask, isAlive } from '../../config/embedded/address.ts'
import { embedded } from '../../config/embedded/index.ts'
import { type EmbeddedRedis, startRedis } from '../../config/embedded/redis.ts'
import { removeDirectory, Script, temporaryDirectory, until } from './support/helpers.ts'

interface Answer {
  readonly url: string
  readonly kind: string
  readonly shared: boolean
  readonly notices: string[]
}

const portOf = (url: string) => Number(new URL(url).port)
const answers = async (url: string) => (await ask(portOf(url), 'PING')).startsWith('+PONG')
const serverPid = async (directory: string) =>
  JSON.parse(await readFile(join(directory, 'redis.json'), 'utf8')).serverPid as number
/** What a machine without any Redis looks like. */
const bare = { PATH: '/nonexistent' }

/** Whether a port can be reached by an address of this machine that is not the loopback one. */
async function isOpenToOthers(port: number): Promise<boolean> {
  const outside = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).filter((entry) => !entry.internal && entry.family === 'IPv4'),
  )
  // Where there is no other interface, another loopback address shows a server that listens on all of them.
  const hosts = [...outside.map((entry) => entry.address), '127.0.0.2']
  const tries = hosts.map(
    (host) =>
      new Promise<boolean>((done) => {
        const socket = createConnection({ host, port, timeout: 1_000 })
        socket
          .once('connect', () => done(true))
          .once('error', () => done(false))
          .once('timeout', () => done(false))
        socket.once('connect', () => socket.destroy())
      }),
  )
  return (await Promise.all(tries)).includes(true)
}

/** What the embedded Redis is made of, as JavaScript in `target`, with this project's packages at hand. */
async function build(target: string): Promise<void> {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const embeddedFiles = (await readdir(join(root, 'config/embedded'))).map((name) => `config/embedded/${name}`)
  const others = (await readdir(join(root, 'config')))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `config/${name}`)
  for (const name of [...embeddedFiles, ...others, 'src/errors.ts', 'test/config/support/redis-owner.ts']) {
    const { outputText } = ts.transpileModule(await readFile(join(root, name), 'utf8'), {
      compilerOptions: {
        module: ts.ModuleKind.ESNext,
        target: ts.ScriptTarget.ES2023,
        verbatimModuleSyntax: true,
        rewriteRelativeImportExtensions: true,
      },
    })
    const file = join(target, name.replace(/\.ts$/, '.js'))
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, outputText)
  }
  await writeFile(join(target, 'package.json'), '{"type":"module"}')
  await symlink(join(root, 'node_modules'), join(target, 'node_modules'))
}

describe('the embedded Redis', function () {
  this.timeout(40_000)
  let directory: string
  /** Owners in other processes run the code as it is after a build; this process runs it as TypeScript. */
  let built: string
  const notices: string[] = []
  const onNotice = (message: string) => notices.push(message)
  const running: EmbeddedRedis[] = []
  const scripts: Script[] = []

  const start = async () => {
    const redis = await startRedis(directory, { onNotice })
    running.push(redis)
    return redis
  }
  const owner = (env?: Record<string, string>) => {
    const script = new Script(join(built, 'test/config/support/redis-owner.js'), [directory], env)
    scripts.push(script)
    return script
  }

  before(async () => {
    built = await temporaryDirectory()
    await build(built)
  })
  after(() => removeDirectory(built))

  beforeEach(async () => {
    directory = await temporaryDirectory()
    notices.length = 0
  })

  afterEach(async () => {
    await Promise.all(running.splice(0).map((redis) => redis.stop()))
    await Promise.all(
      scripts
        .splice(0)
        .filter((script) => !script.ended)
        .map((script) => script.end('SIGKILL')),
    )
    await removeDirectory(directory)
  })

  it('serves this machine alone, keeps what it was told, and is shared inside the process until the last use ends', async () => {
    const first = await start()
    const second = await start()
    expect(second.url).to.equal(first.url)
    expect(notices).to.have.length(1)
    expect(await isOpenToOthers(portOf(first.url))).to.equal(false)
    const client = new Redis(first.url)
    await client.set('kept', 'yes')
    await client.quit()
    const pid = await serverPid(directory)
    await first.stop()
    await first.stop()
    expect(await answers(second.url)).to.equal(true)
    await second.stop()
    expect(isAlive(pid)).to.equal(false)
    expect(await answers(first.url)).to.equal(false)
    expect(await readdir(directory)).not.to.include('redis.json')
    if (first.kind === 'js-redis-server') return
    const again = await start()
    const reader = new Redis(again.url)
    expect(await reader.get('kept')).to.equal('yes')
    await reader.quit()
  })

  it('is a stand-in that says so where no server is on PATH, and it too serves this machine alone', async () => {
    const script = owner(bare)
    const answer = await script.answer<Answer>()
    expect(answer.kind).to.equal('js-redis-server')
    expect(answer.notices.join()).to.include('slow').and.to.include('forgets')
    expect(await isOpenToOthers(portOf(answer.url))).to.equal(false)
    const client = new Redis(answer.url)
    expect(await client.set('a', '1')).to.equal('OK')
    await client.quit()
    const pid = await serverPid(directory)
    await script.end('SIGKILL')
    await until('it died with its owner', () => !isAlive(pid))
    expect(await answers(answer.url)).to.equal(false)
  })

  it('dies with its owner even if that is killed, and is replaced at once', async () => {
    const script = owner()
    const { url } = await script.answer<Answer>()
    const pid = await serverPid(directory)
    await script.end('SIGKILL')
    const replacement = await start()
    expect(replacement.shared).to.equal(false)
    await until('the orphan is gone', () => !isAlive(pid))
    if (replacement.url !== url) expect(await answers(url)).to.equal(false)
    expect(await answers(replacement.url)).to.equal(true)
    expect(await serverPid(directory)).not.to.equal(pid)
  })

  it('leaves no address behind when its owner is killed and nobody follows', async () => {
    const script = owner()
    await script.answer<Answer>()
    await script.end('SIGKILL')
    await until('the address is gone', async () => !(await readdir(directory)).includes('redis.json'))
  })

  it('is used by other processes while its owner lives', async () => {
    const redis = await start()
    const script = owner()
    expect(await script.answer<Answer>()).to.deep.equal({ url: redis.url, kind: redis.kind, shared: true, notices: [] })
    await script.end()
    expect(await answers(redis.url)).to.equal(true)
  })

  it('is started again on its port by those who still use it when its owner ends, killed or not', async () => {
    for (const signal of ['SIGKILL', undefined] as const) {
      const script = owner()
      const { url } = await script.answer<Answer>()
      const mine = await start()
      const client = new Redis(url, { maxRetriesPerRequest: null })
      client.on('error', () => {})
      const pid = await serverPid(directory)
      await script.end(signal)
      await until(
        'another server has taken its place',
        async () => (await serverPid(directory).catch(() => pid)) !== pid,
      )
      expect(await client.ping()).to.equal('PONG')
      client.disconnect()
      await mine.stop()
      expect(await answers(url)).to.equal(false)
    }
  })

  it('is one server when two processes start at the same moment', async () => {
    const pair = [owner(), owner()]
    const [one, two] = await Promise.all(pair.map((script) => script.answer<Answer>()))
    expect(one?.url).to.equal(two?.url)
    expect([one?.shared, two?.shared].sort()).to.deep.equal([false, true])
    expect(await answers(one?.url ?? '')).to.equal(true)
    await Promise.all(pair.map((script) => script.end()))
    expect(await answers(one?.url ?? '')).to.equal(false)
  })

  it('is replaced when only the server was killed', async () => {
    const first = await start()
    const pid = await serverPid(directory)
    process.kill(pid, 'SIGKILL')
    await until('it is gone', () => !isAlive(pid))
    const second = await start()
    expect(await answers(second.url)).to.equal(true)
    expect(second.shared).to.equal(false)
    await first.stop()
    expect(await answers(second.url)).to.equal(true)
  })

  for (const [name, content] of [
    ['nonsense', '{'],
    [
      'processes that are gone',
      JSON.stringify({ kind: 'redis-server', port: 1, ownerPid: 2 ** 22 - 1, serverPid: 2 ** 22 - 1 }),
    ],
  ] as const) {
    it(`is started anew where the address file holds ${name}`, async () => {
      await writeFile(join(directory, 'redis.json'), content)
      expect(await answers((await start()).url)).to.equal(true)
    })
  }

  it('leaves a process alone that only has the number of a dead server', async () => {
    const bystander = owner()
    await bystander.answer<Answer>()
    const elsewhere = directory
    directory = await temporaryDirectory()
    const address = { kind: 'redis-server', port: 1, ownerPid: 2 ** 22 - 1, serverPid: bystander.process.pid }
    await writeFile(join(directory, 'redis.json'), JSON.stringify(address))
    const redis = await start()
    expect(await answers(redis.url)).to.equal(true)
    expect(bystander.ended).to.equal(false)
    await bystander.end()
    await removeDirectory(elsewhere)
  })

  it('is not started where the settings name a Redis', async () => {
    const named = { databaseUrl: 'mysql://h/d', redisUrl: 'redis://h', dataDir: directory }
    const services = await embedded(named, { onNotice })
    expect(services).to.include({ databaseUrl: 'mysql://h/d', redisUrl: 'redis://h' })
    await services.stop()
    expect(await readdir(directory)).to.deep.equal([])
  })

  it('comes with a SQLite file where the settings name nothing', async () => {
    const services = await embedded({ databaseUrl: null, redisUrl: null, dataDir: directory }, { onNotice })
    expect(services.databaseUrl).to.equal(`sqlite:${directory}/threadmill.sqlite`)
    expect(await answers(services.redisUrl)).to.equal(true)
    await services.stop()
    expect(await answers(services.redisUrl)).to.equal(false)
  })
})
