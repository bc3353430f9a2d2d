import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { QueryTypes, type Sequelize } from 'sequelize'
import { openDatabase } from '../../config/database.ts'
import { migrations } from '../../models/migrations/index.ts'
import { migrate, migrationStatus, requireMigrated } from '../../models/migrator.ts'
import { ArgumentError, ConfigurationError, NotMigratedError, Threadmill } from '../../src/index.ts'
import { rejectionOf } from '../chat/support/watching.ts'
import { bundle } from '../support/bundle.ts'
import { onEachDatabase, type TestDatabase } from '../support/databases.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'

const steps = migrations.map((step) => step.name)
const script = fileURLToPath(new URL('./apps/migrate.ts', import.meta.url))

onEachDatabase('Migrations', (kind) => {
  let database: TestDatabase
  let opened: Sequelize[] = []
  beforeEach(async () => {
    database = await kind.create()
  })
  afterEach(async () => {
    await Promise.all(opened.map((sequelize) => sequelize.close()))
    opened = []
    await database.drop()
  })
  function open(): Sequelize {
    const sequelize = openDatabase({ databaseUrl: database.url, dataDir: '.', databasePool: 2 })
    opened.push(sequelize)
    return sequelize
  }

  it('are applied once when four processes start at the same time', async function () {
    this.timeout(60_000)
    const applied = await Promise.all([open(), open(), open(), open()].map((one) => migrate(one, 'threadmill_')))
    expect(applied.flat()).to.deep.equal(steps)
    expect(applied.filter((names) => names.length === 0)).to.have.length(3)
    await requireMigrated(open(), 'threadmill_')
  })

  it('have nothing to do the second time', async () => {
    expect(await migrate(open(), 'threadmill_')).to.deep.equal(steps)
    const before = await schemaOf(open())
    expect(await migrate(open(), 'threadmill_')).to.deep.equal([])
    expect(await schemaOf(open())).to.deep.equal(before)
  })

  it('are missed by name where they were not applied', async () => {
    const error = await rejectionOf(requireMigrated(open(), 'threadmill_'))
    expect(error).to.be.instanceOf(NotMigratedError).and.have.property('code', 'configuration.not_migrated')
    for (const step of steps) expect(error).to.have.property('message').that.includes(step)
    expect(error).to.have.property('message').that.includes('"threadmill_"').and.includes('migrate: true')
  })

  it('are missed by name where one of them is new', async () => {
    const sequelize = open()
    await migrate(sequelize, 'threadmill_')
    await sequelize.query(`DELETE FROM threadmill_migrations WHERE name = '${steps.at(-1)}'`)
    const error = await rejectionOf(requireMigrated(sequelize, 'threadmill_'))
    expect(error).to.be.instanceOf(NotMigratedError).and.have.property('message').that.includes(steps.at(-1))
  })

  it('keep sets of tables with different prefixes apart', async () => {
    expect(await migrate(open(), 'one_')).to.deep.equal(steps)
    expect(await rejectionOf(requireMigrated(open(), 'two_'))).to.be.instanceOf(NotMigratedError)
    expect(await migrate(open(), 'two_')).to.deep.equal(steps)
    await requireMigrated(open(), 'two_')
    const tables = (await schemaOf(open())).map((name) => name.toLowerCase())
    expect(tables).to.include.members(['one_chats', 'two_chats', 'one_migrations', 'two_migrations'])
    expect(tables.filter((name) => name.startsWith('threadmill_'))).to.deep.equal([])
  })

  it('are listed before, without changing anything, and with their time after', async () => {
    expect(await migrate(open(), 'threadmill_', { dryRun: true })).to.deep.equal(steps)
    expect(await migrationStatus(open(), 'threadmill_')).to.deep.equal(steps.map((name) => ({ name, appliedAt: null })))
    expect(await schemaOf(open())).to.deep.equal([])
    const told: string[] = []
    await migrate(open(), 'threadmill_', { onMigrated: (name) => told.push(name) })
    expect(told).to.deep.equal(steps)
    for (const { appliedAt } of await migrationStatus(open(), 'threadmill_')) {
      expect(Math.abs(Date.now() - Number(appliedAt))).to.be.lessThan(60_000)
    }
    expect(await migrate(open(), 'threadmill_', { dryRun: true })).to.deep.equal([])
  })

  it('go as far as the step that is named', async () => {
    const [first = ''] = steps
    expect(await migrate(open(), 'threadmill_', { to: first, dryRun: true })).to.deep.equal([first])
    expect(await migrate(open(), 'threadmill_', { to: first })).to.deep.equal([first])
    expect(await migrate(open(), 'threadmill_', { to: first })).to.deep.equal([])
    expect(await migrate(open(), 'threadmill_', { dryRun: true })).to.deep.equal(steps.slice(1))
    const error = await rejectionOf(migrate(open(), 'threadmill_', { to: '0000-nothing' }))
    expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes(first)
  })

  it('of a later release are shown, and do not keep an earlier one from starting', async () => {
    await migrate(open(), 'threadmill_')
    const at = new Date('2030-01-02T03:04:05.678Z')
    await open().query("INSERT INTO threadmill_migrations VALUES ('9999-later', $at, $at)", { bind: { at: text(at) } })
    await requireMigrated(open(), 'threadmill_')
    const status = await migrationStatus(open(), 'threadmill_')
    expect(status.at(-1)).to.deep.equal({ name: '9999-later', appliedAt: at })
    expect(status).to.have.length(steps.length + 1)
  })

  it('that were cut off between two statements go on to the same tables', async function () {
    this.timeout(120_000)
    const whole = open()
    const changes = await changesOf(whole, () => migrate(whole, 'whole_'))
    const wanted = await shapeOf(whole, 'whole_')
    for (let at = 1; at <= changes; at += 5) {
      const prefix = `cut${at}_`
      const cut = open()
      const error = await rejectionOf(changesOf(cut, () => migrate(cut, prefix), at))
      expect(error).to.have.property('message').that.includes(`cut off at ${at}`)
      expect(await rejectionOf(requireMigrated(open(), prefix))).to.be.instanceOf(NotMigratedError)
      await migrate(open(), prefix)
      expect(await shapeOf(open(), prefix), `cut off at ${at}`).to.deep.equal(wanted)
    }
  })

  it('that fail name the step and the reason', async () => {
    const sequelize = open()
    const error = await rejectionOf(changesOf(sequelize, () => migrate(sequelize, 'threadmill_'), 4))
    expect(error).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes(steps[0])
    expect(error).to.have.property('message').that.includes('cut off at 4')
  })

  it('are applied once by real processes at the same time, though one is killed in the middle', async function () {
    this.timeout(120_000)
    const program = (await bundle()).program(script)
    const run = (...more: string[]) => promisify(execFile)(process.execPath, [program, database.url, ...more])
    const killed = await rejectionOf(run('7'))
    expect(killed).to.have.property('signal', 'SIGKILL')
    const outputs = await Promise.all([run(), run()])
    const applied = outputs.map(({ stdout }) => JSON.parse(stdout.replace('APPLIED ', '')) as string[])
    expect(applied.flat()).to.deep.equal(steps)
    await requireMigrated(open(), 'threadmill_')
  })

  describe('by connect', () => {
    let redis: TestRedisServer
    before(async function () {
      this.timeout(30_000)
      redis = await startRedisServer()
    })
    after(() => redis.stop())

    it('are applied only when it is told so, by four processes at once too', async function () {
      this.timeout(60_000)
      const options = { databaseUrl: database.url, redisUrl: redis.url }
      expect(await rejectionOf(Threadmill.connect(options))).to.be.instanceOf(NotMigratedError)
      const mills = await Promise.all([1, 2, 3, 4].map(() => Threadmill.connect({ ...options, migrate: true })))
      const [first] = mills
      const chat = await first?.chats.create({ owner: 'anna' })
      for (const mill of mills) expect((await mill.chats.find(chat?.id ?? '')).owner).to.equal('anna')
      await Promise.all(mills.map((mill) => mill.close()))
    })
  })
})

const text = (time: Date) => `${time.toISOString().slice(0, 23).replace('T', ' ')}`

/** Counts the changes of the schema that `act` makes; with `cutAt` that one fails instead, as if the server had gone. */
async function changesOf(sequelize: Sequelize, act: () => Promise<unknown>, cutAt = 0): Promise<number> {
  let changes = 0
  const query = sequelize.query
  const watched = (...input: unknown[]) => {
    if (/^(CREATE|ALTER)/.test(String(Reflect.get(Object(input[0]), 'query') ?? input[0])) && ++changes === cutAt) {
      throw new Error(`cut off at ${cutAt}`)
    }
    return Reflect.apply(query, sequelize, input)
  }
  Object.assign(sequelize, { query: watched })
  await act()
  return changes
}

/** Tables, columns and indexes with a prefix, without the prefix. */
async function shapeOf(sequelize: Sequelize, prefix: string): Promise<string[]> {
  const sql =
    sequelize.getDialect() === 'sqlite'
      ? "SELECT type || ' ' || name || ' ' || COALESCE(sql, '') AS line FROM sqlite_master"
      : "SELECT CONCAT('column ', TABLE_NAME, ' ', COLUMN_NAME, ' ', COLUMN_TYPE) AS line FROM information_schema.COLUMNS " +
        "WHERE TABLE_SCHEMA = DATABASE() UNION ALL SELECT CONCAT('index ', TABLE_NAME, ' ', INDEX_NAME, ' ', SEQ_IN_INDEX, ' ', " +
        'COLUMN_NAME, NON_UNIQUE) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE()'
  const rows = await sequelize.query<{ line: string }>(sql, { type: QueryTypes.SELECT })
  const lines = rows.map(({ line }) => line).filter((line) => line.includes(` ${prefix}`))
  return lines.map((line) => line.replaceAll(prefix, '')).sort()
}

/** The names of all tables. */
async function schemaOf(sequelize: Sequelize): Promise<string[]> {
  const sql =
    sequelize.getDialect() === 'sqlite'
      ? "SELECT name FROM sqlite_master WHERE type IN ('table', 'index')"
      : 'SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()'
  const rows = await sequelize.query<{ name: string }>(sql, { type: QueryTypes.SELECT })
  return rows.map(({ name }) => name).sort()
}
