import { expect } from 'chai'
import { QueryTypes } from 'sequelize'
import { SqliteHandle } from '../../../config/sqlite-handle.ts'
import { gate, text, toolCalls } from '../../../src/testing/index.ts'
import { until } from '../../support/until.ts'
import { rowOf, transcriptOf } from '../support/rows.ts'
import { kill, statements } from '../support/workers.ts'
import { type Case, playUnderFaults } from './support/cases.ts'
import { begins, diesAt, type Fault, freezesAt, killSessions } from './support/faults.ts'
import { claimLapsed, expectRest, type Ground, TTL_MS, WAIT_MS } from './support/ground.ts'

const { linksResult, insertsMessage, commits } = statements

/** Waits until a transaction of the runner waits for a row that somebody else has locked. */
async function runnerWaits({ mill }: Ground): Promise<void> {
  const look = async () => {
    const [status] = await mill.sequelize.query<{ Value: string }>(
      "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
      { type: QueryTypes.SELECT },
    )
    const sessions = await mill.sequelize.query<{ Info: string | null; db: string | null }>('SHOW FULL PROCESSLIST', {
      type: QueryTypes.SELECT,
    })
    const own = sessions.some(({ Info, db }) => db === mill.sequelize.getDatabaseName() && linksResult.test(Info ?? ''))
    return Number(status?.Value) > 0 && own
  }
  await until('the run waits for the row', look, WAIT_MS)
}

/** A deadlock: what the run has locked, the application wants, and the other way round. The application's transaction is the larger, so it wins. */
const deadlock = (more: 'nothing else happens' | 'its worker is killed' | 'its session is ended'): Fault => ({
  name: `a run and the application deadlock${more === 'nothing else happens' ? '' : ` and ${more}`}`,
  number: 'E170',
  only: 'MariaDB',
  losesClaim: more !== 'nothing else happens',
  async strike(ground) {
    const { mill, desk, struck, runner } = ground
    const { sequelize } = mill
    await sequelize.query('CREATE TABLE IF NOT EXISTS ballast (n INT) ENGINE = InnoDB')
    await sequelize.transaction(async (transaction) => {
      const run = (sql: string) => sequelize.query(sql, { replacements: { id: struck.id }, transaction })
      await run(`INSERT INTO ballast VALUES ${Array.from({ length: 200 }, (_, at) => `(${at})`).join(', ')}`)
      await run('SELECT id FROM threadmill_tool_calls WHERE chat_id = :id FOR UPDATE')
      // The result comes: its transaction locks the chat's row, and then waits for the call's.
      desk.release('rate')
      await runnerWaits(ground)
      if (more === 'its worker is killed') await kill(runner)
      if (more === 'its session is ended') await killSessions(ground)
      await run('UPDATE threadmill_chats SET updated_at = updated_at WHERE id = :id')
    })
    if (more === 'its worker is killed') await ground.startSpare()
    return async () => {}
  },
})

const deadlocked: Case = {
  bug: 'B71',
  right: 'the result and the answer are stored whole, once, and no connection is lost',
  under: [deadlock('nothing else happens')],
  atLength: [deadlock('its worker is killed'), deadlock('its session is ended')],
  async play(ground, strike, fault) {
    const ask = ({ messages }: { readonly messages: readonly { readonly role: string }[] }) =>
      messages.at(-1)?.role === 'tool' ? text('done') : toolCalls([{ name: 'rate', arguments: {} }])
    const model = await ground.model(ask)
    await ground.startRunner()
    for (const round of fault.losesClaim ? [1] : [1, 2, 3]) {
      ground.desk.hold('rate')
      const chat = await ground.chat('clerk')
      await chat.askLater('hi', { enqueue: true })
      await ground.desk.visit('rate', round)
      const end = await strike()
      await end()
      await expectRest(ground, chat)
      expect(await transcriptOf(chat)).to.eql(['U hi', 'A[rate]', 'T(rate) succeeded', 'A done'])
      const visits = ground.desk.of('rate').filter(({ chatId }) => chatId === chat.id)
      expect(new Set(visits.map(({ key }) => key)).size).to.equal(1)
      // Nothing was lost but time where only the statement lost to another one.
      if (!fault.losesClaim) expect([visits.length, (await rowOf(ground.mill, chat)).claimToken]).to.eql([1, 1])
    }
    expect(model.requests).to.have.length(fault.losesClaim ? 2 : 6)
    // As many turns at once as there are connections: one that was lost would hold some up for ever.
    ground.desk.release('rate')
    const more = await Promise.all(Array.from({ length: 10 }, () => ground.chat('clerk')))
    await Promise.all(more.map((chat) => chat.askLater('hi', { enqueue: true })))
    for (const chat of more) await expectRest(ground, chat)
  },
}

/** Somebody else writes for longer than anybody wants to wait. */
const busy: Fault = {
  name: 'another process holds the lock for a second',
  number: 'E170',
  only: 'SQLite',
  losesClaim: false,
  async strike({ bench, mill, struck }) {
    const handle = new SqliteHandle(bench.database.url.slice('sqlite:'.length))
    await until('the lock is held', () => begins(handle))
    const begun = Date.now()
    await until('a second has passed', () => Date.now() - begun > 1_000)
    expect(await mill.models.Message.count({ where: { chatId: struck.id } }), 'readers go on').to.equal(1)
    handle.execute('ROLLBACK', [])
    handle.close()
    return async () => {}
  },
}

const twoWriters: Case = {
  bug: 'B73',
  only: 'SQLite',
  right: 'two runs that write to two chats at once both succeed',
  under: [busy, diesAt('in the middle of its transaction', [insertsMessage])],
  atLength: [
    freezesAt('in the middle of its transaction', [insertsMessage]),
    diesAt('before it commits', [insertsMessage, commits]),
  ],
  async play(ground, strike, fault) {
    const held = gate(text('answered'))
    await ground.model(held)
    const chats = [await ground.chat(), await ground.chat()]
    await ground.startRunner(fault.end)
    if (fault.end === undefined) await ground.startSpare()
    for (const [at, chat] of chats.entries()) await chat.askLater(`question ${at}`, { enqueue: true })
    await ground.bench.model.waitForRequests(2)
    // Both have their answers now.
    held.release()
    const end = await strike()
    await end()
    for (const [at, chat] of chats.entries()) {
      await expectRest(ground, chat)
      expect(await transcriptOf(chat)).to.eql([`U question ${at}`, 'A answered'])
    }
  },
}

/** Renewals of the same moment say the same; one that arrives too late must not. */
const compareAndSet: Case = {
  bug: 'B75',
  right: 'a renewal that changes nothing keeps the claim, and a statement that comes after a takeover changes nothing',
  under: ['silent'],
  atLength: ['slow', 'frozen'],
  async play(ground, strike, fault) {
    const model = await ground.model(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? text('done') : toolCalls([{ name: 'rate', arguments: {} }]),
    )
    const chat = await ground.chat('clerk')
    ground.desk.hold('rate')
    await ground.startRunner()
    await chat.askLater('hi', { enqueue: true })
    const visit = await ground.desk.visit('rate')
    const { claimToken, claimedUntil } = await rowOf(ground.mill, chat)
    const end = await strike()
    if (fault.losesClaim) {
      // The first result is on its way to the database, behind renewals, when the chat is taken over.
      visit.answer('of the first')
      await claimLapsed(ground, chat, claimToken)
      await ground.desk.visit('rate', 2)
    } else {
      const renewed = async () =>
        ((await rowOf(ground.mill, chat)).claimedUntil?.getTime() ?? 0) > (claimedUntil?.getTime() ?? 0) + TTL_MS
      await until('it was renewed past its end', renewed, WAIT_MS)
      expect((await rowOf(ground.mill, chat)).claimToken).to.equal(claimToken)
    }
    await end()
    ground.desk.release('rate')
    await expectRest(ground, chat)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[rate]', 'T(rate) succeeded', 'A done'])
    const result = (await chat.messages())[2]?.content
    expect(result).to.equal('rate done')
    expect(model.requests).to.have.length(2)
    const visits = ground.desk.of('rate')
    expect([visits.length, new Set(visits.map(({ key }) => key)).size]).to.eql([fault.losesClaim ? 2 : 1, 1])
  },
}

playUnderFaults('A transaction', [deadlocked, twoWriters, compareAndSet])
