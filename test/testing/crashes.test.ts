import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { runCrashes } from '../../src/testing/crashes/kill-at-every-write.ts'
import { checkedScenario } from '../../src/testing/crashes/scenario.ts'
import { type CrashReport, type CrashScenario, text, toolCalls } from '../../src/testing/index.ts'
import { bundle } from '../support/bundle.ts'
import { onEachDatabase, type TestDatabase } from '../support/databases.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'

const app = fileURLToPath(new URL('./apps/shop.ts', import.meta.url))

onEachDatabase('A chat whose worker dies at each write', function (kind) {
  let database: TestDatabase
  let redis: TestRedisServer
  let folder: string
  before(async function () {
    this.timeout(120_000)
    database = await kind.create()
    redis = await startRedisServer()
    folder = await mkdtemp(join(tmpdir(), 'threadmill-ledger-'))
    await bundle()
  })
  after(async () => {
    await redis.stop()
    await database.drop()
    await rm(folder, { recursive: true, force: true })
  })

  const run = async (scenario: Omit<CrashScenario, 'app'>): Promise<CrashReport> => {
    const [file = '', built = ''] = (await bundle()).worker(app)
    const connect = { databaseUrl: database.url, redisUrl: redis.url }
    const env = { SHOP_LEDGER: join(folder, 'ledger') }
    const program = join(file, '../crash-worker.js')
    return runCrashes(checkedScenario({ app: built, connect, env, ...scenario }), { file: program, execArgv: [], env })
  }

  it('try', async function () {
    this.timeout(400_000)
    const begun = performance.now()
    const report = await run({
      agent: 'shop',
      model: [toolCalls([{ name: 'refund', arguments: { order: '42' } }]), text('done')],
      drive: (chat) => chat.askLater('Refund 42', { enqueue: true }),
    })
    console.log(performance.now() - begun)
    for (const o of report.outcomes) console.log(o.point?.moment, o.point?.number, o.point?.statement.slice(0, 90), o.died, o.end, o.executions.length)
    console.log(await readFile(join(folder, 'ledger'), 'utf8').then((t) => t.split('\n').length))
    expect(1).to.equal(1)
  })
})
