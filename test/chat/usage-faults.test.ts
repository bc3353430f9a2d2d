import { expect } from 'chai'
import { CancelledError, type Chat, ChatNotFoundError, defineAgent, type Observation } from '../../src/index.ts'
import { httpError, text } from '../../src/testing/index.ts'
import { startProxy } from '../events/proxy.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext, insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { roles, usageRows } from './support/rows.ts'

type Unwritten = Extract<Observation, { type: 'usage.unwritten' }>

const agent = defineAgent({ name: 'priced', retries: 1, prices: { input: 1, output: 1 } })
const soon = { 'retry-after-ms': '1' }

onEachDatabase('A ledger that the database refuses to write', (kind) => {
  // Before the bench closes its connections.
  afterEach(() => allow())
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  const database = () => bench.connect().then((mill) => insidesOf(mill).db)
  let seen: Unwritten[] = []
  let warnings: string[] = []
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
    seen = []
    warnings = []
  })

  async function refuse(what: 'INSERT' | 'UPDATE'): Promise<void> {
    const { sequelize, tables } = await database()
    const says = 'no entries today'
    const body =
      kind.name === 'SQLite'
        ? `BEGIN SELECT RAISE(ABORT, '${says}'); END`
        : `FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '${says}'`
    await sequelize.query(`CREATE TRIGGER no_entries BEFORE ${what} ON ${tables.usages} ${body}`)
  }

  async function allow(): Promise<void> {
    await (await database()).sequelize.query('DROP TRIGGER IF EXISTS no_entries')
  }

  const logger = {
    debug: () => {},
    info: () => {},
    warn: (facts: object) => void warnings.push(Reflect.get(facts, 'event') as string),
    error: () => {},
  }
  const connect = () =>
    bench.connect({
      agents: [agent],
      logger,
      metrics: true,
      onObservation: (observation) => {
        if (observation.type === 'usage.unwritten') seen.push(observation)
      },
    })
  const said = async (chat: Chat) => (await chat.messages()).map(({ content }) => content)

  it('costs no answer where no entry can be made: it is stored and told of, and the chat goes on (S83)', async () => {
    await bench.script([text('Fine.'), text('Still fine.')])
    const mill = await connect()
    const chat = await mill.chats.create({ agent })
    await refuse('INSERT')
    expect((await chat.ask('How are you?'))?.content).to.equal('Fine.')
    const [told, ...more] = seen
    expect(more).to.deep.equal([])
    expect(told).to.include({ type: 'usage.unwritten', chatId: chat.id, turn: 1, claimToken: 1, step: 'open' })
    expect(told?.usageId).to.match(/^[\da-f-]{36}$/)
    const code = kind.name === 'SQLite' ? 'SQLITE_CONSTRAINT_TRIGGER' : 'ER_SIGNAL_EXCEPTION'
    // The text of a statement's error may quote its values.
    expect(told?.error).to.deep.include({ code, message: null })
    expect(warnings).to.deep.equal(['usage.unwritten'])
    expect(await mill.metrics()).to.include('threadmill_usages_unwritten_total{step="open"} 1')
    expect((await chat.ask('And now?'))?.content).to.equal('Still fine.')
    expect(await said(chat)).to.deep.equal(['How are you?', 'Fine.', 'And now?', 'Still fine.'])
    expect(await usageRows(mill, chat)).to.deep.equal([])
    expect((await chat.cost()).total).to.equal(null)
    expect(await chat.failure()).to.equal(null)
  })

  it('costs no answer where an entry can be neither closed nor linked, and none of the next process (S83)', async () => {
    await bench.script([text('Fine.'), text('Still fine.'), text('Well.')])
    const mill = await connect()
    const chat = await mill.chats.create({ agent })
    await refuse('UPDATE')
    expect((await chat.ask('How are you?'))?.content).to.equal('Fine.')
    expect(seen.map(({ step }) => step)).to.deep.equal(['close', 'link'])
    const [usage] = await usageRows(mill, chat)
    expect(seen.map(({ usageId }) => usageId)).to.deep.equal([usage?.id, usage?.id])
    expect([usage?.status, usage?.messageId]).to.deep.equal(['pending', null])

    seen = []
    const events: string[] = []
    const reader = chat.events()
    await reader.ready
    const same = await (await connect()).chats.find(chat.id)
    expect((await same.ask('And now?'))?.content).to.equal('Still fine.')
    expect(seen.map(({ step, usageId }) => [step, usageId === null])).to.deep.equal([
      ['orphan', true],
      ['close', false],
      ['link', false],
    ])
    for await (const event of reader) {
      events.push(event.type)
      if (event.type === 'run.finished' && events.filter((type) => type === 'run.finished').length === 2) break
    }
    // The first answer is stored: its entry, which looks like that of a dead run, must not void it for viewers.
    expect(events).not.to.include('attempt.restarted')

    await allow()
    await chat.ask('At last?')
    const left = (await usageRows(mill, chat)).map(({ status, errorCode }) => [status, errorCode])
    expect(left).to.deep.equal([
      ['failed', 'orphaned'],
      ['failed', 'orphaned'],
      ['succeeded', null],
    ])
    expect((await chat.cost()).total).to.equal(null)
  })

  it('does not end the tries at an answer of which a failed one can not be closed (S83)', async () => {
    await bench.script([httpError(503, 'busy', soon), text('Fine.')])
    const chat = await (await connect()).chats.create({ agent })
    await refuse('UPDATE')
    expect((await chat.ask('How are you?'))?.content).to.equal('Fine.')
    expect(seen.map(({ step }) => step)).to.deep.equal(['close', 'close', 'link'])
  })

  for (const what of ['INSERT', 'UPDATE'] as const) {
    it(`costs no summary where an ${what} is refused (S83)`, async () => {
      await bench.script([text('It was all fine.'), text('All was fine.'), text('Well.')])
      const mill = await connect()
      const chat = await mill.chats.create({ agent })
      await chat.ask('How are you?')
      await refuse(what)
      expect((await chat.compact())?.content).to.equal('All was fine.')
      expect(seen.map(({ step }) => step)).to.deep.equal(what === 'INSERT' ? ['open'] : ['close', 'link'])
      expect((await chat.ask('And now?'))?.content).to.equal('Well.')
    })
  }

  it('keeps what was shown of a cancelled answer (S83)', async () => {
    await bench.script([text('Well then, this is long.', { delayMs: 20 })])
    const chat = await (await connect()).chats.create({ agent })
    await refuse('UPDATE')
    const cancelling: Promise<unknown>[] = []
    const running = chat.ask('How are you?', {}, () => {
      if (cancelling.length === 0) cancelling.push(chat.cancel())
    })
    expect(await errorFrom(() => running)).to.be.instanceOf(CancelledError)
    await Promise.all(cancelling)
    expect(await roles(chat)).to.equal('user assistant')
    expect((await chat.messages()).at(-1)?.finishReason).to.equal('cancelled')
    expect(seen.map(({ step }) => step)).to.deep.equal(['close', 'link'])
  })

  it("leaves a caller's transaction as it is: it can go on and be committed (S83)", async () => {
    await bench.script([text('Fine.')])
    const mill = await connect()
    const chat = await mill.chats.create({ agent })
    const other = await mill.chats.create({ agent })
    await refuse('INSERT')
    const { sequelize } = insidesOf(mill).db
    const transaction = await sequelize.transaction({ type: 'DEFERRED' as never })
    expect((await chat.ask('How are you?'))?.content).to.equal('Fine.')
    expect(seen).to.have.length(1)
    await other.askLater('Later.', { transaction })
    await transaction.commit()
    expect(await said(other)).to.deep.equal(['Later.'])
  })

  it('asks nobody for a chat that was deleted meanwhile, whose entries are refused too (S83, E53)', async () => {
    await bench.script([text('Fine.')])
    const mill = await connect()
    const chat = await mill.chats.create({ agent })
    beforeNext(mill, 'openUsage', async () => (await (await bench.connect()).chats.find(chat.id)).delete())
    expect(await errorFrom(() => chat.ask('How are you?'))).to.be.instanceOf(ChatNotFoundError)
    expect(bench.model.requests).to.have.length(0)
  })

  it('asks nobody while the database is away: the run fails, and the turn is there (S83)', async () => {
    await bench.script([text('Fine.')])
    const url = new URL(bench.database.url)
    const proxy = kind.name === 'MariaDB' ? await startProxy(Number(url.port)) : null
    if (proxy !== null) url.port = new URL(proxy.url).port
    const observed: string[] = []
    const mill = await bench.connect({
      agents: [agent],
      databaseUrl: proxy === null ? bench.database.url : url.href,
      onObservation: ({ type }) => void observed.push(type),
    })
    const chat = await mill.chats.create({ agent })
    // A file is not away as a server is; what a closed connection says is no refusal either.
    beforeNext(mill, 'openUsage', () => proxy?.close() ?? insidesOf(mill).db.sequelize.close())
    expect(await errorFrom(() => chat.ask('How are you?'))).to.be.instanceOf(Error)
    expect(bench.model.requests).to.have.length(0)
    expect(observed).not.to.include('usage.unwritten')
    const same = await (await bench.connect({ agents: [agent] })).chats.find(chat.id)
    expect(await said(same)).to.deep.equal(['How are you?'])
  })
})
