import { expect } from 'chai'
import { DataTypes, type Options, QueryTypes, Sequelize, Transaction } from 'sequelize'
import * as z from 'zod'
import {
  ArgumentError,
  ConfigurationError,
  type ConnectOptions,
  defineAgent,
  defineTool,
  Threadmill,
} from '../src/index.ts'
import { text, toolCalls } from '../src/testing/index.ts'
import { rejectionOf } from './chat/support/watching.ts'
import { onEachDatabase } from './support/databases.ts'
import { useBench } from './support/mills.ts'
import { until } from './support/until.ts'

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  requiresApproval: true,
  execute: ({ a, b }) => a + b,
})
const calculator = defineAgent({ name: 'calculator', tools: [add] })

onEachDatabase("The application's own Sequelize", (kind) => {
  const bench = useBench(kind)
  const opened: Sequelize[] = []
  const statements: string[] = []
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((sequelize) => sequelize.close()))
    statements.length = 0
  })

  if (kind.name === 'SQLite') {
    it('is refused for SQLite, which has mill.sequelize instead', async () => {
      const mill = await bench.connect()
      const error = await rejectionOf(bench.connect({ databaseUrl: undefined, sequelize: mill.sequelize }))
      expect(error).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes('mill.sequelize')
      expect((await mill.chats.create({ owner: 'anna' })).owner).to.equal('anna')
    })

    it('is refused when it is no Sequelize at all', async () => {
      const error = await rejectionOf(Threadmill.connect({ sequelize: {} as Sequelize }))
      expect(error).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes('npm ls sequelize')
    })
    return
  }

  /** As applications have it: with models, defaults and a log of its own, and sessions as the server gives them. */
  function application(more: Options = {}, dialectOptions: object = {}): Sequelize {
    const sequelize = new Sequelize(bench.database.url.replace('mariadb:', 'mysql:'), {
      logging: (sql) => statements.push(sql),
      define: { paranoid: true, version: true, schema: '', freezeTableName: false },
      dialectOptions: { flags: ['FOUND_ROWS'], ...dialectOptions },
      pool: { max: 4 },
      ...more,
    })
    opened.push(sequelize)
    return sequelize
  }
  const connect = (sequelize: Sequelize, more: ConnectOptions = {}) =>
    bench.connect({ databaseUrl: undefined, sequelize, agents: [calculator], ...more })

  it('carries a whole turn, on its pool, next to models of the same names, and stays open', async function () {
    this.timeout(60_000)
    const sequelize = application()
    const Chat = sequelize.define('Chat', { room: DataTypes.STRING(20) })
    await bench.script([toolCalls([{ name: 'add', arguments: { a: 1, b: 2 } }]), text('It is 3.')])
    const mill = await connect(sequelize, { claimTtlMs: 1_000 })
    expect(sequelize.models).to.deep.equal({ Chat })
    const chat = await mill.chats.create({ agent: calculator })
    const pool = mill.startWorkers({ complete: 2, runTools: 0 })
    await chat.askLater('1 + 2?', { enqueue: true })
    const [call] = await until('the approval', async () => {
      const calls = await chat.pendingApprovals()
      return calls.length > 0 ? calls : null
    })
    await chat.approve(call?.id ?? '')
    await until('the answer', () => chat.isComplete())
    expect((await chat.messages()).at(-1)?.content).to.equal('It is 3.')
    expect((await chat.cost()).total).to.equal(null)
    await pool.close()
    await mill.close()
    expect(statements.filter((sql) => /UPDATE threadmill_chats/.test(sql))).to.deep.equal([])
    await sequelize.sync({ force: true })
    await Chat.create({ room: 'blue' })
    expect(await Chat.count()).to.equal(1)
    await sequelize.drop()
    const again = await connect(sequelize)
    expect(await (await again.chats.find(chat.id)).messages()).to.have.length(4)
  })

  it('leaves its sessions as they were, and its transactions', async () => {
    const sequelize = application({ pool: { max: 1 } })
    const session = async () =>
      sequelize.query("SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation', 'sql_mode')", {
        type: QueryTypes.SELECT,
      })
    const before = await session()
    const told: string[] = []
    const mill = await connect(sequelize, { observe: { onStatement: (sql) => told.push(sql) } })
    const chat = await mill.chats.create()
    told.length = 0
    await chat.queue('one', { wake: false })
    expect(told.map((sql) => sql.split(' ', 2).join(' '))).to.deep.equal([
      'SET TRANSACTION',
      'START TRANSACTION;',
      'SELECT c.id',
      'UPDATE threadmill_chats',
      'INSERT INTO',
      'COMMIT;',
    ])
    expect(await session()).to.deep.equal(before)
    await sequelize.query('SELECT 1')
    expect(told).to.have.length(6)
  })

  it('renews claims over connections derived from it', async function () {
    this.timeout(60_000)
    await bench.script([text('Slow.', { delayMs: 3_000 })])
    const mill = await connect(application(), { claimTtlMs: 1_000 })
    const chat = await mill.chats.create()
    const before = (await mill.models.Chat.findByPk(chat.id))?.claimToken
    expect((await chat.ask('Are you there?'))?.content).to.equal('Slow.')
    expect((await mill.models.Chat.findByPk(chat.id))?.claimToken).to.equal((before ?? 0) + 1)
  })

  it('may have its own transactions joined, if they read committed data', async () => {
    const sequelize = application()
    const mill = await connect(sequelize)
    const isolationLevel = Transaction.ISOLATION_LEVELS.READ_COMMITTED
    const chat = await sequelize.transaction({ isolationLevel }, (transaction) =>
      mill.chats.create({ owner: 'anna' }, { transaction }),
    )
    expect((await mill.chats.find(chat.id)).owner).to.equal('anna')
    await mill.transaction((transaction) => chat.queue('one', { transaction, wake: false }))
    const usual = await sequelize.transaction()
    const error = await rejectionOf(chat.queue('two', { transaction: usual }))
    expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes('REPEATABLE READ')
    await usual.rollback()
    expect(await chat.queuedMessages()).to.have.length(1)
  })

  it('is refused without FOUND_ROWS, and with options that change what values are, naming each', async () => {
    const plain = new Sequelize(bench.database.url.replace('mariadb:', 'mysql:'), { logging: false })
    opened.push(plain)
    expect(await rejectionOf(connect(plain)))
      .to.be.instanceOf(ConfigurationError)
      .and.have.property('message')
      .that.includes('FOUND_ROWS')
    const odd = application({ timezone: '+02:00' }, { decimalNumbers: true, charset: 'latin1' })
    odd.addHook('afterConnect', (connection) =>
      (connection as { promise(): { query(sql: string): Promise<void> } }).promise().query("SET SESSION sql_mode = ''"),
    )
    const error = await rejectionOf(connect(odd))
    expect(error).to.be.instanceOf(ConfigurationError)
    for (const part of ['timezone', 'decimalNumbers', 'utf8mb4', 'STRICT_TRANS_TABLES']) {
      expect(error).to.have.property('message').that.includes(part)
    }
  })

  it('needs databaseUrl beside it where its connections are made by a hook, and one of the same database', async () => {
    const sequelize = application()
    sequelize.addHook('beforeConnect', () => {})
    const error = await rejectionOf(connect(sequelize))
    expect(error).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes('databaseUrl')
    const mill = await connect(sequelize, { databaseUrl: bench.database.url })
    expect((await mill.chats.create({ owner: 'anna' })).owner).to.equal('anna')
    const other = await kind.create()
    const elsewhere = await rejectionOf(connect(sequelize, { databaseUrl: other.url }))
    expect(elsewhere)
      .to.be.instanceOf(ConfigurationError)
      .and.have.property('message')
      .that.includes('another database')
    await other.drop()
  })

  it('reads from the server that is written to where it has replicas', async () => {
    const url = new URL(bench.database.url)
    const place = { host: url.hostname, port: url.port || '3306', username: url.username, password: url.password }
    const read = { ...place, port: '1' }
    const database = url.pathname.slice(1)
    const sequelize = new Sequelize({
      dialect: 'mysql',
      database,
      replication: { write: place, read: [read] },
      logging: false,
      dialectOptions: { flags: ['FOUND_ROWS'] },
    })
    opened.push(sequelize)
    const mill = await connect(sequelize)
    const chat = await mill.chats.create()
    await chat.askLater('Are you there?')
    expect(await chat.messages()).to.have.length(1)
    expect(await chat.queuedMessages()).to.have.length(0)
  })
})
