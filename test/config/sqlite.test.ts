import { join } from 'node:path'
import { expect } from 'chai'
import { DataTypes, ForeignKeyConstraintError, Op, QueryTypes, type Sequelize, UniqueConstraintError } from 'sequelize'
import { checkDatabase } from '../../config/check-database.ts'
import { openDatabase } from '../../config/database.ts'
import { UnreachableError } from '../../src/errors.ts'
import { rejection, removeDirectory, temporaryDirectory } from './support/helpers.ts'

describe('SQLite by the embedded driver', () => {
  let directory: string
  let sequelize: Sequelize
  let statements: string[]

  before(async () => {
    directory = await temporaryDirectory()
    sequelize = openDatabase(
      { databaseUrl: null, dataDir: join(directory, 'new folder # %41'), databasePool: 1 },
      { onStatement: (sql) => statements.push(sql) },
    )
    statements = []
    sequelize.define('Thing', {
      id: { type: DataTypes.STRING(36), primaryKey: true },
      data: DataTypes.JSON,
      at: DataTypes.DATE(3),
      price: DataTypes.DECIMAL(20, 10),
      flag: DataTypes.BOOLEAN,
      big: DataTypes.BIGINT,
      label: { type: DataTypes.STRING, unique: true },
      text: DataTypes.TEXT('long'),
      bytes: DataTypes.BLOB,
    })
    sequelize.define('Part', {
      thingId: { type: DataTypes.STRING(36), references: { model: 'Things', key: 'id' } },
    })
    await sequelize.sync()
  })

  after(async () => {
    await sequelize.close()
    await removeDirectory(directory)
  })

  let next = 0
  const things = () => sequelize.model('Thing')
  const store = async (values: object) => {
    const id = `t${++next}`
    await things().create({ id, ...values })
    return (await things().findByPk(id, { rejectOnEmpty: true })).get()
  }

  it("leaves the names of an application's tables and columns to Sequelize", () => {
    const part = sequelize.model('Part')
    expect(part.getTableName()).to.equal('Parts')
    expect(part.getAttributes().thingId?.field).to.equal('thingId')
  })

  it('answers the check', async () => {
    await checkDatabase(sequelize)
  })

  it('uses write-ahead logging, checks foreign keys and never waits inside the driver', async () => {
    const pragma = async (name: string) =>
      Object.values((await sequelize.query(`PRAGMA ${name}`, { type: QueryTypes.SELECT }))[0] ?? {})[0]
    expect(await pragma('journal_mode')).to.equal('wal')
    expect(await pragma('synchronous')).to.equal(1)
    expect(await pragma('busy_timeout')).to.equal(0)
    const error = await rejection(sequelize.model('Part').create({ thingId: 'nobody' }))
    expect(error).to.be.instanceOf(ForeignKeyConstraintError)
  })

  it('gives JSON back as objects', async () => {
    const data = { a: [1, { b: null }], text: 'ü "quoted" \0' }
    expect((await store({ data })).data).to.deep.equal(data)
  })

  it('keeps milliseconds of times', async () => {
    const at = new Date('2024-02-29T12:34:56.789Z')
    expect((await store({ at })).at).to.deep.equal(at)
    expect(await things().count({ where: { at: { [Op.lte]: at, [Op.gte]: at } } })).to.equal(1)
  })

  it('gives decimals back as plain strings', async () => {
    for (const price of ['1.5', '0.000000015', '-12345.6789012345', '0', '100', '-0.1', '99999.9999999999']) {
      expect((await store({ price })).price).to.equal(price)
    }
  })

  it('keeps booleans, nulls and integers beyond 2^53', async () => {
    expect((await store({ flag: true })).flag).to.equal(true)
    expect((await store({ flag: false })).flag).to.equal(false)
    expect((await store({ flag: null })).flag).to.equal(null)
    expect((await store({ big: 9_007_199_254_740_993n })).big).to.equal('9007199254740993')
    expect((await store({ big: 42n })).big).to.equal(42)
  })

  it('binds booleans, dates, integers and undefined in raw statements', async () => {
    const bind = [true, new Date('2024-01-02T03:04:05.006Z'), 5, 1.5, null, 9_007_199_254_740_993n]
    const [row] = await sequelize.query('SELECT $1 a, $2 b, $3 c, typeof($3) d, $4 e, $5 f, $6 g', {
      bind,
      type: QueryTypes.SELECT,
    })
    expect(row).to.deep.equal({
      a: 1,
      b: '2024-01-02 03:04:05.006 +00:00',
      c: 5,
      d: 'integer',
      e: 1.5,
      f: null,
      g: '9007199254740993',
    })
  })

  it('refuses what it cannot store instead of ending the process', async () => {
    const error = await rejection(sequelize.query('SELECT $1 a', { bind: [{ an: 'object' }], type: QueryTypes.SELECT }))
    expect(error.message).to.include('cannot store')
  })

  it('keeps 4-byte characters, NUL characters and the character that stands for them', async () => {
    const text = 'a👩‍👩‍👧‍👦𠜎\0b\uFDD0c\uFDD00\uFDD01'
    expect((await store({ text })).text).to.equal(text)
    const [row] = await sequelize.query('SELECT :text AS t', { replacements: { text }, type: QueryTypes.SELECT })
    expect(row).to.deep.equal({ t: text })
    expect(await things().count({ where: { text } })).to.equal(1)
  })

  it('keeps bytes', async () => {
    const bytes = Buffer.from([0, 1, 255, 0])
    const stored = (await store({ bytes })).bytes
    expect(Buffer.isBuffer(stored)).to.equal(true)
    expect(stored).to.deep.equal(bytes)
  })

  it('keeps a text of 8 MiB', async () => {
    const text = 'é'.repeat(4 * 1024 * 1024)
    expect((await store({ text })).text === text).to.equal(true)
  })

  it('reports a second row with the same unique value, and goes on', async () => {
    await store({ label: 'one' })
    const error = await rejection(store({ label: 'one' }))
    expect(error).to.be.instanceOf(UniqueConstraintError)
    expect((error as UniqueConstraintError).fields).to.deep.equal(['label'])
    expect(await rejection(things().create({ id: 't1' }))).to.be.instanceOf(UniqueConstraintError)
    await store({ label: 'two' })
  })

  it('counts the rows that matched, even if nothing changed in them', async () => {
    await store({ label: 'same' })
    expect(await things().update({ label: 'same' }, { where: { label: 'same' } })).to.deep.equal([1])
    expect(await things().destroy({ where: { label: 'same' } })).to.equal(1)
  })

  it('takes a transaction back whole', async () => {
    const error = await rejection(
      sequelize.transaction(async (transaction) => {
        await things().create({ id: 'gone' }, { transaction })
        throw new Error('changed my mind')
      }),
    )
    expect(error.message).to.equal('changed my mind')
    expect(await things().findByPk('gone')).to.equal(null)
  })

  it('reports each statement once, the ends of a transaction included and PRAGMAs not', async () => {
    statements.length = 0
    await sequelize.transaction(async (transaction) => {
      await things().findOne({ transaction })
      await things().update({ flag: true }, { where: { id: 'nobody' }, transaction })
    })
    expect(statements.map((sql) => sql.split(' ')[0]?.replace(';', ''))).to.deep.equal([
      'BEGIN',
      'SELECT',
      'UPDATE',
      'COMMIT',
    ])
    expect(statements[0]).to.include('IMMEDIATE')
  })

  it('follows a table that another connection changes', async () => {
    const other = openDatabase({ databaseUrl: null, dataDir: join(directory, 'new folder # %41'), databasePool: 1 })
    await sequelize.query('CREATE TABLE shifting (a INTEGER)')
    await sequelize.query('INSERT INTO shifting VALUES (1)')
    expect(await sequelize.query('SELECT * FROM shifting', { type: QueryTypes.SELECT })).to.deep.equal([{ a: 1 }])
    await other.query('ALTER TABLE shifting ADD COLUMN b INTEGER')
    expect(await sequelize.query('SELECT * FROM shifting', { type: QueryTypes.SELECT })).to.deep.equal([
      { a: 1, b: null },
    ])
    await other.close()
  })

  it('says which file it cannot open, and recovers once it can', async () => {
    const file = join(directory, 'taken')
    const blocked = openDatabase({ databaseUrl: `sqlite:${file}/db`, dataDir: '', databasePool: 1 })
    const { writeFile, rm } = await import('node:fs/promises')
    await writeFile(file, '')
    const error = await rejection(checkDatabase(blocked))
    expect(error).to.be.instanceOf(UnreachableError)
    expect(error.message).to.include(`${file}/db`)
    await rm(file)
    await checkDatabase(blocked)
    await blocked.close()
  })
})
