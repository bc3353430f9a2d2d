import { expect } from 'chai'
import { NotMigratedError } from '../../src/index.ts'
import { rejectionOf } from '../chat/support/watching.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { extend } from './apps/labelled.ts'
import { agents } from './apps/load.ts'
import { useJobs } from './support/jobs.ts'
import { allAtRest, askAll, loadModel, makeChats, overlapsOf, report } from './support/load.ts'
import { expectWhole } from './support/rows.ts'
import { addStamp, backfill, noteLaterStep, stampStep } from './support/stamp-step.ts'
import { useWorkers } from './support/workers.ts'

const LIMIT_MS = 240_000
const ROUNDS = 2
const BATCH = 10
const isFull = process.env.THREADMILL_FULL === '1'

onEachDatabase('A migration under load', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 60_000, sweepEveryMs: 1_000 })
  const workers = useWorkers()
  const jobs = useJobs(() => bench.redis.url)
  // One file has one writer: fewer processes on SQLite.
  const each = kind.name === 'SQLite' ? 1 : isFull ? 4 : 2
  const sharedMs = isFull && kind.name !== 'SQLite' ? 30_000 : 6_000
  const perSecond = kind.name === 'SQLite' ? 2 : 4

  it(`lets ${each} old and ${each} new workers share the database, loses no turn, and fills its column (E147, E148)`, async () => {
    const model = await bench.script(loadModel({ rounds: ROUNDS, latencyMs: 100 }))
    const mill = await bench.connect({ agents })
    const { sequelize } = mill
    const start = (app: string) =>
      workers.start({ app, options: { ...bench.options(), counts: { complete: 6, runTools: 0 } } })
    const startAll = (app: string) => Promise.all(Array.from({ length: each }, () => start(app)))
    const early = await rejectionOf(bench.connect({ agents, extend }))
    expect(early).to.be.instanceOf(NotMigratedError)
    expect(early).to.have.property('message').that.includes('threadmill_chats.stamp')

    const chats = await makeChats(mill, 2 * perSecond)
    const ask = async (count: number) => {
      const from = chats.length
      chats.push(...(await makeChats(mill, count)))
      await askAll(chats, from, count)
    }
    await startAll('load')
    await askAll(chats, 0, chats.length)
    await model.waitForRequests(perSecond)
    expect(await addStamp(sequelize)).to.include(stampStep)
    await noteLaterStep(sequelize)
    // Old ones go on, and more of them can start on tables that are newer than they are.
    await Promise.all([startAll('labelled'), start('load')])

    const begun = performance.now()
    let filled = 0
    for (let second = 1; performance.now() - begun < sharedMs; second++) {
      await ask(perSecond)
      filled += await backfill(sequelize, BATCH)
      await until('a second has passed', () => performance.now() - begun >= second * 1_000, 60_000)
    }
    await allAtRest(chats, 90_000)
    // The old release goes; what it made meanwhile is filled last.
    for (let more = BATCH; more > 0; filled += more) more = await backfill(sequelize, BATCH)

    const results = { old: 0, new: 0 }
    for (const [at, chat] of chats.entries()) {
      const messages = await chat.messages()
      expect(messages.map(({ role }) => role)).to.eql(['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'])
      expect(messages.at(-1)?.content).to.equal(`answer to chat ${at}`)
      for (const { role, content, outcome } of messages) {
        if (role !== 'tool') continue
        expect(outcome).to.equal('succeeded')
        results[`${content}`.includes('"stamped":"new"') ? 'new' : 'old']++
      }
      await expectWhole(mill, chat)
    }
    report(
      `${chats.length} turns, ${results.old} tools by old workers, ${results.new} by new ones, ${filled} rows filled`,
    )
    expect(Math.min(results.old, results.new)).to.be.greaterThan(0)
    expect(model.requests).to.have.length((ROUNDS + 1) * chats.length)
    expect(overlapsOf(model.requests)).to.eql([])
    expect(await jobs().failed()).to.equal(0)
    const late = await bench.connect({ agents, extend })
    expect(await late.models.Chat.count({ where: { stamp: null } })).to.equal(0)
    expect(await late.models.Chat.count({ where: { stamp: 'new' } })).to.be.greaterThan(0)
  }).timeout(LIMIT_MS)
})
