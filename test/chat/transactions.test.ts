import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { Transaction } from 'sequelize'
import { openDatabase } from '../../config/database.ts'
import {
  ArgumentError,
  type Chat,
  type ChatEvent,
  ChatNotFoundError,
  type Observation,
  type Threadmill,
} from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { allRows } from '../support/all-rows.ts'
import { bundle } from '../support/bundle.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { rejectionOf } from './support/watching.ts'

const script = fileURLToPath(new URL('./apps/dies-before-commit.ts', import.meta.url))

onEachDatabase("A transaction of the application's", (kind) => {
  const bench = useBench(kind, { sweepEveryMs: 60_000 })
  let mill: Threadmill
  let statements: string[] = []
  let commands: string[] = []
  beforeEach(async () => {
    statements = []
    commands = []
    mill = await bench.connect({
      observe: { onStatement: (sql) => statements.push(sql), onCommand: (name) => commands.push(name) },
    })
  })

  /** Commands that tell workers or viewers something. */
  const told = () => commands.filter((name) => /^(xadd|evalsha|eval)$/.test(name))

  it('stores a chat, a message, its wish and a row of the application together, and wakes a worker then', async () => {
    await bench.script([text('Yes.')])
    const worker = await bench.connect()
    const pool = worker.startWorkers({ complete: 1, runTools: 0 })
    await pool.ready()
    await mill.sequelize.query('CREATE TABLE IF NOT EXISTS orders (id INT, chat_id VARCHAR(36))')
    const chat = await mill.transaction(async (transaction) => {
      const made = await mill.chats.create({ owner: 'anna' }, { transaction })
      await mill.sequelize.query('INSERT INTO orders VALUES (42, $id)', { bind: { id: made.id }, transaction })
      await made.withInstructions('Be brief.').askLater('Are you there?', { transaction })
      await mill.jobs.complete.enqueue(made, { transaction })
      return made
    })
    await until('the answer', async () => (await chat.isComplete()) && !(await chat.running()))
    expect((await chat.messages()).map(({ role, content }) => [role, content])).to.deep.equal([
      ['system', 'Be brief.'],
      ['user', 'Are you there?'],
      ['assistant', 'Yes.'],
    ])
    await pool.close()
  })

  it('tells workers and viewers nothing before the commit', async () => {
    const chat = await mill.chats.create()
    const transaction = await begin(mill)
    await mill.jobs.complete.enqueue(chat.id, { transaction })
    await chat.askLater('one', { transaction, enqueue: true })
    await chat.queue('two', { transaction })
    expect(told()).to.deep.equal([])
    await transaction.commit()
    const [event] = await take(chat, 1)
    expect(event).to.include({ type: 'queued', content: 'two' })
    expect(told().filter((name) => name !== 'xadd')).to.have.length.at.least(2)
  })

  it('leaves nothing and tells nobody when it is rolled back', async () => {
    const chat = await mill.chats.create()
    const before = await allRows(mill)
    const transaction = await begin(mill)
    const made = await mill.chats.create({}, { transaction })
    await made.askLater('one', { transaction, enqueue: true })
    await chat.askLater('two', { transaction })
    await chat.queue('three', { transaction })
    await mill.jobs.runTools.enqueue(chat, { transaction })
    await transaction.rollback()
    expect(await allRows(mill)).to.deep.equal(before)
    expect(told()).to.deep.equal([])
    expect(await rejectionOf(made.messages().then(() => made.isComplete()))).to.be.instanceOf(ChatNotFoundError)
  })

  it('is committed whatever a hook of the queue throws then, and the others are told all the same (E179)', async () => {
    const troubles: Observation[] = []
    const told = await bench.connect({ onObservation: (seen) => seen.type === 'hook.trouble' && troubles.push(seen) })
    const [hooked, other] = [await told.chats.create(), await told.chats.create()]
    hooked.afterQueue(() => {
      throw new Error('out of order')
    })
    const events: string[] = []
    const reader = other.events()
    const watching = (async () => {
      for await (const { type } of reader) events.push(type)
    })()
    await told.transaction(async (transaction) => {
      await hooked.queue('one', { transaction })
      await hooked.askLater('two', { transaction })
      await other.queue('three', { transaction })
    })
    expect((await hooked.messages()).map(({ content }) => content)).to.deep.equal(['one', 'two'])
    await until('viewers of the other chat are told', () => events.includes('queued'))
    await reader.return()
    await watching
    expect(troubles.map((seen) => 'hook' in seen && [seen.hook, seen.chatId])).to.deep.equal([
      ['afterQueue', hooked.id],
    ])
    expect(await rejectionOf(hooked.queue('four'))).to.have.property('message', 'out of order')
  })

  it('keeps settings pending until it is committed, and after a rollback', async () => {
    const chat = await mill.chats.create()
    chat.withModel('other').withTemperature(0.5).withInstructions('a', { append: true })
    const lost = await begin(mill)
    await chat.askLater('lost', { transaction: lost })
    await lost.rollback()
    expect((await mill.chats.find(chat.id)).agent).to.equal(null)
    expect(await stored(mill, chat)).to.deep.equal({ model: null, settings: {}, system: [] })
    const kept = await begin(mill)
    await chat.askLater('kept', { transaction: kept })
    chat.withInstructions('b', { append: true })
    await chat.queue('later', { transaction: kept, wake: false })
    await mill.jobs.complete.enqueue(chat, { transaction: kept })
    await kept.commit()
    const wanted = { model: 'other', settings: { temperature: 0.5 }, system: ['a', 'b'] }
    expect(await stored(mill, chat)).to.deep.equal(wanted)
    statements.length = 0
    await chat.save()
    expect(await stored(mill, chat)).to.deep.equal(wanted)
    expect(statements.filter((sql) => sql.startsWith('UPDATE'))).to.deep.equal([])
  })

  it('stores settings once, though the chat is reloaded before the commit, and a rollback leaves them pending (S104)', async () => {
    const chat = await mill.chats.create()
    const lost = await begin(mill)
    await chat.withTemperature(0.5).withInstructions('a', { append: true }).askLater('lost', { transaction: lost })
    await chat.reload()
    await lost.rollback()
    expect(await stored(mill, chat)).to.deep.equal({ model: null, settings: {}, system: [] })
    expect(chat.temperature).to.equal(0.5)
    const kept = await begin(mill)
    await chat.withModel('other').askLater('kept', { transaction: kept })
    await chat.reload()
    await kept.commit()
    await chat.save()
    expect(await stored(mill, chat)).to.deep.equal({ model: 'other', settings: { temperature: 0.5 }, system: ['a'] })
  })

  it('may hold savepoints: one that is rolled back takes back its part alone', async () => {
    const chat = await mill.chats.create()
    const whole = await begin(mill)
    const good = await mill.sequelize.transaction({ transaction: whole })
    await chat.queue('good', { transaction: good })
    await good.commit()
    const bad = await mill.sequelize.transaction({ transaction: whole })
    await chat.queue('bad', { transaction: bad })
    await bad.rollback()
    expect(told()).to.deep.equal([])
    await whole.commit()
    expect((await chat.queuedMessages()).map(({ content }) => content)).to.deep.equal(['good'])
    expect((await take(chat, 1))[0]).to.include({ type: 'queued', content: 'good' })
    expect(commands.filter((name) => name === 'xadd')).to.have.length(1)
  })

  it('is refused when it is over, of another Sequelize, or none at all', async () => {
    const chat = await mill.chats.create()
    const over = await begin(mill)
    await over.commit()
    const stranger = openDatabase({ databaseUrl: bench.database.url, dataDir: '.', databasePool: 1 })
    const foreign = await stranger.transaction()
    for (const transaction of [over, foreign, {} as Transaction]) {
      for (const act of [
        () => mill.chats.create({}, { transaction }),
        () => chat.askLater('one', { transaction }),
        () => chat.queue('one', { transaction }),
        () => mill.jobs.complete.enqueue(chat.id, { transaction }),
      ]) {
        expect(await rejectionOf(act()))
          .to.be.instanceOf(ArgumentError)
          .and.have.property('message')
          .that.includes('transaction')
      }
    }
    const asked = { transaction: over } as object
    expect(await rejectionOf(chat.ask('one', asked))).to.be.instanceOf(ArgumentError)
    await foreign.rollback()
    await stranger.close()
    expect(await chat.messages()).to.deep.equal([])
  })

  it('adds no statement to those of its parts', async () => {
    const chat = await mill.chats.create()
    const other = await mill.chats.create()
    statements.length = 0
    await other.askLater('one', { enqueue: true })
    const alone = statements.filter((sql) => !/^(START|BEGIN|COMMIT)/.test(sql))
    statements.length = 0
    const transaction = await begin(mill)
    const begun = statements.length
    await chat.askLater('one', { transaction, enqueue: true })
    expect(statements.slice(begun)).to.deep.equal(alone)
    await transaction.commit()
    expect(statements.slice(begun)).to.have.length(alone.length + 1)
  })

  it('lets what fails come out as it is, without trying again', async () => {
    const chat = await mill.chats.create()
    const transaction = await begin(mill)
    await mill.models.Chat.destroy({ where: { id: chat.id }, transaction })
    expect(await rejectionOf(chat.askLater('one', { transaction }))).to.be.instanceOf(ChatNotFoundError)
    await transaction.rollback()
    expect(await chat.messages()).to.deep.equal([])
  })

  it('that dies with its process leaves nothing and rings nobody', async function () {
    this.timeout(150_000)
    // What other tests left wanted would be taken by the worker.
    await mill.models.Chat.destroy({ where: {} })
    const before = await allRows(mill)
    const child = spawn(process.execPath, [(await bundle()).program(script)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, THREADMILL_TEST_OPTIONS: JSON.stringify(bench.options()) },
    })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    await until('the rows are written', () => output.includes('WRITTEN'), 60_000)
    child.kill('SIGKILL')
    await once(child, 'exit')
    // A chat of now waits for whatever lock the dead one may hold.
    const chat = await mill.chats.create()
    await mill.models.Chat.destroy({ where: { id: chat.id } })
    expect(await allRows(mill)).to.deep.equal(before)
    const worker = await bench.connect()
    const pool = worker.startWorkers({ complete: 1, runTools: 0 })
    await pool.ready()
    expect((await allRows(mill)).chats).to.deep.equal(before.chats)
    await pool.close()
  })

  if (kind.name === 'MariaDB') {
    it('is refused where it reads as of its start', async () => {
      const chat = await mill.chats.create()
      const isolationLevel = Transaction.ISOLATION_LEVELS.REPEATABLE_READ
      const transaction = await mill.sequelize.transaction({ isolationLevel })
      const error = await rejectionOf(chat.askLater('one', { transaction }))
      expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes('READ_COMMITTED')
      await transaction.rollback()
    })

    it('gets a deadlock as the error that it is', async () => {
      const [first, second] = [await mill.chats.create(), await mill.chats.create()]
      const [one, two] = [await begin(mill), await begin(mill)]
      await first.queue('one', { transaction: one })
      await second.queue('two', { transaction: two })
      const ends = await Promise.allSettled([
        second.queue('one', { transaction: one }),
        first.queue('two', { transaction: two }),
      ])
      const failed = ends.filter((end) => end.status === 'rejected').map(({ reason }) => reason as { parent?: unknown })
      expect(failed).to.have.length(1)
      expect(failed[0]?.parent).to.include({ code: 'ER_LOCK_DEADLOCK' })
      const [lost, won] = ends[0]?.status === 'rejected' ? [one, two] : [two, one]
      await won.commit()
      await lost.rollback().catch(() => {})
      expect(await first.queuedMessages()).to.have.length(1)
      expect(await second.queuedMessages()).to.have.length(1)
    })
  }
})

function begin(mill: Threadmill): Promise<Transaction> {
  return mill.sequelize.transaction()
}

async function stored(mill: Threadmill, chat: Chat) {
  const record = await mill.models.Chat.findByPk(chat.id, { rejectOnEmpty: true })
  const system = (await chat.messages()).filter(({ role }) => role === 'system').map(({ content }) => content)
  return { model: record.model, settings: record.settings, system }
}

async function take(chat: Chat, count: number): Promise<ChatEvent[]> {
  const events: ChatEvent[] = []
  for await (const event of chat.events({ after: '0' })) {
    events.push(event)
    if (events.length === count) break
  }
  return events
}
