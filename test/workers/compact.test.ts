import { expect } from 'chai'
import { Redis } from 'ioredis'
import { takeChat } from '../../models/claims.ts'
import { dueChats } from '../../models/sweep.ts'
import { type Chat, defineAgent, type Threadmill } from '../../src/index.ts'
import { gate, httpError, text, toolCalls } from '../../src/testing/index.ts'
import { change, chatRow, roles, usageRows } from '../chat/support/rows.ts'
import { call, freshName, recording } from '../chat/support/tools.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext, insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'

const long = (words: string) => words.padEnd(400, '.')
const summary = 'They talked about numbers.'

onEachDatabase('Compact jobs', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })

  async function chatOf(mill: Threadmill, agent?: { name: string }): Promise<Chat> {
    const chat = await mill.chats.create(agent === undefined ? {} : { agent })
    for (const at of [1, 2]) {
      await chat.addMessage({ role: 'user', content: long(`question ${at}`) })
      await chat.addMessage({ role: 'assistant', content: long(`answer ${at}`) })
    }
    return chat
  }
  const compactAlone = { complete: 0, runTools: 0, compact: 1 }
  const wish = async (mill: Threadmill, chat: Chat) => {
    const { compactAt, compactAttempts } = await chatRow(mill, chat)
    return [compactAt instanceof Date, compactAttempts]
  }
  const summarised = (mill: Threadmill, chat: Chat) =>
    until('the summary is there and the chat given back', async () => {
      const { compactAt, claimedBy } = await chatRow(mill, chat)
      const messages = await chat.messages()
      return compactAt === null && claimedBy === null && messages.some(({ summaryThrough }) => summaryThrough !== null)
    })
  const perform = (mill: Threadmill, chat: Chat) => mill.jobs.compact.perform(chat.id)

  it('summarise in a worker and leave a staged message alone', async () => {
    await bench.script([text(summary)])
    const mill = await bench.connect()
    const chat = await chatOf(mill)
    await chat.askLater('only staged')
    await chat.withTemperature(0.5)
    await mill.jobs.compact.enqueue(chat)
    await mill.startWorkers({ complete: 1, runTools: 0, compact: 1 }).ready()
    await summarised(mill, chat)
    expect(await roles(chat)).to.equal('user assistant user assistant user assistant')
    expect(await chat.isComplete()).to.equal(false)
    expect(bench.model.requests).to.have.length(1)
    expect(bench.model.requests[0]?.body).to.have.property('temperature', 0.5)
    const row = await chatRow(mill, chat)
    expect([row.wantedAt, row.attempts, row.failure]).to.eql([null, 0, null])
  })

  it('and complete jobs of one chat swallow nothing of each other', async () => {
    await bench.script(({ messages }) =>
      text(`${messages.at(-1)?.content}`.startsWith('Summarise') ? summary : 'answer'),
    )
    const mill = await bench.connect()
    const chat = await chatOf(mill)
    await chat.askLater('question')
    await mill.jobs.compact.enqueue(chat.id)
    await mill.jobs.complete.enqueue(chat.id)
    await mill.startWorkers({ complete: 1, runTools: 0, compact: 1 }).ready()
    await summarised(mill, chat)
    await until('the question is answered', () => chat.isComplete())
    expect((await usageRows(mill, chat)).map(({ operation }) => operation).sort()).to.eql(['chat', 'compaction'])
  })

  it('are rung again after everything in Redis was lost', async () => {
    await bench.script([text(summary)])
    const mill = await bench.connect()
    const chat = await chatOf(mill)
    await mill.jobs.compact.enqueue(chat.id)
    const redis = new Redis(bench.redis.url)
    await redis.flushall()
    redis.disconnect()
    await mill.startWorkers(compactAlone).ready()
    await summarised(mill, chat)
  })

  it('ring for a message that was queued while the summary was made', async () => {
    const held = gate(text(summary))
    await bench.script([held, text('answer')])
    const mill = await bench.connect({ sweepEveryMs: 600_000 })
    const chat = await chatOf(mill)
    await mill.startWorkers({ complete: 1, runTools: 0, compact: 1 }).ready()
    await mill.jobs.compact.enqueue(chat.id)
    await held.reached
    await chat.askLater('meanwhile')
    expect(await chat.queuedMessages()).to.have.length(1)
    held.release()
    await until('it is answered', async () => (await chat.messages()).at(-1)?.content === 'answer')
    expect(await roles(chat)).to.equal('user assistant user assistant assistant user assistant')
  })

  it('keep a wish that came while the summary was made', async () => {
    await bench.script([text(summary)])
    const mill = await bench.connect()
    const chat = await chatOf(mill)
    await mill.jobs.compact.enqueue(chat.id)
    beforeNext(mill, 'commitSummary', () => mill.jobs.compact.enqueue(chat.id))
    expect(await perform(mill, chat)).to.equal('done')
    expect(await wish(mill, chat)).to.eql([true, 0])
    // There is nothing new: the second job meets its wish without a request.
    expect(await perform(mill, chat)).to.equal('done')
    expect(await wish(mill, chat)).to.eql([false, 0])
    expect(bench.model.requests).to.have.length(1)
  })

  it('are of no use where nobody wishes for them, or another process runs the chat', async () => {
    const held = gate(text('answer'))
    await bench.script([held])
    const mill = await bench.connect()
    const chat = await chatOf(mill)
    expect(await perform(mill, chat)).to.equal('not wanted')
    const running = chat.ask('question')
    await held.reached
    await mill.jobs.compact.enqueue(chat.id)
    expect(await perform(mill, chat)).to.equal('claimed elsewhere')
    held.release()
    await running
    expect(await wish(mill, chat)).to.eql([true, 0])
  })

  it('try again later what may pass, and give up what will not; the turn has no part in it', async () => {
    await bench.script([httpError(503, 'busy'), text('')])
    const agent = defineAgent({ name: freshName(), retries: 0 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, agent)
    await mill.jobs.compact.enqueue(chat.id)
    expect(await errorFrom(() => perform(mill, chat))).to.have.property('retryable', true)
    expect(await wish(mill, chat)).to.eql([true, 1])
    expect(await perform(mill, chat)).to.equal('not wanted')
    await change(mill.models.Chat, chat.id, { compact_at: new Date(Date.now() - 60_000) })
    expect(await errorFrom(() => perform(mill, chat))).to.have.property('code', 'provider.summary_refused')
    expect(await wish(mill, chat)).to.eql([false, 0])
    expect(await chat.failure()).to.equal(null)
  })

  it('wait for an open round, which goes on waiting for its decision', async () => {
    await bench.script([toolCalls([call('guarded')])])
    const agent = defineAgent({ name: freshName(), tools: [recording('guarded', [], { requiresApproval: true })] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('do it')
    await mill.jobs.compact.enqueue(chat.id)
    expect(await errorFrom(() => perform(mill, chat))).to.have.property('code', 'chat.pending_tool_calls')
    expect(await wish(mill, chat)).to.eql([true, 1])
    expect((await chatRow(mill, chat)).parked).to.equal(true)
  })

  it('are taken over from a process that died, a few times at most', async () => {
    await bench.script([text(summary)])
    const agent = defineAgent({ name: freshName(), attempts: 2 })
    const mill = await bench.connect({ agents: [agent] })
    const { db } = insidesOf(mill)
    const chat = await chatOf(mill, agent)
    const die = async () => {
      const taken = { chatId: chat.id, claimId: chat.id, ttlMs: 60_000, agents: [agent.name] }
      expect(await takeChat(db, { ...taken, reason: 'compact-job', deathsBelow: null })).to.equal(true)
      await change(mill.models.Chat, chat.id, { claimed_until: new Date(Date.now() - 60_000) })
    }
    await mill.jobs.compact.enqueue(chat.id)
    await die()
    expect((await dueChats(db, 100)).filter(({ chatId }) => chatId === chat.id)).to.have.length(1)
    expect(await perform(mill, chat)).to.equal('done')
    await chat.addMessage({ role: 'user', content: 'more' })
    await mill.jobs.compact.enqueue(chat.id)
    await die()
    await die()
    expect(await errorFrom(() => perform(mill, chat))).to.have.property('code', 'chat.attempts_exhausted')
    expect(await wish(mill, chat)).to.eql([false, 0])
    expect((await chatRow(mill, chat)).attempts).to.equal(0)
  })

  it('are withdrawn by a cancel before they begin (S67)', async () => {
    await bench.script([])
    const mill = await bench.connect()
    const chat = await chatOf(mill)
    await mill.jobs.compact.enqueue(chat.id)
    await chat.cancel()
    expect(await perform(mill, chat)).to.equal('not wanted')
    expect(bench.model.requests).to.have.length(0)
  })

  it('are left to a process that has the agent', async () => {
    await bench.script([text(summary)])
    const agent = defineAgent({ name: freshName() })
    const having = await bench.connect({ agents: [agent] })
    const lacking = await bench.connect()
    const chat = await chatOf(having, agent)
    await having.jobs.compact.enqueue(chat.id)
    expect(await perform(lacking, chat)).to.equal('put off')
    expect(await wish(having, chat)).to.eql([true, 0])
    await change(having.models.Chat, chat.id, { compact_at: new Date(Date.now() - 60_000) })
    expect(await perform(having, chat)).to.equal('done')
  })

  it('come after a delay, the earliest wish first, and stand beside wishes for the turn in a sweep', async () => {
    const mill = await bench.connect()
    const { db } = insidesOf(mill)
    const chat = await chatOf(mill)
    const queues = async () =>
      (await dueChats(db, 100)).filter(({ chatId }) => chatId === chat.id).map(({ queue }) => queue)
    await mill.jobs.compact.enqueue(chat.id, { delayMs: 600_000 })
    expect(await queues()).to.eql([])
    await mill.jobs.compact.enqueue(chat.id)
    await mill.jobs.compact.enqueue(chat.id, { delayMs: 600_000 })
    expect(await queues()).to.eql(['compact'])
    await mill.jobs.complete.enqueue(chat.id)
    expect(await queues()).to.have.members(['complete', 'compact'])
    await mill.models.Chat.destroy({ where: { id: chat.id } })
  })
})
