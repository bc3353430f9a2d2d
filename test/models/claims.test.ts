import { expect } from 'chai'
import {
  cancelledAmong,
  type FenceOptions,
  fence,
  type Release,
  readUntaken,
  releaseChat,
  renewChatClaim,
  renewToolCallClaim,
  type TakeOptions,
  takeChat,
} from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import { lookAtChat } from '../../models/transcript.ts'
import { startToolCall } from '../../models/turns.ts'
import { type Chat, ChatNotFoundError, ClaimLostError, defineAgent, type Threadmill } from '../../src/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'

const support = defineAgent({ name: 'support' })
const sales = defineAgent({ name: 'sales' })
const ttlMs = 30_000

onEachDatabase('The statements of a claim', (kind) => {
  const bench = useBench(kind, { sweepEveryMs: 60_000 })
  let mill: Threadmill
  let db: Database
  /** A second process's connection. */
  let other: Database
  let chat: Chat

  beforeEach(async () => {
    mill = await bench.connect({ agents: [support, sales] })
    db = insidesOf(mill).db
    other = insidesOf(await bench.connect()).db
    chat = await mill.chats.create()
  })

  const take = (database: Database, claimId: string, options: Partial<TakeOptions> = {}) =>
    takeChat(database, {
      chatId: chat.id,
      claimId,
      ttlMs,
      reason: 'verb',
      agents: ['support', 'sales'],
      deathsBelow: null,
      ...options,
    })
  const proves = (database: Database, claimId: string, options?: FenceOptions) =>
    database.transaction((transaction) => fence(database, transaction, { chatId: chat.id, claimId }, options))
  const release = (database: Database, claimId: string, options: Partial<Release> = {}) =>
    releaseChat(database, {
      chatId: chat.id,
      claimId,
      seen: 0,
      wish: { kind: 'none' },
      parked: false,
      failure: null,
      turnEnded: false,
      ...options,
    })
  const row = async () => {
    const look = await lookAtChat(db, chat.id)
    if (look === null) throw new Error('The chat is gone')
    return look
  }
  const untilLapsed = () => until('the claim lapses', async () => !(await row()).claimed)

  describe('take', () => {
    it('gives a chat to one of twenty that race for it over two connections (R12)', async () => {
      for (let round = 1; round <= 5; round++) {
        const racers = Array.from({ length: 20 }, (_, at) => `racer ${round}.${at}`)
        const won = await Promise.all(racers.map((claimId, at) => take(at % 2 === 0 ? db : other, claimId)))
        expect(won.filter(Boolean)).to.have.length(1)
        const { chat: taken, claimed } = await row()
        expect(claimed).to.equal(true)
        expect(taken.claimedBy).to.equal(racers[won.indexOf(true)])
        expect(taken.claimToken).to.equal(round)
        expect(await release(db, taken.claimedBy ?? '')).to.equal(true)
      }
    })

    it('lets a job take only a chat whose wish is due, and a caller any (R12)', async () => {
      expect(await take(db, 'job', { reason: 'job' }), 'nobody wants it').to.equal(false)
      expect((await readUntaken(db, chat.id))?.dueForMs).to.equal(null)
      await mill.jobs.complete.enqueue(chat.id, { delayMs: 60_000 })
      expect(await take(db, 'job', { reason: 'job' }), 'wanted in a minute').to.equal(false)
      expect((await readUntaken(db, chat.id))?.dueForMs).to.be.within(-60_000, -1)
      await mill.jobs.complete.enqueue(chat.id)
      expect(await take(db, 'job', { reason: 'job' }), 'wanted now').to.equal(true)
      expect((await row()).chat.attempts).to.equal(1)
      await release(db, 'job', { seen: (await row()).chat.wantedSeq })
      expect(await take(db, 'verb'), 'a caller').to.equal(true)
    })

    it('sets a wish where a caller completes, and counts its attempts anew', async () => {
      await take(db, 'first')
      await release(db, 'first', { wish: { kind: 'later', delayMs: 60_000 } })
      await take(db, 'second')
      expect((await row()).chat).to.include({ attempts: 2, wantedSeq: 0 })
      await release(db, 'second', { wish: { kind: 'later', delayMs: 60_000 } })
      await take(db, 'third', { reason: 'complete' })
      const { chat: taken, due } = await row()
      expect(taken).to.include({ attempts: 1, wantedSeq: 1 })
      expect(due).to.equal(true)
    })

    it('takes no chat of an agent that the process lacks, and any chat without an agent (R26)', async () => {
      chat = await mill.chats.create({ agent: support })
      expect(await take(db, 'stranger', { agents: ['sales'] })).to.equal(false)
      expect(await take(db, 'nobody', { agents: [] })).to.equal(false)
      expect((await row()).chat).to.include({ claimToken: 0, attempts: 0, claimedBy: null })
      expect(await readUntaken(db, chat.id)).to.include({ agent: 'support', claimed: false })
      expect(await take(db, 'colleague', { agents: ['sales', 'support'] })).to.equal(true)
      chat = await mill.chats.create()
      expect(await take(db, 'anyone', { agents: [] })).to.equal(true)
    })

    it('takes a chat whose claim lapsed, without anyone cleaning up (S3)', async () => {
      await take(db, 'dead', { ttlMs: 1_000 })
      expect((await readUntaken(db, chat.id))?.claimed).to.equal(true)
      await untilLapsed()
      expect(await take(other, 'heir')).to.equal(true)
      expect((await row()).chat.claimToken).to.equal(2)
    })

    it('takes no chat that is not there', async () => {
      expect(await take(db, 'claim', { chatId: 'no such chat' })).to.equal(false)
      expect(await readUntaken(db, 'no such chat')).to.equal(null)
    })
  })

  describe('fence', () => {
    it('passes the holder alone, and reserves positions for it (R16)', async () => {
      await take(db, 'holder')
      expect(await proves(db, 'holder', { messages: 3 })).to.equal(true)
      expect(await proves(db, 'holder'), 'no position: no value changes, the row counts all the same').to.equal(true)
      expect((await row()).chat.nextPosition).to.equal(3)
      expect(await errorFrom(() => proves(other, 'stranger', { messages: 1 }))).to.be.instanceOf(ClaimLostError)
      expect((await row()).chat.nextPosition).to.equal(3)
    })

    it('refuses a claim that lapsed although nobody took the chat (R11)', async () => {
      await take(db, 'slow', { ttlMs: 50 })
      await untilLapsed()
      expect(await errorFrom(() => proves(db, 'slow'))).to.be.instanceOf(ClaimLostError)
      expect((await row()).chat.claimedBy).to.equal('slow')
    })

    it('refuses a claim that lapsed while the statement waited for the row, and so do renewal and release (R11)', async () => {
      const key = { chatId: chat.id, claimId: 'waiting' }
      const renewing = insidesOf(await bench.connect()).db
      await take(db, 'waiting', { ttlMs: 1_000 })
      let written: Promise<unknown>[] = []
      await other.transaction(async (transaction) => {
        await lookAtChat(other, chat.id, transaction)
        written = [
          errorFrom(() => proves(db, 'waiting')),
          renewChatClaim(renewing, key, ttlMs),
          release(renewing, 'waiting'),
        ]
        await untilLapsed()
      })
      const [proof, ...others] = await Promise.all(written)
      expect(proof).to.be.instanceOf(ClaimLostError)
      expect(others).to.eql([false, false])
      expect((await row()).claimed).to.equal(false)
    })

    it('refuses one whose chat was taken over, and one that gave it back', async () => {
      await take(db, 'frozen', { ttlMs: 50 })
      await untilLapsed()
      await take(other, 'heir')
      expect(await errorFrom(() => proves(db, 'frozen'))).to.be.instanceOf(ClaimLostError)
      await release(other, 'heir')
      expect(await errorFrom(() => proves(other, 'heir'))).to.be.instanceOf(ClaimLostError)
    })

    it('says so when the chat is gone (S31)', async () => {
      await take(db, 'holder')
      await mill.models.Chat.destroy({ where: { id: chat.id } })
      expect(await errorFrom(() => proves(db, 'holder'))).to.be.instanceOf(ChatNotFoundError)
    })

    it('tells a holder that asks of a cancel of its turn, and of no other turn', async () => {
      await chat.askLater('question')
      await take(db, 'holder', { reason: 'complete' })
      expect(await proves(db, 'holder', { unlessCancelled: true })).to.equal(true)
      await chat.cancel()
      expect(await proves(db, 'holder', { messages: 1, unlessCancelled: true })).to.equal(false)
      expect((await row()).chat.nextPosition, 'nothing is reserved').to.equal(1)
      expect(await proves(db, 'holder'), 'one that does not ask').to.equal(true)
      expect(await cancelledAmong(db, ['no such chat', chat.id])).to.eql([chat.id])
      await proves(db, 'holder', { also: 'turn = turn + 1' })
      expect(await proves(db, 'holder', { unlessCancelled: true })).to.equal(true)
      expect(await cancelledAmong(db, [chat.id])).to.eql([])
      expect(await cancelledAmong(db, [])).to.eql([])
    })

    it('keeps the chat row for the whole transaction, so that nothing comes between', async () => {
      await take(db, 'holder')
      const order: string[] = []
      let queued: Promise<unknown> = Promise.resolve()
      await db.transaction(async (transaction) => {
        await fence(db, transaction, { chatId: chat.id, claimId: 'holder' })
        queued = chat.queue('later').then(() => order.push('queued'))
        for (let reads = 0; reads < 5; reads++) await lookAtChat(db, chat.id, transaction)
        order.push('commits')
      })
      await queued
      expect(order).to.eql(['commits', 'queued'])
    })
  })

  describe('renewal', () => {
    it('counts as good when it writes the value that is there already (R16)', async () => {
      const holders = Array.from({ length: 40 }, () =>
        renewChatClaim(db, { chatId: chat.id, claimId: 'holder' }, ttlMs),
      )
      expect(await Promise.all(holders), 'no claim yet').to.not.include(true)
      await take(db, 'holder')
      const key = { chatId: chat.id, claimId: 'holder' }
      const renewals = await Promise.all(
        Array.from({ length: 40 }, (_, at) => renewChatClaim(at % 2 ? db : other, key, ttlMs)),
      )
      expect(renewals).to.not.include(false)
    })

    it('moves the end of a live claim, and never brings back one that lapsed (R11)', async () => {
      await take(db, 'holder', { ttlMs: 5_000 })
      const before = (await row()).chat.claimedUntil?.getTime() ?? 0
      expect(await renewChatClaim(other, { chatId: chat.id, claimId: 'stranger' }, ttlMs)).to.equal(false)
      expect(await renewChatClaim(db, { chatId: chat.id, claimId: 'holder' }, ttlMs)).to.equal(true)
      expect((await row()).chat.claimedUntil?.getTime()).to.be.greaterThan(before + 20_000)
      await renewChatClaim(db, { chatId: chat.id, claimId: 'holder' }, 50)
      await untilLapsed()
      expect(await renewChatClaim(db, { chatId: chat.id, claimId: 'holder' }, ttlMs)).to.equal(false)
      expect((await row()).claimed).to.equal(false)
    })

    it('moves the claim of a call that runs, not of one that has lapsed, is another’s or is answered', async () => {
      await chat.addMessage({ role: 'assistant', toolCalls: [{ id: `call of ${chat.id}`, name: 'search' }] })
      const call = async () => {
        const [found] = await mill.models.ToolCall.findAll({ where: { chatId: chat.id } })
        if (found === undefined) throw new Error('There is no call')
        return found
      }
      const { id } = await call()
      await take(db, 'holder')
      await startToolCall(db, { chatId: chat.id, claimId: 'holder' }, { id, approval: null, ttlMs: 5_000 })
      const ends = async () => (await call()).claimedUntil?.getTime() ?? 0
      const begun = await ends()
      await renewToolCallClaim(other, id, 'stranger', ttlMs)
      expect(await ends()).to.equal(begun)
      await renewToolCallClaim(db, id, 'holder', ttlMs)
      expect(await ends()).to.be.greaterThan(begun + 20_000)
      await renewToolCallClaim(db, id, 'holder', 10)
      await until('the call’s claim lapses', async () => !(await call()).running())
      const lapsed = await ends()
      await renewToolCallClaim(db, id, 'holder', ttlMs)
      expect(await ends()).to.equal(lapsed)
    })
  })

  describe('release', () => {
    it('clears the wish that the run saw, and keeps one that came after its last look (R19)', async () => {
      await mill.jobs.complete.enqueue(chat.id)
      await take(db, 'first', { reason: 'job' })
      const seen = (await row()).chat.wantedSeq
      await release(db, 'first', { seen })
      expect((await row()).chat.wantedAt).to.equal(null)

      await mill.jobs.complete.enqueue(chat.id)
      await take(db, 'second', { reason: 'job' })
      const stale = (await row()).chat.wantedSeq
      await chat.queue('one more thing')
      await release(db, 'second', { seen: stale, failure: { code: 'x', message: 'x', turn: 1, at: 'then' } })
      const { chat: kept, due, claimed } = await row()
      expect({ due, claimed, failure: kept.failure }).to.eql({ due: true, claimed: false, failure: null })
    })

    it('keeps a cancel that came after its last look, and drops one that it saw', async () => {
      await chat.askLater('question', { enqueue: true })
      await take(db, 'first', { reason: 'job' })
      const seen = (await row()).chat.wantedSeq
      await chat.cancel()
      await release(db, 'first', { seen })
      const { chat: kept, due } = await row()
      expect(kept.cancelTurn).to.equal(kept.turn)
      expect(due, 'and somebody has to settle it').to.equal(true)

      await take(db, 'second', { reason: 'job' })
      await release(db, 'second', { seen: (await row()).chat.wantedSeq })
      expect((await row()).chat).to.include({ cancelTurn: null, wantedAt: null })
    })

    it('writes what comes next: now, later, put off, parked, failed', async () => {
      const ended = async (options: Partial<Release>) => {
        await take(db, 'claim')
        expect(await release(db, 'claim', options)).to.equal(true)
        return row()
      }
      const failure = { code: 'provider.failed', message: 'it failed', turn: 3, at: '2026-01-01T00:00:00.000Z' }
      const now = await ended({ wish: { kind: 'now', queue: 'runTools' } })
      expect(now.due).to.equal(true)
      expect(now.chat.wantedQueue).to.equal('runTools')
      const later = await ended({ wish: { kind: 'later', delayMs: 60_000 } })
      expect(later.due).to.equal(false)
      expect(later.chat.wantedAt).to.be.instanceOf(Date)
      expect(later.chat).to.include({ attempts: 1, wantedQueue: null, putOff: 0 })
      expect((await ended({ wish: { kind: 'later', delayMs: 60_000 } })).chat.attempts).to.equal(2)
      expect((await ended({ wish: { kind: 'put-off', delayMs: 60_000 } })).chat).to.include({ attempts: 0, putOff: 1 })
      expect((await ended({ wish: { kind: 'put-off', delayMs: 60_000 } })).chat.putOff).to.equal(2)
      const parked = await ended({ parked: true })
      expect(parked.chat).to.include({ parked: true, wantedAt: null, putOff: 0 })
      const failed = await ended({ failure })
      expect(failed.chat.failure).to.eql(failure)
      expect(failed.chat).to.include({ parked: false, claimedBy: null, claimedUntil: null })
    })

    it('changes nothing for one that no longer holds the chat', async () => {
      await take(db, 'slow', { ttlMs: 50 })
      await untilLapsed()
      expect(await release(db, 'slow', { parked: true }), 'lapsed').to.equal(false)
      await take(other, 'heir')
      expect(await release(db, 'slow', { parked: true }), 'taken over').to.equal(false)
      expect((await row()).chat).to.include({ claimedBy: 'heir', parked: false })
      expect(await release(other, 'heir')).to.equal(true)
      expect(await release(other, 'heir'), 'given back').to.equal(false)
    })

    it('loses no wish in a race with those who wish, over two connections', async () => {
      for (let round = 0; round < 30; round++) {
        const claimId = `round ${round}`
        await take(db, claimId)
        const seen = (await row()).chat.wantedSeq
        await Promise.all([release(other, claimId, { seen }), chat.queue('more')])
        const { due, claimed } = await row()
        expect({ due, claimed }).to.eql({ due: true, claimed: false })
      }
    })
  })
})
