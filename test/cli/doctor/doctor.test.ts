import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import type { Finding, Status } from '../../../src/cli/doctor/facts.ts'
import { onEachDatabase, sqlite } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { itOnRealRedis } from '../../support/real-redis.ts'
import { environmentOf, runCli } from '../run-cli.ts'

interface Report {
  readonly status: Status
  readonly checks: readonly Finding[]
}

async function examine(argv: readonly string[], env: Record<string, string>) {
  const { code, out, err } = await runCli(['doctor', '--json', ...argv], { env })
  expect(err).to.equal('')
  const report = JSON.parse(out) as Report
  const of = (name: string) => report.checks.find((check) => check.name === name)
  return { code, out, status: report.status, of, names: report.checks.map(({ name }) => name) }
}

onEachDatabase('threadmill doctor', (kind) => {
  const bench = useBench(kind)

  it('finds nothing wrong with what the tests run on, and says what it looked at', async function () {
    this.timeout(60_000)
    const env = environmentOf(bench.options())
    const { code, names, of, out } = await examine([], env)
    expect(code, out).to.equal(0)
    expect(names).to.deep.equal([
      'node',
      'versions',
      'database',
      'database clock',
      'migrations',
      'prefixes',
      'session',
      'text',
      'redis',
      'redis clock',
      'redis eviction',
      'redis persistence',
    ])
    for (const name of ['migrations', 'session', 'text', 'database clock'])
      expect(of(name)?.status, name).to.equal('ok')
    expect(of('versions')?.what).to.match(/sequelize 6\.\d+\.\d+.*ioredis 5/)
    expect(of('database')?.what).to.match(kind.name === 'SQLite' ? /^SQLite 3/ : /MariaDB|^8/)
    const text = await runCli(['doctor'], { env })
    expect(text.out).to.match(/^ok {4}migrations +the tables are up to date$/m)
  })

  itOnRealRedis('fails for tables that are not there, and for a Redis that evicts', async () => {
    const redis = new Redis(bench.redis.url)
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
    const env = { ...environmentOf(bench.options()), THREADMILL_TABLE_PREFIX: 'absent_' }
    const { code, status, of } = await examine([], env)
    await redis.config('SET', 'maxmemory-policy', 'noeviction')
    redis.disconnect()
    expect({ code, status }).to.deep.equal({ code: 1, status: 'fail' })
    expect(of('migrations')).to.include({ status: 'fail', fix: 'Run threadmill migrate.' })
    expect(of('redis eviction')?.status).to.equal('fail')
    expect(of('prefixes')?.what).to.include('also in this database: threadmill_')
  })
})

describe('threadmill doctor without its services', () => {
  it('says where it tried, without passwords, and creates nothing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'threadmill-doctor-'))
    const wrong = {
      DATABASE_URL: 'mysql://someone:s3cret@127.0.0.1:1/app',
      REDIS_URL: 'redis://someone:s3cret@127.0.0.1:1/0',
    }
    const { code, of, out } = await examine([], wrong)
    expect(code).to.equal(1)
    expect(of('database')?.what).to.include('127.0.0.1:1/app')
    expect(of('redis')?.what).to.include('127.0.0.1:1')
    expect(out).not.to.include('s3cret')
    const nothing = await examine([], { THREADMILL_DATA_DIR: folder })
    expect({ code: nothing.code, status: nothing.status }).to.deep.equal({ code: 0, status: 'warn' })
    expect(existsSync(join(folder, 'threadmill.sqlite'))).to.equal(false)
    const production = await examine([], { NODE_ENV: 'production' })
    expect(production.code).to.equal(1)
    expect(production.of('database')?.what).to.include('DATABASE_URL: it is not set')
    await rm(folder, { recursive: true })
  }).timeout(60_000)
})

describe('threadmill doctor --model', () => {
  const bench = useBench(sqlite)

  it('asks the endpoint for its models, with the key, and for nothing else', async () => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.authorization}`)
      response.setHeader('content-type', 'application/json').end('{"data":[{"id":"test-model"},{"id":"other"}]}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const env = { ...environmentOf(bench.options()), OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` }
    const { of, out } = await examine(['--model'], env)
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
    expect(of('model')).to.include({ status: 'ok', fix: null })
    expect(asked).to.deep.equal(['GET /v1/models Bearer test-key'])
    expect(out).not.to.include('test-key')
    expect((await examine(['--model'], env)).of('model')?.status).to.equal('fail')
  }).timeout(60_000)
})
