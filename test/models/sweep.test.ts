import { expect } from 'chai'
import { readBacklog } from '../../models/backlog.ts'
import { takeChat } from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import { dueChats, failUntaken, keepPutOffShort, liftPutOff, msToNextLapse, putOff } from '../../models/sweep.ts'
import { lookAtChat } from '../../models/transcript.ts'
import { defineAgent, type Threadmill } from '../../src/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const support = defineAgent({ name: 'support' })
const sales = defineAgent({ name: 'sales' })
const code = 'configuration.missing_agent'
const failure = { code, message: 'nobody has it', turn: 1, at: '2026-01-01T00:00:00.000Z' }

onEachDatabase('The statements of the sweeper', (kind) => {
  const bench = useBench(kind, { sweepEveryMs: 60_000 })
  let mill: Threadmill
  let db: Database

  beforeEach(async () => {
    mill = await bench.connect({ agents: [support, sales] })
    db = insidesOf(mill).db
    await mill.models.Chat.destroy({ where: {} })
  })

  const wanted = async (agent?: typeof support) => {
    const chat = await mill.chats.create(agent === undefined ? {} : { agent })
    await mill.jobs.complete.enqueue(chat.id)
    return chat.id
  }
  const take = (chatId: string, ttlMs: number) =>
    takeChat(db, { chatId, claimId: chatId, ttlMs, reason: 'job', deathsBelow: null, agents: ['support', 'sales'] })
  const due = async (limit = 100) => (await dueChats(db, limit)).map(({ chatId }) => chatId)
  const row = async (chatId: string) => {
    const look = await lookAtChat(db, chatId)
    if (look === null) throw new Error('The chat is gone')
    return look
  }

  it('finds chats that are wanted, due, unclaimed and not failed, and no others (R24)', async () => {
    const idle = await mill.chats.create()
    await idle.askLater('only staged')
    const later = await mill.chats.create()
    await mill.jobs.complete.enqueue(later.id, { delayMs: 60_000 })
    const failed = await wanted()
    await failUntaken(db, failed, failure)
    const claimed = await wanted()
    await take(claimed, 60_000)
    const found = await wanted()
    expect(await dueChats(db, 100)).to.eql([{ chatId: found, claimToken: 0, queue: 'complete' }])
  })

  it('counts what waits, for whom and for how long, in one statement that reads no whole table', async () => {
    const idle = await mill.chats.create()
    await mill.jobs.complete.enqueue((await mill.chats.create()).id, { delayMs: 60_000 })
    await failUntaken(db, await wanted(), failure)
    await take(await wanted(), 60_000)
    expect(await readBacklog(db)).to.eql({ due: 0, oldestDueMs: 0, parked: 0, failed: 1 })
    await wanted()
    const old = await wanted()
    await mill.models.Chat.update({ wantedAt: new Date(Date.now() - 90_000) }, { where: { id: old } })
    await mill.models.Chat.update({ parked: true }, { where: { id: idle.id } })
    const statements: string[] = []
    const counted = insidesOf(await bench.connect({ observe: { onStatement: (sql) => statements.push(sql) } })).db
    statements.length = 0
    const seen = await readBacklog(counted)
    expect(seen).to.include({ due: 2, parked: 1, failed: 1 })
    expect(seen.oldestDueMs).to.be.within(85_000, 200_000)
    expect(statements).to.have.length(1)
    const plan = JSON.stringify(
      await db.read(`${kind.name === 'SQLite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'} ${statements[0]}`, {}),
    )
    for (const index of ['wanted', 'parked', 'has_failed']) expect(plan).to.contain(`threadmill_chats_${index}`)
  })

  it('finds a chat again once the claim of a dead process lapsed, under the token of that claim', async () => {
    const chatId = await wanted()
    await take(chatId, 50)
    await until('its claim lapses', async () => (await due()).length > 0)
    expect(await dueChats(db, 100)).to.eql([{ chatId, claimToken: 1, queue: 'complete' }])
  })

  it('tells when the next claim of a chat that is wanted lapses, a summary’s too, and of no other (E140)', async () => {
    expect(await msToNextLapse(db)).to.equal(null)
    await wanted()
    const byHand = await mill.chats.create()
    await takeChat(db, {
      chatId: byHand.id,
      claimId: byHand.id,
      ttlMs: 10_000,
      reason: 'verb',
      agents: [],
      deathsBelow: null,
    })
    expect(await msToNextLapse(db)).to.equal(null)
    await take(await wanted(), 60_000)
    expect(await msToNextLapse(db)).to.be.within(50_000, 60_000)
    const summed = await mill.chats.create()
    await mill.jobs.compact.enqueue(summed.id)
    await takeChat(db, {
      chatId: summed.id,
      claimId: summed.id,
      ttlMs: 40_000,
      reason: 'compact-job',
      agents: [],
      deathsBelow: null,
    })
    expect(await msToNextLapse(db)).to.be.within(30_000, 40_000)
    await take(await wanted(), 20_000)
    expect(await msToNextLapse(db)).to.be.within(10_000, 20_000)
    const brief = await wanted()
    await take(brief, 100)
    await until('that one has lapsed', async () => (await due()).includes(brief))
    expect(await msToNextLapse(db)).to.be.within(1_000, 20_000)
  })

  it('finds those first that have been due for longest, up to its limit, each for its queue', async () => {
    const ids: string[] = []
    for (const queue of ['complete', 'runTools', 'complete'] as const) {
      const chat = await mill.chats.create()
      await mill.jobs[queue].enqueue(chat.id)
      const since = (await row(chat.id)).chat.wantedAt?.getTime() ?? 0
      await until('the clock moves on', () => Date.now() > since + 2)
      ids.push(chat.id)
    }
    expect(await due()).to.eql(ids)
    expect(await due(2)).to.eql(ids.slice(0, 2))
    expect((await dueChats(db, 9)).map(({ queue }) => queue)).to.eql(['complete', 'runTools', 'complete'])
  })

  it('puts off a chat that is due, once for all workers that find it, and counts it (R26)', async () => {
    const chatId = await wanted()
    await Promise.all(Array.from({ length: 10 }, () => putOff(db, chatId, 60_000)))
    expect((await row(chatId)).chat.putOff).to.equal(1)
    expect(await due()).to.eql([])
    expect((await row(chatId)).chat.wantedAt?.getTime()).to.be.greaterThan(Date.now() + 50_000)
  })

  it('puts off neither a chat that was taken meanwhile nor one that nobody wants', async () => {
    const chatId = await wanted()
    await take(chatId, 60_000)
    await putOff(db, chatId, 60_000)
    expect((await row(chatId)).due).to.equal(true)
    const idle = await mill.chats.create()
    await putOff(db, idle.id, 60_000)
    expect((await row(idle.id)).chat).to.include({ putOff: 0, wantedAt: null })
  })

  it('fails a chat that nobody can run, but none that was taken or is not wanted', async () => {
    const chatId = await wanted()
    expect(await failUntaken(db, chatId, failure)).to.equal(true)
    expect((await row(chatId)).chat).to.deep.include({ failure, wantedAt: null, putOff: 0 })
    expect(await failUntaken(db, chatId, failure), 'again').to.equal(false)
    const taken = await wanted()
    await take(taken, 60_000)
    expect(await failUntaken(db, taken, failure)).to.equal(false)
    const idle = await mill.chats.create()
    expect(await failUntaken(db, idle.id, failure)).to.equal(false)
    expect(await idle.failure()).to.equal(null)
  })

  it('counts put-offs anew while a process has the agent, so that the wrong workers never fail the chat (R26)', async () => {
    const chatId = await wanted(sales)
    const twice = async () => {
      await putOff(db, chatId, 60_000)
      await db.write(`UPDATE ${db.tables.chats} SET put_off = 20 WHERE id = $chatId`, { chatId })
    }
    await twice()
    expect(await keepPutOffShort(db, ['support'])).to.equal(0)
    expect((await row(chatId)).chat.putOff).to.equal(20)
    expect(await keepPutOffShort(db, ['support', 'sales'])).to.equal(1)
    expect((await row(chatId)).chat.putOff).to.equal(1)
  })

  it('wants again what was put off or failed for want of these agents, and nothing else (R26)', async () => {
    const delayed = await wanted(support)
    await putOff(db, delayed, 60_000)
    const failed = await wanted(support)
    await failUntaken(db, failed, failure)
    const strangers = await wanted(sales)
    await putOff(db, strangers, 60_000)
    const broken = await wanted(support)
    await failUntaken(db, broken, { ...failure, code: 'provider.authentication' })
    const idle = await mill.chats.create({ agent: support })

    expect(await liftPutOff(db, [], code)).to.equal(0)
    expect(await liftPutOff(db, ['support', 'nobody’s'], code)).to.equal(2)
    expect(await due()).to.have.members([delayed, failed])
    for (const chatId of [delayed, failed]) {
      expect((await row(chatId)).chat).to.deep.include({ failure: null, putOff: 0 })
    }
    expect((await row(strangers)).chat.putOff).to.equal(1)
    expect((await row(broken)).chat.failure?.code).to.equal('provider.authentication')
    expect((await row(idle.id)).chat.wantedAt).to.equal(null)
    expect(await liftPutOff(db, ['support'], code), 'once').to.equal(0)
  })
})
