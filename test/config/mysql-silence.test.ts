import { expect } from 'chai'
import type { Sequelize } from 'sequelize'
import { openDatabase } from '../../config/database.ts'
import { isLostConnection } from '../../config/lost-connection.ts'
import { startProxy } from '../events/proxy.ts'
import { onEachDatabase, type TestDatabase } from '../support/databases.ts'

onEachDatabase('A connection to the database that is silent', (kind) => {
  // A file has no connection.
  if (kind.name === 'SQLite') return
  let database: TestDatabase
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let through: Sequelize
  let direct: Sequelize
  const open = (databaseUrl: string) => openDatabase({ databaseUrl, dataDir: '', databasePool: 3 })
  before(async () => {
    database = await kind.create()
    const url = new URL(database.url)
    proxy = await startProxy(Number(url.port))
    url.port = new URL(proxy.url).port
    through = open(url.href)
    direct = open(database.url)
  })
  after(async () => {
    await Promise.all([through.close(), direct.close()])
    await proxy.close()
    await database.drop()
  })

  it('is broken off with its session and all its locks, and so are the others; one that works on a statement is not (E131)', async () => {
    await direct.query('CREATE TABLE things (id INT PRIMARY KEY, name VARCHAR(9)) ENGINE = InnoDB')
    await direct.query("INSERT INTO things VALUES (1, 'a')")
    // Longer than it takes to find a silent one out.
    const slow = direct.query('SELECT SLEEP(9) AS slept')
    await Promise.all([1, 2].map(() => through.query('SELECT SLEEP(0.05)')))
    const transaction = await through.transaction()
    await through.query("UPDATE things SET name = 'b' WHERE id = 1", { transaction })
    proxy.muteOpenConnections()
    const error = await through.query('SELECT 1', { transaction }).catch((reason: unknown) => reason)
    expect(isLostConnection(error)).to.equal(true)
    const begun = performance.now()
    await direct.query("UPDATE things SET name = 'c' WHERE id = 1 AND name = 'a'")
    await through.query('SELECT 1').catch(() => through.query('SELECT 1'))
    expect(performance.now() - begun).to.be.lessThan(8_000)
    expect((await slow)[0]).to.deep.equal([{ slept: 0 }])
    // Sequelize says on the console that it has to give up the connection, which is what it is to do.
    await transaction.rollback().catch(() => {})
  }).timeout(60_000)
})
