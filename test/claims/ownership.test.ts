import { expect } from 'chai'
import * as z from 'zod'
import {
  type Chat,
  ChatNotFoundError,
  type ConnectOptions,
  defineAgent,
  defineTool,
  type Threadmill,
} from '../../src/index.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'

onEachDatabase('The ownership of a chat', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let started = 0
  let finish = deferred<string>()
  const slow = defineTool({
    name: 'slow',
    description: 'Takes as long as the test says.',
    parameters: z.object({}),
    execute: () => {
      started++
      return finish.promise
    },
  })
  const agent = defineAgent({ name: 'worker', tools: [slow] })
  let a: Threadmill
  let b: Threadmill

  beforeEach(() => {
    started = 0
    finish = deferred<string>()
  })
  // A tool that a failed test left at work would keep its timers.
  afterEach(() => finish.resolve('over'))

  /** Two processes that see one chat, which has a question. */
  async function both(options: ConnectOptions = {}): Promise<{ inA: Chat; inB: Chat }> {
    a = await bench.connect({ agents: [agent], ...options })
    b = await bench.connect({ agents: [agent], ...options })
    const inA = await a.chats.create({ agent })
    await inA.askLater('question')
    return { inA, inB: await b.chats.find(inA.id) }
  }

  const callSlow = () => toolCalls([{ name: 'slow', arguments: {} }])
  const roles = async (chat: Chat) => (await chat.messages()).map(({ role }) => role)

  it('lets one of two processes that complete at once ask the model, the other gets the latest message (S15)', async () => {
    const answer = gate(text('answer'))
    await bench.script(answer)
    const { inA, inB } = await both()
    let returned = 0
    const completing = [inA, inB].map(async (chat) => {
      const message = await chat.complete()
      returned++
      return message?.content
    })
    await until('the loser returned', () => returned === 1)
    answer.release()
    const contents = await Promise.all(completing)
    expect(contents).to.have.members(['answer', 'question'])
    expect(bench.model.requests).to.have.length(1)
    expect(await roles(inA)).to.eql(['user', 'assistant'])
  })

  it('lets one of many win, again and again (S15)', async () => {
    await bench.script(text('answer'))
    const { inA, inB } = await both()
    for (let turn = 1; turn <= 10; turn++) {
      if (turn > 1) await inA.askLater(`question ${turn}`)
      await Promise.all([inA, inB, inA, inB, inA, inB].map((chat) => chat.complete()))
      await until('the turn is answered', () => inA.isComplete())
      expect(bench.model.requests).to.have.length(turn)
    }
    expect(await roles(inA)).to.have.length(20)
  })

  it('gives others that generate or step null, and asks no model for them (S16)', async () => {
    const answer = gate(text('answer'))
    await bench.script(answer)
    const { inA, inB } = await both()
    const running = inA.complete()
    await answer.reached
    expect(await inB.generate()).to.equal(null)
    expect(await inB.step()).to.equal(null)
    expect(await inB.running()).to.equal(true)
    expect(await inB.waiting()).to.equal(true)
    expect(await inA.waiting(), 'it does not wait for itself').to.equal(false)
    answer.release()
    expect((await running)?.content).to.equal('answer')
    expect(bench.model.requests).to.have.length(1)
  })

  it('runs no tool for others that call runTools (S17)', async () => {
    await bench.script([callSlow(), text('answer')])
    const { inA, inB } = await both()
    const running = inA.complete()
    await until('the tool runs', () => started === 1)
    expect(await inB.runTools()).to.equal(inB)
    expect(await inB.complete()).to.include({ role: 'assistant' })
    expect(started).to.equal(1)
    finish.resolve('done')
    await running
    expect(started).to.equal(1)
    expect(await roles(inB)).to.eql(['user', 'assistant', 'tool', 'assistant'])
  })

  it('is kept by renewal for three times the ttl of a tool’s work, and was never lost in between (S18)', async function () {
    this.timeout(60_000)
    await bench.script([callSlow(), text('answer')])
    const { inA, inB } = await both({ claimTtlMs: 1_500 })
    const running = inA.complete()
    await until('the tool runs', () => started === 1)
    const begun = Date.now()
    const ends = new Set<number>()
    while (Date.now() - begun < 3 * 1_500) {
      const record = await b.models.Chat.findByPk(inB.id)
      ends.add(record?.claimedUntil?.getTime() ?? 0)
      expect(await inB.running()).to.equal(true)
      const [call] = await b.models.ToolCall.findAll({ where: { chatId: inB.id } })
      expect(call?.claimedBy).to.equal(record?.claimedBy)
    }
    expect(ends.size, 'renewals').to.be.at.least(4)
    expect(await inB.complete(), 'nobody can take it').to.include({ role: 'assistant' })
    finish.resolve('done')
    expect((await running)?.content).to.equal('answer')
    expect(started).to.equal(1)
    expect((await b.models.Chat.findByPk(inB.id))?.claimToken, 'one take').to.equal(1)
  })

  it('is over at once when the run is, however it ends (S19)', async () => {
    await bench.script([text('answer'), callSlow(), text('unreached')])
    const { inA, inB } = await both()
    await inA.complete()
    expect(await inB.running()).to.equal(false)
    const other = inB.ask('and now?')
    await until('the tool runs', () => started === 1)
    expect(await inA.running()).to.equal(true)
    finish.reject(new Error('broken'))
    await errorFrom(() => other)
    expect(await inA.running()).to.equal(false)
    expect(await inA.waiting()).to.equal(false)
  })

  it('treats a second complete of the same object as a foreign run (S30)', async () => {
    const answer = gate(text('answer'))
    await bench.script(answer)
    const { inA } = await both()
    const chunks: string[] = []
    const running = inA.complete()
    await answer.reached
    expect(await inA.complete((chunk) => void chunks.push(chunk.text))).to.include({
      role: 'user',
      content: 'question',
    })
    expect(await inA.step()).to.equal(null)
    answer.release()
    expect((await running)?.content).to.equal('answer')
    expect(bench.model.requests).to.have.length(1)
    expect(chunks).to.eql([])
  })

  it('ends the run with ChatNotFoundError when the chat is deleted while the model answers (S31)', async () => {
    const answer = gate(text('answer'))
    await bench.script(answer)
    const { inA, inB } = await both()
    const running = errorFrom(() => inA.complete())
    await answer.reached
    await b.models.Chat.destroy({ where: { id: inB.id } })
    answer.release()
    expect(await running).to.be.instanceOf(ChatNotFoundError)
    await expectNothingLeft(inB.id)
  })

  it('ends the run with ChatNotFoundError when the chat is deleted while a tool runs (S31)', async () => {
    await bench.script([callSlow(), text('unreached')])
    const { inA, inB } = await both()
    const running = errorFrom(() => inA.complete())
    await until('the tool runs', () => started === 1)
    await b.models.Chat.destroy({ where: { id: inB.id } })
    finish.resolve('done')
    expect(await running).to.be.instanceOf(ChatNotFoundError)
    expect(bench.model.requests).to.have.length(1)
    await expectNothingLeft(inB.id)
  })

  it('makes of a deleted chat a job with nothing to do (S31)', async () => {
    await bench.script(text('unreached'))
    const { inA } = await both()
    await inA.askLater('more', { enqueue: true })
    await b.models.Chat.destroy({ where: { id: inA.id } })
    expect(await errorFrom(() => b.jobs.complete.perform(inA.id, () => false))).to.be.instanceOf(ChatNotFoundError)
    const ends: string[] = []
    const worker = await bench.connect({
      agents: [agent],
      onObservation: (seen) => (seen.type === 'job.ended' && seen.chatId === inA.id ? ends.push(seen.outcome) : null),
    })
    await worker.startWorkers().ready()
    await insidesOf(b).bells.ring(inA.id, 'complete')
    const probe = await b.chats.create({ agent })
    await probe.askLater('are you there?', { enqueue: true })
    await until('a later job is done', () => probe.isComplete())
    expect([...new Set(ends)]).to.eql(['not wanted'])
  })

  async function expectNothingLeft(chatId: string): Promise<void> {
    expect(await b.models.Chat.count({ where: { id: chatId } })).to.equal(0)
    for (const model of [b.models.Message, b.models.ToolCall, b.models.QueuedMessage, b.models.Usage]) {
      expect(await (model as typeof b.models.Message).count({ where: { chatId } })).to.equal(0)
    }
  }
})
