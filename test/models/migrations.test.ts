import { expect } from 'chai'
import { QueryTypes, type Sequelize } from 'sequelize'
import { openDatabase } from '../../config/database.ts'
import { migrations } from '../../models/migrations/index.ts'
import { migrate, requireMigrated } from '../../models/migrator.ts'
import { NotMigratedError, Threadmill } from '../../src/index.ts'
import { rejectionOf } from '../chat/support/watching.ts'
import { onEachDatabase, type TestDatabase } from '../support/databases.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'

const steps = migrations.map(({ name }) => name)

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

/** The names of all tables. */
async function schemaOf(sequelize: Sequelize): Promise<string[]> {
  const sql =
    sequelize.getDialect() === 'sqlite'
      ? "SELECT name FROM sqlite_master WHERE type IN ('table', 'index')"
      : 'SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()'
  const rows = await sequelize.query<{ name: string }>(sql, { type: QueryTypes.SELECT })
  return rows.map(({ name }) => name).sort()
}
