import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { QueryTypes, type Sequelize, type Transaction } from 'sequelize'
import { openDatabase } from '../../config/database.ts'
import { SqliteHandle } from '../../config/sqlite-handle.ts'
import { inTransaction } from '../../config/transaction.ts'
import { removeDirectory, Script, temporaryDirectory, thrown } from './support/helpers.ts'

describe('SQLite under concurrency', function () {
  this.timeout(30_000)
  let directory: string
  let databaseUrl: string
  let sequelize: Sequelize

  beforeEach(async () => {
    directory = await temporaryDirectory()
    databaseUrl = `sqlite:${join(directory, 'db')}`
    sequelize = openDatabase({ databaseUrl, dataDir: '', databasePool: 1 })
    await sequelize.query('CREATE TABLE counter (n INTEGER NOT NULL)')
    await sequelize.query('INSERT INTO counter VALUES (0)')
    await sequelize.query('CREATE TABLE entries (id INTEGER PRIMARY KEY, name TEXT NOT NULL)')
  })

  afterEach(async () => {
    await sequelize.close()
    await removeDirectory(directory)
  })

  const scalar = async (sql: string, transaction: Transaction | null = null) => {
    const [row] = await sequelize.query<{ n: number }>(sql, { type: QueryTypes.SELECT, transaction })
    return row?.n
  }

  const increment = async (transaction: Transaction) => {
    const n = (await scalar('SELECT n FROM counter', transaction)) ?? 0
    await turn()
    await sequelize.query('UPDATE counter SET n = $n', { bind: { n: n + 1 }, transaction })
  }

  it('lets ten writers of one process take turns without losing an update or stopping the process', async () => {
    let ticks = 0
    const timer = setInterval(() => ticks++, 5)
    const writer = async (name: number) => {
      for (let i = 0; i < 10; i++) {
        await sequelize.transaction(increment)
        await sequelize.query('INSERT INTO entries (name) VALUES ($name)', { bind: { name: String(name) } })
      }
    }
    await Promise.all(Array.from({ length: 10 }, (_, name) => writer(name)))
    clearInterval(timer)
    expect(await scalar('SELECT n FROM counter')).to.equal(100)
    expect(await scalar('SELECT COUNT(*) AS n FROM entries')).to.equal(100)
    expect(ticks).to.be.greaterThan(5)
  })

  it('lets four processes read and then write in transactions, none of which fails or loses an update (B73)', async () => {
    const writers = ['a', 'b', 'c', 'd'].map((name) => new Script('sqlite-writer', [databaseUrl, '25', name]))
    const answers = await Promise.all(writers.map((writer) => writer.answer<{ errors: string[] }>()))
    expect(answers.flatMap((answer) => answer.errors)).to.deep.equal([])
    expect(await scalar('SELECT n FROM counter')).to.equal(100)
    expect(await scalar('SELECT COUNT(*) AS n FROM entries')).to.equal(200)
    await Promise.all(writers.map((writer) => writer.end()))
  })

  it('lets two runs that read before they write both succeed (B73)', async () => {
    await Promise.all([sequelize.transaction(increment), sequelize.transaction(increment)])
    expect(await scalar('SELECT n FROM counter')).to.equal(2)
  })

  it('commits the next write although one before it met a lock', () => {
    const [mine, theirs] = [new SqliteHandle(join(directory, 'db')), new SqliteHandle(join(directory, 'db'))]
    for (const insert of [
      "INSERT INTO entries (name) VALUES ('a')",
      "INSERT INTO entries (name) VALUES ('b') RETURNING id",
    ]) {
      theirs.execute('BEGIN IMMEDIATE', [])
      expect(thrown(() => mine.execute(insert, []))).to.include({ code: 'SQLITE_BUSY' })
      theirs.execute('ROLLBACK', [])
      mine.execute("INSERT INTO entries (name) VALUES ('mine')", [])
      theirs.execute("INSERT INTO entries (name) VALUES ('theirs')", [])
    }
    expect(theirs.execute('SELECT COUNT(*) AS n FROM entries', []).rows).to.deep.equal([{ n: 4 }])
    mine.close()
    theirs.close()
  })

  it('retries a transaction whole when it meets SQLITE_BUSY inside, and leaves no lock behind', async () => {
    let runs = 0
    await inTransaction(sequelize, async (transaction) => {
      await sequelize.query("INSERT INTO entries (name) VALUES ('once')", { transaction })
      if (++runs < 3) throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
    })
    expect(runs).to.equal(3)
    expect(await scalar('SELECT COUNT(*) AS n FROM entries')).to.equal(1)
  })

  it('survives fifty failed transactions in a row', async () => {
    for (let round = 0; round < 50; round++) {
      const failing = sequelize.transaction(async (transaction) => {
        await increment(transaction)
        await sequelize.query('INSERT INTO nowhere VALUES (1)', { transaction })
      })
      await failing.catch(() => {})
    }
    await sequelize.transaction(increment)
    expect(await scalar('SELECT n FROM counter')).to.equal(1)
  })
})
