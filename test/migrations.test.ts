import { expect } from 'chai'
import { DataTypes, type Sequelize } from 'sequelize'
import { SequelizeStorage, Umzug } from 'umzug'
import { openDatabase } from '../config/database.ts'
import { migrate, migrationStatus } from '../models/migrator.ts'
import { ConfigurationError } from '../src/index.ts'
import { migrations } from '../src/migrations.ts'
import { rejectionOf } from './chat/support/watching.ts'
import { onEachDatabase, type TestDatabase } from './support/databases.ts'

onEachDatabase("An application's own umzug", (kind) => {
  let database: TestDatabase
  let sequelize: Sequelize
  beforeEach(async () => {
    database = await kind.create()
    sequelize = openDatabase({ databaseUrl: database.url, dataDir: '.', databasePool: 2 })
  })
  afterEach(async () => {
    await sequelize.close()
    await database.drop()
  })

  const own = {
    name: 'add-team',
    up: async () => {
      await sequelize.getQueryInterface().addColumn('threadmill_chats', 'team', { type: DataTypes.STRING(20) })
    },
  }
  const umzug = (context: object = sequelize) =>
    new Umzug({
      migrations: [...migrations(), own],
      context,
      storage: new SequelizeStorage({ sequelize }),
      logger: undefined,
    })

  it("runs Threadmill's steps and the application's own in one list", async () => {
    const names = migrations().map(({ name }) => name)
    expect((await umzug().up()).map(({ name }) => name)).to.deep.equal([...names, 'add-team'])
    expect((await umzug().pending()).length).to.equal(0)
    expect((await migrationStatus(sequelize, 'threadmill_')).every((step) => step.appliedAt !== null)).to.equal(true)
    expect(await migrate(sequelize, 'threadmill_')).to.deep.equal([])
  })

  it('applies nothing that the other way applied already', async () => {
    await migrate(sequelize, 'threadmill_')
    const before = await migrationStatus(sequelize, 'threadmill_')
    await umzug().up()
    expect(await migrationStatus(sequelize, 'threadmill_')).to.deep.equal(before)
  })

  it('may give the query interface, or an object with either, as its context', async () => {
    const queryInterface = sequelize.getQueryInterface()
    for (const context of [queryInterface, { queryInterface }, { sequelize }]) {
      await migrations({ tablePrefix: 'other_' })[0]?.up({ context })
    }
    expect((await migrationStatus(sequelize, 'other_'))[0]?.appliedAt).to.be.instanceOf(Date)
    const error = await rejectionOf(migrations()[0]?.up({ context: {} }) ?? Promise.resolve())
    expect(error).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes('context: sequelize')
  })

  it('can not undo a step, and keeps it', async () => {
    await umzug().up()
    const error = await rejectionOf(umzug().down({ to: 0 }))
    expect(error).to.have.property('message').that.includes('steps only go forward')
    expect((await migrationStatus(sequelize, 'threadmill_')).every((step) => step.appliedAt !== null)).to.equal(true)
  })

  it('names steps of several prefixes apart', () => {
    expect(migrations({ tablePrefix: 'one_' })[0]?.name).to.equal('one_0001-conversations')
    expect(() => migrations({ tablePrefix: 'Nope;' })).to.throw('tablePrefix')
  })
})
