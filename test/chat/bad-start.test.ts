import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { execa } from 'execa'
import {
  ConfigurationError,
  type ConnectOptions,
  NotMigratedError,
  Threadmill,
  type ThreadmillError,
  UnreachableError,
} from '../../src/index.ts'
import { onEachDatabase, type TestDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { rejectionOf } from './support/watching.ts'

const app = fileURLToPath(new URL('./apps/starts.ts', import.meta.url))

onEachDatabase('An application that can’t start', (kind) => {
  const bench = useBench(kind)
  let empty: TestDatabase
  let closed: number
  let directory: string

  before(async () => {
    empty = await kind.create()
    closed = await closedPort()
    directory = await mkdtemp(join(tmpdir(), 'threadmill-test-'))
    await writeFile(join(directory, 'file'), '')
  })
  after(async () => {
    await empty.drop()
    await rm(directory, { recursive: true })
  })

  /** A database of this kind that is not there. */
  function downDatabase(): string {
    if (kind.name === 'SQLite') return `sqlite:${join(directory, 'file', 'nested', 'test.sqlite')}`
    return `mysql://anna:s3cret-word@127.0.0.1:${closed}/threadmill`
  }
  const cases: readonly {
    readonly what: string
    readonly options: () => ConnectOptions
    readonly errorClass: abstract new (...args: never[]) => ThreadmillError
    readonly code: string
    readonly says: RegExp
  }[] = [
    {
      what: 'its database is not migrated',
      options: () => ({ ...bench.options(), databaseUrl: empty.url }),
      errorClass: NotMigratedError,
      code: 'configuration.not_migrated',
      says: /0001-conversations.*migrate/,
    },
    {
      what: 'Redis is down',
      options: () => ({ ...bench.options(), redisUrl: `redis://:s3cret-word@127.0.0.1:${closed}/0` }),
      errorClass: UnreachableError,
      code: 'configuration.unreachable',
      says: /Redis.*check/,
    },
    {
      what: 'its database is down',
      options: () => ({ ...bench.options(), databaseUrl: downDatabase() }),
      errorClass: UnreachableError,
      code: 'configuration.unreachable',
      says: /database.*check/i,
    },
    {
      what: 'its database is one that Threadmill does not speak to',
      options: () => ({ ...bench.options(), databaseUrl: 'postgres://anna:s3cret-word@db/threadmill' }),
      errorClass: ConfigurationError,
      code: 'configuration',
      says: /databaseUrl/,
    },
  ]

  for (const { what, options, errorClass, code, says } of cases) {
    it(`is told by connect that ${what}, without its password`, async function () {
      this.timeout(30_000)
      const error = await rejectionOf(Threadmill.connect(options()))
      expect(error).to.be.instanceOf(errorClass).and.have.property('code', code)
      expect(error).to.have.property('message').that.matches(says)
      expect((error as Error).stack).to.not.include('s3cret-word')
    })

    if (errorClass === ConfigurationError) continue
    it(`ends as a process with a code that is not 0 when ${what}`, async function () {
      this.timeout(60_000)
      const ended = await startApp(options())
      expect(ended.exitCode, ended.stderr).to.be.a('number').and.not.equal(0)
      expect(ended.stdout).to.not.include('CONNECTED')
      expect(ended.stderr).to.include(code).and.match(says)
      expect(ended.stderr + ended.stdout).to.not.include('s3cret-word')
    })
  }

  it('ends as a process with a code that is not 0 when two of its tools have one name', async function () {
    this.timeout(60_000)
    const ended = await startApp(bench.options(), { CLASHING_TOOLS: '1' })
    expect(ended.exitCode, ended.stderr).to.be.a('number').and.not.equal(0)
    expect(ended.stdout).to.not.include('CONNECTED')
    expect(ended.stderr).to.match(/ConfigurationError.*refund/)
  })

  it('ends by itself with 0 when nothing is wrong', async function () {
    this.timeout(60_000)
    const ended = await startApp(bench.options())
    expect(ended.stdout, ended.stderr).to.include('CONNECTED')
    expect(ended.exitCode, ended.stderr).to.equal(0)
  })

  it('is told of options that there are not and of those of a wrong kind, without their values', async () => {
    const bad: readonly unknown[] = [
      null,
      7,
      'sqlite:x',
      [],
      { databaseURL: 's3cret-word' },
      { agents: 7 },
      { agents: [7] },
      { tools: { name: 'x' } },
      { contextFor: 's3cret-word' },
      { attachments: { hosts: [] } },
      { migrate: 'yes' },
      { extend: 7 },
      { observe: { onStatement: 7 } },
      { onObservation: 's3cret-word' },
      { observeContent: 1 },
      { logger: {} },
      { sequelize: {} },
      { redis: 7 },
      { claimTtlMs: 7 },
      { databaseUrl: 'x'.repeat(1_000_000) },
    ]
    for (const given of bad) {
      const isObject = typeof given === 'object' && given !== null && !Array.isArray(given)
      const options = isObject ? { ...(('databaseUrl' in given ? {} : bench.options()) as object), ...given } : given
      const error = await rejectionOf(Threadmill.connect(options as ConnectOptions))
      const shown = JSON.stringify(given).slice(0, 60)
      expect(error, shown)
        .to.have.property('code')
        .that.matches(/^(argument|configuration)/)
      expect(String(error), shown).to.not.include('s3cret-word')
      expect(String(error).length, shown).to.be.below(2_000)
    }
  })

  it('makes no table in a database that it refuses, and can start once it is migrated', async () => {
    const options = { ...bench.options(), databaseUrl: empty.url }
    expect(await rejectionOf(Threadmill.connect(options))).to.be.instanceOf(NotMigratedError)
    // Everything is still to be done, so nothing was done by half.
    const mill = await bench.connect({ ...options, migrate: true })
    expect(await mill.models.Chat.count()).to.equal(0)
    await (await bench.connect(options)).chats.create()
    expect(await mill.models.Chat.count()).to.equal(1)
  })
})

function startApp(options: ConnectOptions, env: Readonly<Record<string, string>> = {}) {
  return execa(process.execPath, ['--import', 'tsx', app], {
    env: { ...env, THREADMILL_TEST_OPTIONS: JSON.stringify(options) },
    reject: false,
    timeout: 50_000,
  })
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
}
