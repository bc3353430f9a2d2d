import { expect } from 'chai'
import { DatabaseError } from 'sequelize'
import { isDiskFull } from '../../config/full-disk.ts'
import { defineAgent } from '../../src/index.ts'
import { isRetryable } from '../../src/loop/ending.ts'
import { aroundStatements } from '../../src/testing/crashes/statements.ts'
import { text } from '../../src/testing/index.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { chatRow, makeDue } from './support/rows.ts'
import { freshName } from './support/tools.ts'

const unlimited = 4_294_967_294

describe('A database without room', () => {
  const bench = useBench(sqlite, { claimTtlMs: 30_000 })
  const wrapped = (driver: object) => new DatabaseError(Object.assign(new Error('x'), { sql: '' }, driver))

  it('is known by what the driver says, and only where the error is the database’s (E68)', () => {
    for (const driver of [{ code: 'SQLITE_FULL' }, { errno: 1021 }, { code: 'ER_RECORD_FILE_FULL' }]) {
      expect([isDiskFull(wrapped(driver)), isRetryable(wrapped(driver))]).to.eql([true, true])
    }
    expect(isDiskFull(wrapped({ code: 'SQLITE_CONSTRAINT' }))).to.equal(false)
    expect(isRetryable(Object.assign(new Error('a tool’s'), { code: 'SQLITE_FULL' }))).to.equal(false)
  })

  it('fails no turn whose answer finds none: it is tried again (E68)', async () => {
    await bench.script(text('long '.repeat(4_000), { chunks: 4 }))
    const agent = defineAgent({ name: freshName(), retries: 0 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Tell me all')
    let pages = 1
    // The limit is one of each connection.
    aroundStatements(mill.sequelize, async ({ connection }, send) => {
      ;(connection as { run(sql: string): unknown }).run(`PRAGMA max_page_count = ${pages}`)
      return send()
    })
    const pool = mill.startWorkers()
    await mill.jobs.complete.enqueue(chat)
    await until('the run has ended', async () => {
      const { claimedBy, claimToken } = await chatRow(mill, chat)
      return claimedBy === null && claimToken > 0
    })
    expect((await chat.messages()).map(({ role }) => role)).to.deep.equal(['user'])
    expect(await chat.failure()).to.equal(null)
    expect((await chatRow(mill, chat)).wantedAt).to.not.equal(null)
    pages = unlimited
    await makeDue(mill, chat)
    await until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    await pool.close()
  }).timeout(40_000)
})
