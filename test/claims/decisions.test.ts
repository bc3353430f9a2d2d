import { expect } from 'chai'
import { Redis } from 'ioredis'
import * as z from 'zod'
import { type Chat, defineAgent, defineTool, type Threadmill, ToolCallRunningError } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext, insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'

onEachDatabase('Decisions beside a run', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let ran: string[] = []
  let finish = deferred<string>()
  const guarded = defineTool({
    name: 'guarded',
    description: 'Needs a decision.',
    parameters: z.object({}),
    requiresApproval: true,
    execute: () => {
      ran.push('guarded')
      return 'guarded result'
    },
  })
  const slow = defineTool({
    name: 'slow',
    description: 'Takes as long as the test says.',
    parameters: z.object({}),
    requiresApproval: true,
    execute: () => {
      ran.push('slow')
      return finish.promise
    },
  })
  const free = defineTool({
    name: 'free',
    description: 'Asks nobody.',
    parameters: z.object({}),
    execute: () => {
      ran.push('free')
      return finish.promise
    },
  })
  const broken = defineTool({
    name: 'broken',
    description: 'Fails.',
    parameters: z.object({}),
    execute: () => {
      throw new TypeError('a bug')
    },
  })
  const agent = defineAgent({ name: 'clerk', tools: [guarded, slow, free, broken] })
  let worker: Threadmill
  let web: Threadmill

  beforeEach(() => {
    ran = []
    finish = deferred<string>()
  })
  afterEach(() => finish.resolve('over'))

  /** A chat whose next answer calls these tools, as the worker and as the web process see it. */
  async function chatThatCalls(...names: string[]): Promise<{ run: Chat; seen: Chat }> {
    await bench.script([toolCalls(names.map((name) => ({ name, arguments: {} }))), text('answer')])
    worker = await bench.connect({ agents: [agent] })
    web = await bench.connect({ agents: [agent] })
    const run = await worker.chats.create({ agent })
    await run.askLater('question')
    return { run, seen: await web.chats.find(run.id) }
  }

  async function parked(name: string): Promise<{ run: Chat; seen: Chat; call: string }> {
    const { run, seen } = await chatThatCalls(name)
    await run.complete()
    return { run, seen, call: await callOf(seen, name) }
  }

  async function callOf(chat: Chat, name: string): Promise<string> {
    const [call] = await web.models.ToolCall.findAll({ where: { chatId: chat.id, name } })
    if (call === undefined) throw new Error(`There is no call of ${name}`)
    return call.id
  }

  const results = async (chat: Chat) =>
    (await chat.messages()).filter(({ role }) => role === 'tool').map(({ content, outcome }) => ({ content, outcome }))

  it('runs a call that is approved while another of its round runs, before the run returns (S20)', async () => {
    const { run, seen } = await chatThatCalls('free', 'guarded')
    const running = run.complete()
    await until('the other call runs and this one waits', async () => {
      return ran.includes('free') && (await seen.pendingApprovals()).length === 1
    })
    await seen.approve(await callOf(seen, 'guarded'))
    finish.resolve('free result')
    expect((await running)?.content).to.equal('answer')
    expect(ran).to.eql(['free', 'guarded'])
    expect(await seen.isComplete()).to.equal(true)
  })

  it('takes the chat again for an approval that came between its last look and its release (S21)', async () => {
    const { run, seen } = await chatThatCalls('guarded')
    let turnedAway = ''
    beforeNext(worker, 'release', async () => {
      await seen.approve(await callOf(seen, 'guarded'))
      turnedAway = await web.jobs.complete.perform(seen.id, () => false)
    })
    expect((await run.complete())?.content).to.equal('answer')
    expect(turnedAway).to.equal('claimed elsewhere')
    expect(ran).to.eql(['guarded'])
    expect(await seen.isComplete()).to.equal(true)
    const row = await web.models.Chat.findByPk(seen.id)
    expect(row).to.include({ claimToken: 2, wantedAt: null, parked: false })
  })

  it('goes on with a turn that was given up once one of its calls is decided, though every ring is lost (R25)', async () => {
    const { run, seen } = await chatThatCalls('broken', 'guarded')
    expect(await errorFrom(() => run.complete())).to.be.instanceOf(TypeError)
    const call = await callOf(seen, 'guarded')
    await seen.approve(call, { wake: false })
    expect(await seen.failure()).to.include({ message: 'a bug' })
    await seen.approve(call)
    expect(await seen.failure()).to.equal(null)
    const redis = new Redis(bench.redis.port, '127.0.0.1')
    await redis.flushall()
    redis.disconnect()
    await worker.startWorkers().ready()
    await until('the sweeper has rung, and the turn is answered', () => seen.isComplete())
    expect(ran).to.eql(['guarded'])
  })

  it('does not run a call that was approved but denied before it began: it gets the refusal (S22)', async () => {
    const { run, seen, call } = await parked('guarded')
    await seen.approve(call, { wake: false })
    beforeNext(worker, 'startToolCall', () => seen.deny(call))
    expect((await run.complete())?.content).to.equal('answer')
    expect(ran).to.eql([])
    const [refusal, ...others] = await results(seen)
    expect(others).to.eql([])
    expect(refusal?.outcome).to.equal('denied')
    expect(bench.model.requests[1]?.messages.at(-1)?.content).to.equal(refusal?.content)
  })

  it('does not run a call that needs no approval when it is denied before it began (S22)', async () => {
    const { run, seen } = await chatThatCalls('free')
    beforeNext(worker, 'startToolCall', async () => seen.deny(await callOf(seen, 'free')))
    expect((await run.complete())?.content).to.equal('answer')
    expect(ran).to.eql([])
    expect((await results(seen)).map(({ outcome }) => outcome)).to.eql(['denied'])
  })

  it('refuses to deny a call that runs: the model gets its real result (S23)', async () => {
    const { run, seen, call } = await parked('slow')
    await seen.approve(call, { wake: false })
    const running = run.complete()
    await until('the call runs', () => ran.length === 1)
    expect(await errorFrom(() => seen.deny(call))).to.be.instanceOf(ToolCallRunningError)
    finish.resolve('real result')
    expect((await running)?.content).to.equal('answer')
    expect(bench.model.requests[1]?.messages.at(-1)?.content).to.equal('real result')
    expect(await results(seen)).to.eql([{ content: 'real result', outcome: 'succeeded' }])
  })

  it('changes nothing when a call that runs is approved (S24)', async () => {
    const { run, seen, call } = await parked('slow')
    await seen.approve(call, { wake: false })
    const running = run.complete()
    await until('the call runs', () => ran.length === 1)
    const before = await web.models.ToolCall.findByPk(call)
    const { wantedSeq } = (await web.models.Chat.findByPk(seen.id)) ?? {}
    await seen.approve(call, { remember: true })
    expect((await web.models.ToolCall.findByPk(call))?.approval).to.equal(before?.approval)
    expect((await web.models.Chat.findByPk(seen.id))?.wantedSeq).to.equal(wantedSeq)
    finish.resolve('done')
    await running
    expect(ran).to.eql(['slow'])
  })

  it('changes nothing when a call that is answered is approved or denied (S25)', async () => {
    const { run, seen, call } = await parked('guarded')
    await seen.approve(call, { wake: false })
    await run.complete()
    const before = [await run.messages(), (await web.models.Chat.findByPk(seen.id))?.get({ plain: true })]
    await seen.approve(call)
    await seen.approve(call, { remember: true })
    await seen.deny(call)
    await run.deny(call)
    const after = [await run.messages(), (await web.models.Chat.findByPk(seen.id))?.get({ plain: true })]
    expect(after).to.eql(before)
    expect(await seen.isComplete()).to.equal(true)
  })

  it('lets either a start or a denial win, never both, when they race (S22, S23)', async function () {
    this.timeout(60_000)
    await bench.script(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? text('answer') : toolCalls([{ name: 'guarded', arguments: {} }]),
    )
    worker = await bench.connect({ agents: [agent] })
    web = await bench.connect({ agents: [agent] })
    for (let round = 0; round < 15; round++) {
      ran = []
      const run = await worker.chats.create({ agent })
      await run.ask('question')
      const seen = await web.chats.find(run.id)
      const call = await callOf(seen, 'guarded')
      await seen.approve(call, { wake: false })
      const [, denied] = await Promise.all([run.complete(), seen.deny(call).catch((error: unknown) => error)])
      await run.complete()
      const [result, ...others] = await results(seen)
      expect(others).to.eql([])
      expect(ran.length === 1).to.equal(result?.outcome === 'succeeded')
      if (denied instanceof Error) expect(denied).to.be.instanceOf(ToolCallRunningError)
      if (denied instanceof Error) expect(ran).to.have.length(1)
    }
  })

  it('is seen at once by every predicate, also inside an open transaction (S26)', async () => {
    const { run, seen, call } = await parked('guarded')
    const { db } = insidesOf(worker)
    if (kind.name === 'MariaDB') {
      await db.transaction(async (transaction) => {
        // A snapshot, if the session kept one, would date from here.
        await db.read(`SELECT id FROM ${db.tables.toolCalls} WHERE id = $call`, { call }, transaction)
        await seen.approve(call, { wake: false })
        const [row] = await db.read(
          `SELECT approval FROM ${db.tables.toolCalls} WHERE id = $call`,
          { call },
          transaction,
        )
        expect(row?.approval).to.equal('approved')
        expect(await run.awaitingApproval()).to.equal(false)
      })
    } else {
      expect(await run.awaitingApproval()).to.equal(true)
      await seen.approve(call, { wake: false })
    }
    expect(await run.awaitingApproval()).to.equal(false)
    expect(await run.waiting()).to.equal(false)
    expect(await run.pendingApprovals()).to.eql([])
  })

  it('runs a tool once that two people approve at once, with a job for each (S27)', async () => {
    const { run, seen, call } = await parked('guarded')
    await Promise.all([run.approve(call, { wake: false }), seen.approve(call, { wake: false })])
    await worker.jobs.complete.enqueue(run.id)
    const outcomes = await Promise.all([
      worker.jobs.complete.perform(run.id, () => false),
      web.jobs.complete.perform(run.id, () => false),
    ])
    expect(outcomes).to.include('done')
    expect(ran).to.eql(['guarded'])
    expect(await seen.isComplete()).to.equal(true)
    expect(bench.model.requests).to.have.length(2)
  })

  it('runs it once with workers in both processes too (S27)', async () => {
    const { run, seen, call } = await parked('guarded')
    await Promise.all([worker.startWorkers().ready(), web.startWorkers().ready()])
    await Promise.all([run.approve(call), seen.approve(call)])
    await until('it is answered', () => seen.isComplete())
    expect(ran).to.eql(['guarded'])
    expect(bench.model.requests).to.have.length(2)
    expect(await results(seen)).to.have.length(1)
  })
})
