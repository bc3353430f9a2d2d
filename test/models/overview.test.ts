import { expect } from 'chai'
import { takeChat } from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import { type ChatState, chatStates, chatTotals, databaseClock, failedChats } from '../../models/overview.ts'
import type { ChatRow } from '../../models/rows.ts'
import { readDiagnosis } from '../../src/chat/diagnosis.ts'
import type { Threadmill } from '../../src/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'

const failure = { code: 'error', message: 'no', turn: 1, at: '2026-01-01T00:00:00.000Z' }

onEachDatabase('The statements of an operator', (kind) => {
  const bench = useBench(kind)
  let mill: Threadmill
  let db: Database

  beforeEach(async () => {
    mill = await bench.connect()
    db = insidesOf(mill).db
    await mill.models.Chat.destroy({ where: {} })
  })

  const from = (seconds: number) => new Date(Date.now() + seconds * 1_000)
  async function chat(values: Partial<ChatRow> = {}): Promise<string> {
    const { id } = await mill.chats.create()
    if (Object.keys(values).length > 0) await mill.models.Chat.update(values, { where: { id } })
    return id
  }

  it('count chats as the diagnosis of each says, every state among them', async () => {
    const claimedBy = 'a claim'
    const ids = [
      await chat(),
      await chat({ parked: true }),
      await chat({ parked: true, wantedAt: from(-60) }),
      await chat({ wantedAt: from(-120) }),
      await chat({ wantedAt: from(3_600) }),
      await chat({ wantedAt: from(3_600), putOff: 2 }),
      await chat({ wantedAt: from(-60), putOff: 2 }),
      await chat({ failure }),
      await chat({ failure, wantedAt: from(-60) }),
      await chat({ claimedBy, claimedUntil: from(-60), wantedAt: from(-60) }),
      await chat({ claimedBy, claimedUntil: from(3_600) }),
      await chat({ claimedBy, claimedUntil: from(3_600), failure, wantedAt: from(-999) }),
    ]
    const diagnoses = await Promise.all(ids.map((id) => readDiagnosis(db, id)))
    const counts = Object.fromEntries(chatStates.map((state) => [state, 0])) as Record<ChatState, number>
    for (const { state } of diagnoses) counts[state]++
    const totals = await chatTotals(db)
    expect(totals.chats).to.deep.equal(counts)
    expect(Object.values(counts)).not.to.include(0)
    expect(totals.oldestDueMs).to.be.within(110_000, 180_000)
  })

  it('count nothing in an empty table', async () => {
    const { chats, oldestDueMs } = await chatTotals(db)
    expect(Object.values(chats)).to.deep.equal(chatStates.map(() => 0))
    expect(oldestDueMs).to.equal(null)
  })

  it('find chats that failed and that nobody runs, page by page, by their code', async () => {
    await chat()
    const failed = [
      await chat({ failure }),
      await chat({ failure: { ...failure, code: 'other' } }),
      await chat({ failure }),
    ]
    const running = await chat({ failure })
    await takeChat(db, {
      chatId: running,
      claimId: running,
      ttlMs: 60_000,
      reason: 'verb',
      deathsBelow: null,
      agents: [],
    })
    expect(await failedChats(db, { code: null, after: '', limit: 2 })).to.deep.equal(failed.slice(0, 2))
    expect(await failedChats(db, { code: null, after: failed[1] ?? '', limit: 2 })).to.deep.equal([failed[2]])
    expect(await failedChats(db, { code: 'other', after: '', limit: 9 })).to.deep.equal([failed[1]])
  })

  it('leave out sub-chats that failed: what they were for has its result, and their tools would run for nobody (E93)', async () => {
    const parent = await chat({ failure })
    await chat({ failure, parentId: parent })
    expect(await failedChats(db, { code: null, after: '', limit: 9 })).to.deep.equal([parent])
  })

  it('tell the time of the database', async () => {
    expect((await databaseClock(db)).getTime()).to.be.closeTo(Date.now(), 60_000)
  })

  it('stand behind chat.diagnosis()', async () => {
    const made = await mill.chats.create()
    await made.askLater('help')
    expect((await made.diagnosis()).advice).to.deep.equal({ act: 'enqueue', text: `threadmill enqueue ${made.id}` })
    await mill.jobs.complete.enqueue(made)
    expect(await made.diagnosis()).to.include({ state: 'due', turn: 1 })
  })
})
