import { expect } from 'chai'
import { v7 as uuid } from 'uuid'
import { takeChat } from '../../models/claims.ts'
import { queuedMessageColumns } from '../../models/columns.ts'
import { userMessage } from '../../models/new-message.ts'
import { unqueueMessage } from '../../models/queue.ts'
import type { QueuedMessageRow } from '../../models/rows.ts'
import { readQueue } from '../../models/transcript.ts'
import { takeQueued } from '../../models/turns.ts'
import { type Chat, defineAgent, type Threadmill } from '../../src/index.ts'
import { gate, text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext, insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'

const agent = defineAgent({ name: 'clerk' })

onEachDatabase('The queue beside a run', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let worker: Threadmill
  let web: Threadmill

  async function both(): Promise<{ run: Chat; seen: Chat }> {
    worker = await bench.connect({ agents: [agent] })
    web = await bench.connect({ agents: [agent] })
    const run = await worker.chats.create({ agent })
    await run.askLater('question')
    return { run, seen: await web.chats.find(run.id) }
  }

  const users = async (chat: Chat) =>
    (await chat.messages()).filter(({ role }) => role === 'user').map(({ content }) => content)

  for (const steer of [true, false]) {
    it(`answers a message (steer: ${steer}) queued after the last look and before the release, before it returns (S28)`, async () => {
      await bench.script([text('first'), text('second')])
      const { run, seen } = await both()
      beforeNext(worker, 'release', () => seen.queue('one more', { steer }))
      expect((await run.complete())?.content).to.equal('second')
      expect(await users(seen)).to.eql(['question', 'one more'])
      expect(await seen.isComplete()).to.equal(true)
      expect(bench.model.requests).to.have.length(2)
    })
  }

  it('answers a steering message queued while the final answer streams, before it returns (S28)', async () => {
    const first = gate(text('first'))
    await bench.script([first, text('second')])
    const { run, seen } = await both()
    const running = run.complete()
    await first.reached
    await seen.queue('one more')
    first.release()
    expect((await running)?.content).to.equal('second')
    expect(await seen.queuedMessages()).to.eql([])
  })

  it('gives each message, and its receipt, either to unqueue or to the transcript, in a thousand races (S29, E70)', async function () {
    this.timeout(180_000)
    worker = await bench.connect({ agents: [agent] })
    web = await bench.connect({ agents: [agent] })
    const { db } = insidesOf(worker)
    const other = insidesOf(web).db
    const lanes = 25
    const rounds = 40
    let unqueued = 0
    const lane = async () => {
      const { id: chatId } = await worker.chats.create({ agent })
      const queue = Array.from({ length: rounds }, (_, position): QueuedMessageRow => {
        const [id, createdAt] = [uuid(), new Date()]
        return {
          id,
          chatId,
          position,
          content: id,
          attachments: null,
          steer: true,
          owner: null,
          ownerKey: null,
          createdAt,
        }
      })
      await db.insert<QueuedMessageRow>(db.tables.queuedMessages, queuedMessageColumns, queue)
      const key = { chatId, claimId: uuid() }
      expect(
        await takeChat(db, { ...key, ttlMs: 60_000, reason: 'verb', deathsBelow: null, agents: ['clerk'] }),
      ).to.equal(true)
      const removed = new Set<string>()
      for (const [at, row] of queue.entries()) {
        const take = () =>
          takeQueued(db, key, {
            queued: [row],
            messages: [userMessage(chatId, uuid(), { content: row.id, attachments: null })],
            startsTurn: false,
          })
        const remove = async () => {
          const act = other.transaction((transaction) => unqueueMessage(other, chatId, row.id, transaction))
          return (await act).removed
        }
        // Whoever is asked first would win too often.
        const [taken, gone] =
          at % 2 === 0
            ? await Promise.all([take(), remove()])
            : await Promise.all([remove(), take()]).then(([first, second]) => [second, first])
        expect(taken, `${row.id} was taken, and unqueued`).to.equal(!gone)
        if (gone) removed.add(row.id)
      }
      const expected = queue.map(({ id }) => id).filter((id) => !removed.has(id))
      expect(await users(await web.chats.find(chatId))).to.eql(expected)
      const receipts = await web.models.Receipt.findAll({ where: { chatId } })
      const settled = new Map(receipts.map((receipt) => [receipt.id, receipt.status]))
      expect(settled).to.eql(new Map(queue.map(({ id }) => [id, removed.has(id) ? 'unqueued' : 'delivered'])))
      expect(await readQueue(db, chatId)).to.eql([])
      unqueued += removed.size
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    expect(unqueued, 'both sides win now and then').to.be.within(1, lanes * rounds - 1)
  })

  it('does so when whole runs race with whole processes that unqueue (S29)', async function () {
    this.timeout(60_000)
    await bench.script(text('answer'))
    worker = await bench.connect({ agents: [agent] })
    web = await bench.connect({ agents: [agent] })
    const race = async () => {
      const run = await worker.chats.create({ agent })
      const seen = await web.chats.find(run.id)
      for (let round = 0; round < 4; round++) {
        const queued = await seen.queue(`message ${round}`, { wake: false })
        const [gone] = await Promise.all([seen.unqueue(queued), run.complete()])
        expect((await users(seen)).includes(`message ${round}`)).to.equal(!gone)
        expect(await seen.unqueue(queued), 'a second time').to.equal(false)
        expect(await seen.isComplete()).to.equal(true)
      }
      const contents = await users(seen)
      expect(new Set(contents).size).to.equal(contents.length)
    }
    await Promise.all(Array.from({ length: 8 }, race))
  })

  it('looks again when a message that it was about to take was unqueued (S29)', async () => {
    await bench.script(text('answer'))
    const { run, seen } = await both()
    const first = await seen.queue('first', { wake: false })
    await seen.queue('second', { wake: false })
    beforeNext(worker, 'takeQueued', async () => {
      expect(await seen.unqueue(first)).to.equal(true)
    })
    await run.complete()
    expect(await users(seen)).to.eql(['question', 'second'])
  })
})
