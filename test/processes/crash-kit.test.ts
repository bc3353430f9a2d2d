import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { openDatabase } from '../../config/database.ts'
import { resolveSettings } from '../../config/settings.ts'
import { ArgumentError, ConfigurationError } from '../../src/index.ts'
import { runCrashes } from '../../src/testing/crashes/kill-at-every-write.ts'
import { checkedScenario } from '../../src/testing/crashes/scenario.ts'
import {
  type CrashOutcome,
  CrashPointError,
  type CrashReport,
  type CrashScenario,
  killAtEveryWrite,
  startModelServer,
  text,
  toolCalls,
} from '../../src/testing/index.ts'
import { bundle } from '../support/bundle.ts'
import { onEachDatabase, type TestDatabase } from '../support/databases.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const source = fileURLToPath(new URL('./apps/shop.ts', import.meta.url))
const LIMIT_MS = 600_000

const asks = (tool: string) => [toolCalls([{ name: tool, arguments: { order: '42' } }]), text('Order 42 is refunded.')]
const drive: CrashScenario['drive'] = (chat) => chat.askLater('Refund order 42.', { enqueue: true })
const placesOf = ({ outcomes }: CrashReport) => outcomes.map(({ point }) => `${point?.moment} ${point?.number}`)
const outcomesOf = (tool: string, outcome: string) => [
  'user: Refund order 42.',
  `assistant calls ${tool} {"order":"42"}`,
  outcome,
  'assistant: Order 42 is refunded.',
]

async function failureOf(run: Promise<unknown>): Promise<CrashPointError> {
  const error: unknown = await run.then(
    () => null,
    (reason) => reason,
  )
  if (!(error instanceof CrashPointError)) throw new Error('No crash point was found', { cause: error })
  return error
}

onEachDatabase('A chat whose worker dies', (kind) => {
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

  const ledger = () => join(folder, 'ledger')
  /** The lines of a chat: the keys that its refunds were booked under, and the processes that did so. */
  const booked = async ({ chatId }: CrashOutcome) => {
    const lines = (await readFile(ledger(), 'utf8').catch(() => '')).split('\n').map((line) => line.split(' '))
    return lines.flatMap(([chat, key = '', pid]) => (chat === chatId ? [{ key, pid: Number(pid) }] : []))
  }
  const expectOneRefund = async (outcome: CrashOutcome) => {
    expect(new Set((await booked(outcome)).map(({ key }) => key)).size, 'refunds that were booked').to.equal(1)
  }
  /** With worker processes that start quickly. */
  const run = async (scenario: Omit<CrashScenario, 'app'>, more: Readonly<Record<string, string>> = {}) => {
    const [entry = '', app = ''] = (await bundle()).worker(source)
    const connect = { databaseUrl: database.url, redisUrl: redis.url }
    const env = { SHOP_LEDGER: ledger(), ...more }
    const program = { file: join(entry, '../crash-worker.js'), execArgv: [], env }
    return runCrashes(checkedScenario({ app, connect, ...scenario }), program)
  }
  /** Everything of the kit's that is still there. */
  const leftOver = async () => {
    const sequelize = openDatabase(resolveSettings({ databaseUrl: database.url }, {}))
    const tables = (await sequelize.getQueryInterface().showAllTables()).map((table) => JSON.stringify(table))
    await sequelize.close()
    const client = new Redis(redis.url)
    const keys = await client.keys('*')
    client.disconnect()
    return [...tables, ...keys].filter((name) => name.includes('crash'))
  }
  const isGone = (pid: number) => {
    try {
      return !process.kill(pid, 0)
    } catch {
      return true
    }
  }

  it('at any write is answered all the same, its refund booked once, and nothing is left behind (E110, E112, E115)', async () => {
    const pids = new Set<number>()
    const report = await run({
      agent: 'shop',
      model: asks('refund'),
      drive,
      async check(outcome) {
        await expectOneRefund(outcome)
        for (const { pid } of await booked(outcome)) pids.add(pid)
      },
    })
    // 22 writes, 10 of which store something.
    expect(report.outcomes).to.have.length(32)
    expect(placesOf(report).slice(0, 8)).to.eql([
      ...['before 1', 'after 1', 'before 2', 'after 2', 'before 3', 'after 3', 'before 4', 'before 5'],
    ])
    for (const { died, end, transcript, executions, point } of report.outcomes) {
      const name = `${point?.moment} ${point?.number}`
      expect(died, name).to.equal(true)
      expect(end, name).to.equal('answered')
      expect(transcript, name).to.eql(outcomesOf('refund', 'refund succeeded: order 42 is refunded'))
      expect(new Set(executions.map(({ key }) => key)).size, name).to.equal(1)
    }
    const again = report.outcomes.filter(({ executions }) => executions.length === 2)
    expect(again.map(({ point }) => point?.statement.slice(0, 27))).to.eql([
      'UPDATE chats SET next_posit',
      'INSERT INTO messages (id, c',
      'UPDATE tool_calls SET resul',
      'COMMIT of UPDATE tool_calls',
    ])
    expect(again.map(({ executions }) => executions.map(({ process, returned }) => [process, returned]))).to.eql(
      again.map(() => [
        ['killed', true],
        ['next', true],
      ]),
    )
    expect(report.baseline.point).to.equal(null)
    expect(await leftOver()).to.eql([])
    expect(pids.size).to.be.greaterThan(10)
    await until('every worker process is gone', () => [...pids].every(isGone))
  }).timeout(LIMIT_MS)

  it('never runs a tool again whose onInterrupted is fail: the model is told (E112)', async () => {
    const { outcomes } = await run({
      agent: 'careful shop',
      model: asks('refund_once'),
      drive,
      only: ({ statement }) => /^UPDATE tool_calls|^COMMIT of UPDATE tool_calls/.test(statement),
      check: async (outcome) => expect(await booked(outcome)).to.have.length.at.most(1),
    })
    expect(outcomes.map(({ executions, messages }) => [executions.length, messages[2]?.outcome])).to.eql([
      [1, 'succeeded'], // before the start is written
      [1, 'succeeded'], // before it is stored
      [0, 'interrupted'], // before the tool is called
      [1, 'interrupted'], // before its result is linked
      [1, 'interrupted'], // before that is stored
      [1, 'succeeded'], // after
    ])
  }).timeout(LIMIT_MS)

  it('before or after an approval refunds once it is approved (E118)', async () => {
    const { outcomes, baseline } = await run({
      agent: 'asking shop',
      model: asks('refund_asked'),
      async drive(chat, tools) {
        await drive(chat, tools)
        const waits = async () => (await chat.pendingApprovals())[0]
        const call = await tools.until('the refund waits', waits)
        if (call !== undefined) await chat.approve(call)
      },
      only: ({ statement }) =>
        /claimed_by = NULL, claimed_until = NULL, parked|UPDATE tool_calls SET claimed_by/.test(statement),
      check: expectOneRefund,
    })
    expect(baseline.end).to.equal('answered')
    // It is given back twice: before the approval and after the answer.
    const given = outcomes.filter(({ point }) => /parked/.test(point?.statement ?? ''))
    expect(given.map(({ point }) => point?.moment)).to.eql(['before', 'after', 'before', 'after'])
    expect(outcomes.map(({ died, transcript }) => [died, transcript])).to.eql(
      outcomes.map(() => [true, outcomesOf('refund_asked', 'refund_asked succeeded: order 42 is refunded')]),
    )
    expect(outcomes).to.have.length(7)
  }).timeout(LIMIT_MS)

  it('finds the tool that does not hand its idempotency key on, at the first write after its work (E113)', async () => {
    const error = await failureOf(
      run({
        agent: 'careless shop',
        model: asks('refund_anew'),
        drive,
        only: ({ statement }) => /tool_calls|SET next_position/.test(statement),
        check: expectOneRefund,
      }),
    )
    const { point, executions, problems, end } = error.outcome
    expect(point).to.include({ moment: 'before', number: 12, stores: false })
    expect(point?.statement).to.match(/^UPDATE chats SET next_position/)
    expect(executions.map(({ process }) => process)).to.eql(['killed', 'next'])
    expect(problems).to.have.length(1)
    expect(end).to.equal('answered')
    expect(error.name).to.equal('CrashPointError')
    const [first, second, ...lines] = error.message.split('\n')
    expect(first).to.match(
      /^A worker died before write 12, UPDATE chats SET next_position = .*, and the chat ended answered:$/,
    )
    expect(second).to.match(/^- check\(\) failed: refunds that were booked: expected 2 to equal 1/)
    expect(lines.slice(0, 5)).to.eql([
      'Transcript:',
      ...outcomesOf('refund_anew', 'refund_anew succeeded: order 42 is refunded').map((line) => `  ${line}`),
    ])
    expect(lines.slice(5, 7).join('\n')).to.match(/^Executions:\n {2}refund_anew in the process that died, key /)
    expect(await leftOver()).to.eql([])
  }).timeout(LIMIT_MS)

  it('is not begun with a scenario that fails without any crash (E113, E119)', async () => {
    const model = asks('refund_asked')
    const waits = await failureOf(run({ agent: 'asking shop', model, drive }))
    expect(waits.outcome).to.include({ point: null, died: false, end: 'waiting' })
    expect(waits.message).to.match(/^Without any crash, and the chat ended waiting:\n- The turn has no end: it waits/)
    const vain = await failureOf(
      run({
        agent: 'shop',
        model: asks('refund'),
        limitMs: 3_000,
        drive: (_, tools) => tools.until('snow falls', () => false),
      }),
    )
    expect(vain.outcome.end).to.equal('stuck')
    expect(vain.message).to.match(/- drive\(\) failed: Waited in vain for this, up to 3000 ms: snow falls/)
    const left = await failureOf(run({ agent: 'leaving shop', model: asks('leave'), limitMs: 5_000, drive }))
    expect(left.outcome.problems[0]).to.equal('The worker process ended by itself.')
  }).timeout(LIMIT_MS)

  it('is told as not killed where no process came to the place, and looked at all the same (E117)', async () => {
    const call = toolCalls([{ name: 'refund', arguments: { order: '42' } }])
    const { outcomes } = await run({
      agent: 'shop',
      // Asked four times without a crash; from then on it wants no tool.
      model: ({ messages }, index) => (index < 4 && messages.at(-1)?.role !== 'tool' ? call : text('Done.')),
      drive,
      only: ({ statement }) => /^INSERT INTO tool_calls/.test(statement),
    })
    expect(outcomes.map(({ died, end, transcript, problems }) => ({ died, end, transcript, problems }))).to.eql([
      { died: false, end: 'answered', transcript: ['user: Refund order 42.', 'assistant: Done.'], problems: [] },
    ])
  }).timeout(LIMIT_MS)

  it('needs an agent of the app, and one that asks the scripted model (E116)', async () => {
    const refused = (scenario: Partial<CrashScenario>, env?: Readonly<Record<string, string>>) =>
      run({ model: asks('refund'), drive, ...scenario }, env).then(
        () => null,
        (error: unknown) => error,
      )
    expect(await refused({}))
      .to.be.instanceOf(ArgumentError)
      .with.property('message')
      .that.includes('careful shop')
    const elsewhere = await startModelServer({ respond: text('Elsewhere.') })
    try {
      const error = await refused({ agent: 'shop elsewhere' }, { SHOP_ELSEWHERE: elsewhere.url })
      expect(error)
        .to.be.instanceOf(ConfigurationError)
        .with.property('message')
        .that.matches(/model was not asked/)
    } finally {
      await elsewhere.close()
    }
    expect(await leftOver()).to.eql([])
  }).timeout(LIMIT_MS)
})

describe('killAtEveryWrite', () => {
  const model = asks('refund')

  it('runs an app of TypeScript on embedded services, with a chat that create() makes (E114, E116)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'threadmill-ledger-'))
    const asked: (string | null)[] = []
    try {
      const { outcomes, baseline } = await killAtEveryWrite({
        app: new URL('./apps/shop.ts', import.meta.url),
        create: (mill) => mill.chats.create({ agent: 'shop', owner: 'anna' }, { agentElsewhere: true }),
        // Before the first answer is stored: it is asked for twice, and gets the same reply.
        only: ({ statement }) => /^INSERT INTO tool_calls/.test(statement),
        model,
        drive,
        env: { SHOP_LEDGER: join(folder, 'ledger') },
        check: (_, { chat }) => asked.push(String(chat.owner)),
      })
      expect(asked).to.eql(['anna', 'anna', 'anna'])
      expect(baseline.requests).to.have.length(2)
      expect(outcomes.map(({ died, end, requests, usages }) => [died, end, requests.length, usages.length])).to.eql([
        [true, 'answered', 3, 3],
      ])
      expect(outcomes[0]?.usages.map(({ status }) => status)).to.have.members(['succeeded', 'succeeded', 'succeeded'])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }).timeout(LIMIT_MS)

  it('refuses a scenario that can not be, before anything is started (E116)', async () => {
    const good = { app: source, model, drive }
    const bad: [object, RegExp][] = [
      [{ ...good, app: 7 }, /app: must be the path/],
      [{ ...good, drive: 'ask' }, /drive: must be a function/],
      [{ ...good, model: text('hi') }, /model: must be a list of replies or a function/],
      [{ ...good, model: [{}] }, /model/],
      [{ ...good, concurrency: 0 }, /concurrency: must be at least 1/],
      [{ ...good, limitMs: 0.5 }, /limitMs: must be a whole number/],
      [{ ...good, connect: { tablePrefix: 'mine_' } }, /connect: there is no tablePrefix/],
      [{ ...good, connect: 7 }, /connect: must be an object/],
      [{ ...good, env: { A: 1 } }, /env/],
      [{ ...good, execArgv: '--import' }, /execArgv: must be a list/],
      [{ ...good, agent: 'shop', create: () => {} }, /both agent and create/],
      [{ ...good, speed: 1 }, /scenario: there is no speed/],
    ]
    for (const [scenario, pattern] of bad) {
      const error: unknown = await killAtEveryWrite(scenario as CrashScenario).catch((reason: unknown) => reason)
      expect(error).to.be.instanceOf(ArgumentError).with.property('message').that.matches(pattern)
    }
    await killAtEveryWrite(null as never).catch((error) => expect(error).to.be.instanceOf(ArgumentError))
  })

  it('says what is wrong with an app that can not be loaded (E116)', async () => {
    const error: unknown = await killAtEveryWrite({ app: 'no/app.ts', model, drive }).catch((reason: unknown) => reason)
    expect(error).to.be.instanceOf(ConfigurationError)
    expect(String(error)).to.match(/did not connect: killAtEveryWrite\(\{ app \}\): there is no file .*no\/app\.ts/)
  }).timeout(60_000)
})
