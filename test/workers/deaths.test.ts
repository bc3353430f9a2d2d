import { expect } from 'chai'
import { Redis } from 'ioredis'
import { takeChat } from '../../models/claims.ts'
import { chatTotals } from '../../models/overview.ts'
import {
  agentTool,
  CancelledError,
  type Chat,
  type ConnectOptions,
  defineAgent,
  QuarantinedError,
  type Threadmill,
} from '../../src/index.ts'
import type { Observation } from '../../src/observability/observation.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { change, chatRow, usageRows } from '../chat/support/rows.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'

const support = defineAgent({ name: 'support' })
const never = () => false

onEachDatabase('A chat that processes died over', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000, sweepEveryMs: 60_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })

  async function connect(options: ConnectOptions = {}) {
    const seen: Observation[] = []
    const mill = await bench.connect({ agents: [support], onObservation: (one) => seen.push(one), ...options })
    const typesOf = (pattern: RegExp) => seen.map(({ type }) => type).filter((type) => pattern.test(type))
    return { mill, seen, typesOf }
  }
  async function asked(mill: Threadmill, deaths: number, agent = 'support'): Promise<Chat> {
    const chat = await mill.chats.create({ agent })
    await chat.askLater('help')
    await mill.jobs.complete.enqueue(chat)
    await change(mill.models.Chat, chat.id, { deaths })
    return chat
  }
  /** As a process does that takes the chat for a job and dies. */
  async function die(mill: Threadmill, chat: Chat, agent = 'support') {
    const { db } = insidesOf(mill)
    const take = { chatId: chat.id, claimId: `${chat.id.slice(0, 30)}-died`, ttlMs: 60_000, agents: [agent] }
    expect(await takeChat(db, { ...take, reason: 'job', deathsBelow: null })).to.equal(true)
    await change(mill.models.Chat, chat.id, { claimed_until: new Date(Date.now() - 60_000) })
  }
  const perform = (mill: Threadmill, chat: Chat) => mill.jobs.complete.perform(chat.id, never)

  it('is taken with all others after the first death, and counts anew once it commits a move (E120)', async () => {
    await bench.script(text('hello'))
    const { mill, typesOf } = await connect()
    const chat = await asked(mill, 0)
    await die(mill, chat)
    expect((await chat.diagnosis()).deaths).to.equal(1)
    expect(await perform(mill, chat)).to.equal('done')
    expect((await chatRow(mill, chat)).deaths).to.equal(0)
    expect(typesOf(/^alone/)).to.eql([])
  })

  it('runs one at a time where there is no process for it, and the next is rung for (E122)', async () => {
    const held = gate(text('hello'))
    await bench.script([held, text('hello'), text('hello')])
    const { mill, seen, typesOf } = await connect()
    const [one, other, healthy] = [await asked(mill, 2), await asked(mill, 3), await asked(mill, 1)]
    const running = perform(mill, one)
    await held.reached
    expect((await one.diagnosis()).why).to.equal(
      'Since 2 processes died over it, one that runs no other such chat runs it.',
    )
    expect(await perform(mill, other)).to.equal('runs alone later')
    expect((await chatRow(mill, other)).wantedAt).to.be.instanceOf(Date)
    expect(await perform(mill, healthy)).to.equal('done')
    const { alone } = await chatTotals(insidesOf(mill).db)
    expect(alone).to.equal(2)
    held.release()
    expect(await running).to.equal('done')
    expect(typesOf(/^alone/)).to.eql(['alone.started', 'alone.ended'])
    expect(seen.find(({ type }) => type === 'alone.started')).to.include({ chatId: one.id, deaths: 2, pid: null })
    await mill.startWorkers({ complete: 1, runTools: 0, compact: 0 }).ready()
    await until('the one that was turned away is answered', () => other.isComplete(), 40_000)
    for (const chat of [one, other]) expect((await chatRow(mill, chat)).deaths).to.equal(0)
  })

  it('keeps its deaths when a run ends without a committed move, and is run by a caller whatever it has cost (E120, E121)', async () => {
    await bench.script(text('hello'))
    const { mill } = await connect({
      agents: [defineAgent({ name: 'support', instructions: () => Promise.reject(new Error('no')) })],
    })
    const chat = await asked(mill, 2)
    expect(await errorFrom(() => perform(mill, chat))).to.be.instanceOf(Error)
    expect(await chatRow(mill, chat)).to.include({ deaths: 2 })
    const { mill: caller } = await connect()
    const deadly = await asked(caller, 4)
    await die(caller, deadly)
    expect((await (await caller.chats.find(deadly.id)).complete())?.content).to.equal('hello')
    expect((await chatRow(caller, deadly)).deaths).to.equal(0)
  })

  it('is set aside after five, unread and untaken, and everybody is told once (E123)', async () => {
    await bench.script(text('never asked'))
    const told: string[] = []
    const agent = defineAgent({
      name: 'support',
      onTurnEnd: (_chat, outcome) => void told.push(outcome.kind === 'failed' ? outcome.failure.code : outcome.kind),
    })
    const statements: string[] = []
    const { mill, seen, typesOf } = await connect({
      agents: [agent],
      observe: { onStatement: (sql) => statements.push(sql) },
    })
    const chat = await asked(mill, 4)
    await die(mill, chat)
    const { claimToken } = await chatRow(mill, chat)
    const { ports } = insidesOf(mill)
    const usage = { id: ports.clock.newId(), chatId: chat.id, owner: null, answerId: null, claimToken } as const
    await ports.rows.openUsage({ ...usage, operation: 'chat', provider: 'openai', model: 'any' })
    expect((await chat.diagnosis()).why).to.include('It is the 5th that died over it.')
    statements.length = 0
    const error = await errorFrom(() => perform(mill, chat))
    expect(error)
      .to.be.instanceOf(QuarantinedError)
      .and.to.include({ code: 'chat.quarantined', retryable: false, chatId: chat.id })
    expect(statements.filter((sql) => /FROM \S*messages/.test(sql) && !/FROM \S*chats/.test(sql))).to.eql([])
    const row = await chatRow(mill, chat)
    expect(row).to.include({ deaths: 5, claimToken, claimedBy: null, wantedAt: null, endedTurn: 1 })
    expect(row.failure).to.include({ code: 'chat.quarantined', message: (error as Error).message, turn: 1 })
    expect((await usageRows(mill, chat)).map(({ status, errorCode }) => [status, errorCode])).to.eql([
      ['failed', 'orphaned'],
    ])
    expect(told).to.eql(['chat.quarantined'])
    expect(typesOf(/quarantined|^turn/)).to.eql(['chat.quarantined', 'turn.ended'])
    expect(seen.find(({ type }) => type === 'chat.quarantined')).to.include({
      chatId: chat.id,
      deaths: 5,
      agent: 'support',
    })
    expect((await chatTotals(insidesOf(mill).db)).setAside).to.equal(1)
    expect(await perform(mill, chat)).to.equal('not wanted')
    expect(bench.model.requests).to.have.length(0)
    const { state, advice } = await chat.diagnosis()
    expect([state, advice.act]).to.eql(['failed', 'retry'])
  })

  it('is run alone once more by whatever lifts that: a message, an enqueue (E125)', async () => {
    await bench.script([text('one'), text('two')])
    const { mill, typesOf } = await connect()
    for (const lift of [
      (chat: Chat) => chat.askLater('again', { enqueue: true }),
      (chat: Chat) => mill.jobs.complete.enqueue(chat),
    ]) {
      const chat = await asked(mill, 5)
      expect(await errorFrom(() => perform(mill, chat))).to.have.property('code', 'chat.quarantined')
      await lift(chat)
      expect(await chatRow(mill, chat)).to.include({ deaths: 2, failure: null })
      const before = typesOf(/^alone.started/).length
      expect(await perform(mill, chat)).to.equal('done')
      expect(typesOf(/^alone.started/)).to.have.length(before + 1)
    }
  })

  it('tells the chat that waits for it, where it is a sub-chat (E123)', async () => {
    const expert = defineAgent({ name: 'expert' })
    const chief = defineAgent({ name: 'chief', tools: [agentTool(expert, { description: 'Asks an expert.' })] })
    await bench.script([toolCalls([{ name: 'expert', arguments: { message: 'how?' } }]), text('nobody knows')])
    const { mill } = await connect({ agents: [chief, expert] })
    const parent = await asked(mill, 0, 'chief')
    expect(await perform(mill, parent)).to.equal('waiting')
    const [sub] = await parent.subChats()
    if (sub === undefined) throw new Error('there is no sub-chat')
    await change(mill.models.Chat, sub.id, { deaths: 4 })
    await die(mill, sub, 'expert')
    expect(await errorFrom(() => perform(mill, sub))).to.be.instanceOf(QuarantinedError)
    expect(await perform(mill, parent)).to.equal('done')
    const result = (await parent.messages()).find(({ role }) => role === 'tool')
    expect(result?.content).to.include('5 processes died over turn 1')
  })

  it('has its cancel carried out where nobody waits for it any longer, though it was set aside (E125, E175)', async () => {
    const expert = defineAgent({ name: 'expert' })
    const chief = defineAgent({ name: 'chief', tools: [agentTool(expert, { description: 'Asks an expert.' })] })
    await bench.script([toolCalls([{ name: 'expert', arguments: { message: 'how?' } }])])
    const { mill } = await connect({ agents: [chief, expert] })
    const parent = await asked(mill, 0, 'chief')
    expect(await perform(mill, parent)).to.equal('waiting')
    const [sub] = await parent.subChats()
    if (sub === undefined) throw new Error('there is no sub-chat')
    await change(mill.models.Chat, sub.id, { deaths: 5 })
    expect(await errorFrom(() => perform(mill, sub))).to.be.instanceOf(QuarantinedError)
    await parent.cancel()
    expect(await chatRow(mill, sub)).to.include({ deaths: 2, failure: null })
    expect(await errorFrom(() => perform(mill, sub))).to.be.instanceOf(CancelledError)
    expect(await chatRow(mill, sub)).to.include({ deaths: 0, cancelledTurn: 1, wantedAt: null, failure: null })
  })

  it('is not summarised either, and its summaries count as its turns do (E123)', async () => {
    await bench.script(text('A summary.'))
    const { mill, typesOf } = await connect()
    const chat = await mill.chats.create({ agent: support })
    for (const role of ['user', 'assistant'] as const) await chat.addMessage({ role, content: 'words '.repeat(100) })
    await mill.jobs.compact.enqueue(chat.id)
    await change(mill.models.Chat, chat.id, { deaths: 5 })
    expect(await errorFrom(() => mill.jobs.compact.perform(chat.id))).to.be.instanceOf(QuarantinedError)
    expect(await chatRow(mill, chat)).to.include({ compactAt: null, claimToken: 0 })
    expect(await mill.jobs.compact.perform(chat.id)).to.equal('not wanted')
    await mill.jobs.compact.enqueue(chat.id)
    await change(mill.models.Chat, chat.id, { deaths: 2, failure: null })
    expect(await mill.jobs.compact.perform(chat.id)).to.equal('done')
    expect(typesOf(/^alone/)).to.eql(['alone.started', 'alone.ended'])
    expect((await chatRow(mill, chat)).deaths).to.equal(0)
  })

  it('loses nothing to agents that are missing: they come first (R26, E121)', async () => {
    const { mill } = await connect()
    const chat = await asked(mill, 5)
    const { mill: without } = await connect({ agents: [defineAgent({ name: 'sales' })] })
    expect(await perform(without, chat)).to.equal('put off')
    expect(await chat.failure()).to.equal(null)
  })

  it('has no process of its own by a file that is none, nor beside a client that only this process has (E121)', async () => {
    const { mill } = await connect()
    expect(() => mill.startWorkers({ isolate: { app: 'nowhere.ts' } })).to.throw(
      /isolate: \{ app \}.*no file .*nowhere\.ts/,
    )
    const redis = new Redis(bench.redis.url, { maxRetriesPerRequest: null })
    const { mill: own } = await connect({ redis, redisUrl: undefined })
    const isolate = { app: import.meta.filename }
    expect(() => own.startWorkers({ isolate })).to.throw(/set isolate\.redisUrl/)
    const none = { complete: 0, runTools: 0, compact: 0 }
    expect(own.startWorkers({ ...none, isolate: { ...isolate, redisUrl: bench.redis.url } }).state).to.be.a('string')
    await own.close()
    redis.disconnect()
  })
})
