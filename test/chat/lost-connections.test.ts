import { expect } from 'chai'
import { DatabaseError, QueryTypes, type Sequelize } from 'sequelize'
import { isLostConnection } from '../../config/lost-connection.ts'
import { prepareMysqlConnection } from '../../config/mysql-session.ts'
import { defineAgent } from '../../src/index.ts'
import { isRetryable } from '../../src/loop/ending.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { chatRow, makeDue } from './support/rows.ts'
import { freshName } from './support/tools.ts'

onEachDatabase('A connection to the database that is lost', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const wrapped = (driver: object) => new DatabaseError(Object.assign(new Error('x'), { sql: '' }, driver))

  it('is known by what the driver says, and only where the error is the database’s (E68)', () => {
    const lost = [{ code: 'ECONNRESET' }, { errno: 1927 }, { code: 'PROTOCOL_CONNECTION_LOST' }, { fatal: true }]
    for (const driver of lost)
      expect([isLostConnection(wrapped(driver)), isRetryable(wrapped(driver))]).to.eql([true, true])
    for (const driver of [{ errno: 1062 }, { code: 'ER_DUP_ENTRY', fatal: false }]) {
      expect(isLostConnection(wrapped(driver))).to.equal(false)
    }
    expect(isRetryable(Object.assign(new Error('a tool’s'), { code: 'ECONNRESET' }))).to.equal(false)
  })

  it('is known too where it is lost while its session is set up, before a statement (E68)', async () => {
    const lost = Object.assign(new Error('Connection lost'), { code: 'PROTOCOL_CONNECTION_LOST', fatal: true })
    let destroyed = false
    const connection = {
      query: (_sql: string, done: (error: Error) => void) => done(lost),
      execute: () => {},
      destroy: () => {
        destroyed = true
      },
    }
    const error = await prepareMysqlConnection(connection).catch((thrown: unknown) => thrown)
    expect([isRetryable(error), isLostConnection(error), destroyed]).to.eql([true, true, true])
  })

  it('before a run has read its chat fails no turn (E68)', async () => {
    await bench.script(text('Danube.'))
    const agent = defineAgent({ name: freshName(), retries: 0 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Name a river')
    beforeNext(mill, 'look', () => Promise.reject(wrapped({ code: 'PROTOCOL_CONNECTION_LOST' })))
    const pool = mill.startWorkers()
    await mill.jobs.complete.enqueue(chat)
    await until('the run has ended', async () => {
      const { claimedBy, claimToken } = await chatRow(mill, chat)
      return claimedBy === null && claimToken > 0
    })
    expect(await chat.failure()).to.equal(null)
    await makeDue(mill, chat)
    await until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    await pool.close()
  }).timeout(40_000)

  /** Ends the session that sleeps in the middle of an insert. */
  async function killInsert(sequelize: Sequelize): Promise<boolean> {
    const [found] = await sequelize.query<{ ID: number }>(
      "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND STATE = 'User sleep' LIMIT 1",
      { type: QueryTypes.SELECT },
    )
    if (found !== undefined) await sequelize.query(`KILL ${found.ID}`)
    return found !== undefined
  }

  // SQLite has no sessions that could be killed.
  if (kind.name === 'SQLite') return

  it('in the middle of the commit of an answer fails no turn: it is tried again (E68)', async () => {
    await bench.script(text('Danube.'))
    const agent = defineAgent({ name: freshName(), retries: 0 })
    const mill = await bench.connect({ agents: [agent] })
    const other = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Name a river')
    const { sequelize } = other
    await sequelize.query(
      "CREATE TRIGGER slow_answers BEFORE INSERT ON threadmill_messages FOR EACH ROW SET @slow = IF(NEW.role = 'assistant', SLEEP(10), 0)",
    )
    const pool = mill.startWorkers()
    await mill.jobs.complete.enqueue(chat)
    await until('the answer is being stored', () => killInsert(sequelize))
    await sequelize.query('DROP TRIGGER slow_answers')
    await until('the run has ended', async () => (await chatRow(other, chat)).claimedBy === null)
    expect((await chat.messages()).map(({ role }) => role)).to.deep.equal(['user'])
    expect(await chat.failure()).to.equal(null)
    await makeDue(other, chat)
    await until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    expect((await chat.messages()).map(({ content }) => content)).to.deep.equal(['Name a river', 'Danube.'])
    await pool.close()
  }).timeout(40_000)
})
