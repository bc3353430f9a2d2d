import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { DataTypes, QueryTypes, Sequelize, type Transaction } from 'sequelize'
import { checkDatabase } from '../../config/check-database.ts'
import { openDatabase } from '../../config/database.ts'
import { inTransaction } from '../../config/transaction.ts'
import { ConfigurationError, UnreachableError } from '../../src/errors.ts'
import { rejection, until } from './support/helpers.ts'

const server = process.env.TEST_DATABASE_URL

describe('MySQL and MariaDB', function () {
  this.timeout(30_000)
  const name = `threadmill_config_${randomBytes(6).toString('hex')}`
  const statements: string[] = []
  let databaseUrl: string
  let sequelize: Sequelize

  const settings = () => ({ databaseUrl, dataDir: '', databasePool: 4 })
  const admin = async (sql: string) => {
    const url = new URL(server ?? '')
    url.pathname = '/mysql'
    const connection = openDatabase({ databaseUrl: url.href, dataDir: '', databasePool: 1 })
    await connection.query(sql)
    await connection.close()
  }
  const scalar = async (sql: string, transaction: Transaction | null = null) => {
    const [row] = await sequelize.query<{ n: unknown }>(sql, { type: QueryTypes.SELECT, transaction })
    return row?.n
  }

  before(async function () {
    if (!server) return this.skip()
    await admin(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`)
    const url = new URL(server)
    url.pathname = `/${name}`
    databaseUrl = url.href
    sequelize = openDatabase(settings(), { onStatement: (sql) => statements.push(sql) })
    await sequelize.query('CREATE TABLE pairs (id INT PRIMARY KEY, n INT NOT NULL)')
    await sequelize.query('INSERT INTO pairs VALUES (1, 0), (2, 0)')
    await sequelize.query('CREATE TABLE entries (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL)')
  })

  after(async () => {
    if (!server) return
    await sequelize.close()
    await admin(`DROP DATABASE ${name}`)
  })

  it('passes the check', async () => {
    await checkDatabase(sequelize)
  })

  it('sets each session up once, not each transaction', async () => {
    // MySQL and MariaDB name the variable differently; one of the two is there.
    const [row] = await sequelize.query<{ Value: string }>(
      "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')",
      { type: QueryTypes.SELECT },
    )
    expect(row?.Value).to.equal('READ-COMMITTED')
    expect(await scalar('SELECT @@sql_mode AS n')).to.include('STRICT_ALL_TABLES')
    expect(await scalar('SELECT @@time_zone AS n')).to.equal('+00:00')
    statements.length = 0
    await sequelize.transaction(async (transaction) => {
      await sequelize.query('SELECT 1', { transaction })
      await sequelize.query('UPDATE pairs SET n = $n WHERE id = 3', { bind: { n: 1 }, transaction })
    })
    expect(statements.map((sql) => sql.split(' ')[0]?.replace(';', ''))).to.deep.equal([
      'START',
      'SELECT',
      'UPDATE',
      'COMMIT',
    ])
  })

  it('counts a claim that is renewed with the same values as still held', async () => {
    const renew = () => sequelize.query('UPDATE pairs SET n = 0 WHERE id = 1', { type: QueryTypes.UPDATE })
    expect((await renew())[1]).to.equal(1)
    expect((await renew())[1]).to.equal(1)
  })

  it('sees inside a transaction what others committed since it began to read', async () => {
    await sequelize.transaction(async (transaction) => {
      expect(await scalar('SELECT n FROM pairs WHERE id = 1', transaction)).to.equal(0)
      await sequelize.query('UPDATE pairs SET n = 777 WHERE id = 1')
      expect(await scalar('SELECT n FROM pairs WHERE id = 1', transaction)).to.equal(777)
    })
    await sequelize.query('UPDATE pairs SET n = 0 WHERE id = 1')
  })

  it('refuses what does not fit instead of cutting it', async () => {
    const error = await rejection(
      sequelize.query('INSERT INTO entries (name) VALUES (?)', { replacements: ['x'.repeat(21)] }),
    )
    expect(error.message).to.include('too long')
  })

  it('keeps milliseconds, decimals, 4-byte characters, NUL and JSON', async () => {
    const Thing = sequelize.define('Thing', {
      at: DataTypes.DATE(3),
      price: DataTypes.DECIMAL(20, 10),
      text: DataTypes.TEXT('long'),
      data: DataTypes.JSON,
    })
    await Thing.sync()
    const values = {
      at: new Date('2024-02-29T12:34:56.789Z'),
      price: '1234567890.0123456789',
      text: '👩‍👧𠜎\0ü',
      data: { a: [1] },
    }
    const { id } = (await Thing.create(values)).get()
    expect((await Thing.findByPk(id, { rejectOnEmpty: true })).get()).to.deep.include(values)
  })

  it('stores both sides of fifty deadlocks in a row, once, and keeps all connections (B71)', async () => {
    let deadlocks = 0
    for (let round = 0; round < 50; round++) {
      let met = 0
      const side = (first: number, second: number) => {
        let tried = false
        return inTransaction(sequelize, async (transaction) => {
          if (tried) deadlocks++
          await sequelize.query('UPDATE pairs SET n = n + 1 WHERE id = $first', { bind: { first }, transaction })
          met++
          if (!tried) await until('both hold a row', () => met >= 2)
          tried = true
          await sequelize.query('UPDATE pairs SET n = n + 1 WHERE id = $second', { bind: { second }, transaction })
          await sequelize.query("INSERT INTO entries (name) VALUES ('row')", { transaction })
        })
      }
      await Promise.all([side(1, 2), side(2, 1)])
    }
    expect(deadlocks).to.be.at.least(50)
    expect(await scalar('SELECT SUM(n) AS n FROM pairs')).to.equal('200')
    expect(await scalar("SELECT COUNT(*) AS n FROM entries WHERE name = 'row'")).to.equal(100)
    const slow = Array.from({ length: 4 }, () => sequelize.query('SELECT SLEEP(0.2)'))
    const began = performance.now()
    await Promise.all(slow)
    expect(performance.now() - began).to.be.lessThan(700)
  })

  it('refuses a server that takes SYSDATE() for NOW(), as --sysdate-is-now has it do', async () => {
    const query = sequelize.query.bind(sequelize) as (sql: string, options?: object) => Promise<unknown>
    const stands = (sql: string, options?: object) => query(sql.replaceAll('SYSDATE(', 'NOW('), options)
    Object.assign(sequelize, { query: stands })
    const error = await rejection(checkDatabase(sequelize))
    expect(error).to.be.instanceOf(ConfigurationError)
    expect(error.message).to.include('--sysdate-is-now')
    delete (sequelize as { query?: unknown }).query
    await checkDatabase(sequelize)
  })

  it('refuses a connection that counts changed rows', async () => {
    const plain = new Sequelize(databaseUrl.replace('mariadb:', 'mysql:'), { logging: false })
    const error = await rejection(checkDatabase(plain))
    expect(error).to.be.instanceOf(ConfigurationError)
    expect(error.message).to.include('FOUND_ROWS')
    await plain.close()
  })

  it('says where a wrong password was refused, without the password', async () => {
    const url = new URL(databaseUrl)
    url.username = 'nobody'
    url.password = 'hunter2'
    const wrong = openDatabase({ ...settings(), databaseUrl: url.href })
    const error = await rejection(checkDatabase(wrong))
    expect(error).to.be.instanceOf(UnreachableError)
    expect(error.message).to.include(url.hostname).and.to.include(name).and.not.to.include('hunter2')
    await wrong.close()
  })
})

describe('a database server that is not there', () => {
  it('is named with host and port, without the password', async () => {
    const sequelize = openDatabase({ databaseUrl: 'mysql://root:hunter2@127.0.0.1:1/d', dataDir: '', databasePool: 1 })
    const error = await rejection(checkDatabase(sequelize))
    expect(error).to.be.instanceOf(UnreachableError)
    expect(error.message).to.include('127.0.0.1:1/d').and.to.include('ECONNREFUSED').and.not.to.include('hunter2')
    await sequelize.close()
  })
})
