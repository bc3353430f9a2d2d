import { expect } from 'chai'
import {
  type Chat,
  type CompactionOptions,
  ContextTooLargeError,
  defineAgent,
  type Threadmill,
} from '../../src/index.ts'
import { gate, httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { chatRow, roles, usageRows } from './support/rows.ts'
import { call, freshName, recording } from './support/tools.ts'

/** About 100 tokens by the estimate. */
const long = (words: string) => words.padEnd(400, '.')
const summary = 'They talked about numbers.'
const sized = (input: number, output: number) => ({ usage: { prompt_tokens: input, completion_tokens: output } })

onEachDatabase('A chat that summarises itself', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  async function chatOf(mill: Threadmill, pairs: number, agent?: { name: string }): Promise<Chat> {
    const chat = await mill.chats.create(agent === undefined ? {} : { agent })
    for (let at = 1; at <= pairs; at++) {
      await chat.addMessage({ role: 'user', content: long(`question ${at}`) })
      await chat.addMessage({ role: 'assistant', content: long(`answer ${at}`) })
    }
    return chat
  }
  const agentWith = (compaction: CompactionOptions | boolean, more: object = {}) =>
    defineAgent({ name: freshName(), compaction, ...more })
  const sent = (at: number) =>
    bench.model.requests[at]?.messages.map(({ role, content }) => `${role}: ${content}`) ?? []
  const headed = `user: Summary of the conversation so far:\n\n${summary}`
  const operations = async (mill: Threadmill, chat: Chat) =>
    (await usageRows(mill, chat)).map(({ operation }) => operation).join(' ')

  it('is summarised before the request that would pass the threshold, and the turn goes on', async () => {
    await bench.script([text(summary), text('answer')])
    const agent = agentWith({ at: 500 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 3, agent)
    expect((await chat.ask('question'))?.content).to.equal('answer')
    expect(sent(0)).to.have.length(7)
    expect(sent(1)).to.eql([headed, 'user: question'])
    expect(await operations(mill, chat)).to.equal('compaction chat')
    expect(await roles(chat)).to.equal('user assistant user assistant user assistant user assistant assistant')
    expect((await chatRow(mill, chat)).compactions).to.equal(1)
  })

  it('is left alone below the threshold, and with compaction off', async () => {
    await bench.script([text('one'), text('two')])
    const below = agentWith({ at: 5_000 })
    const off = agentWith({ at: 10 })
    const mill = await bench.connect({ agents: [below, off] })
    const first = await chatOf(mill, 3, below)
    await first.ask('question')
    const second = await chatOf(mill, 3, off)
    await second.withCompaction(false).ask('question')
    expect(await operations(mill, first)).to.equal('chat')
    expect(await operations(mill, second)).to.equal('chat')
  })

  it('goes by what the provider reported of the last answer, and by an estimate of what came after', async () => {
    await bench.script([text('first', sized(300, 100)), text('second', sized(460, 20)), text(summary), text('third')])
    const agent = agentWith({ at: 500 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask(long('a question'))
    // 400 reported and under 100 estimated; then 480 reported and 25 estimated.
    await chat.ask('a'.repeat(300))
    expect(await operations(mill, chat)).to.equal('chat chat')
    await chat.ask('b'.repeat(100))
    expect(await operations(mill, chat)).to.equal('chat chat compaction chat')
  })

  it('follows what the web process set, in a worker of another process', async () => {
    await bench.script([text(summary), text('answer')])
    const [web, worker] = [await bench.connect(), await bench.connect()]
    const chat = await chatOf(web, 3)
    chat.withCompaction({ at: 500, keep: 2, model: 'cheap-model', instructions: 'Keep the numbers.' })
    await chat.askLater('question', { enqueue: true })
    await worker.startWorkers({ complete: 1, runTools: 0, compact: 0 }).ready()
    await until('the turn is answered', () => chat.isComplete())
    expect(bench.model.requests.map(({ model }) => model)).to.eql(['cheap-model', 'test-model'])
    expect(sent(0).at(-1)).to.contain('Keep the numbers.')
    expect(sent(1)).to.eql([headed, `assistant: ${long('answer 3')}`, 'user: question'])
  })

  it("takes the chat's own setting before its agent's, and the agent's again after null", async () => {
    await bench.script([text('one'), text(summary), text('two')])
    const agent = agentWith({ at: 500 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 3, agent)
    await chat.withCompaction({ at: 50_000 }).ask('question')
    await chat.withCompaction(null).ask('question')
    expect(await operations(mill, chat)).to.equal('chat compaction chat')
  })

  it('refuses options that there are not, and names them', async () => {
    const chat = await (await bench.connect()).chats.create()
    for (const options of [{ at: 0 }, { at: 1.5 }, { keep: -1 }, { pauseAfter: 1 }, { before: 1 }, 'yes']) {
      expect(await errorFrom(async () => chat.withCompaction(options as never))).to.have.property('code', 'argument')
      expect(await errorFrom(async () => agentWith(options as never))).to.have.property('code', 'argument')
    }
    expect(await errorFrom(async () => chat.withCompaction({ at: 1.5 })))
      .to.have.property('message')
      .that.contains('at must be a share up to 1 or a whole number of tokens')
  })

  it("takes a share of the agent's context window, or of the catalogue's", async () => {
    await bench.script([text(summary), text('one'), text(summary), text('two')])
    const named = agentWith({ at: 0.5 }, { contextWindow: 1_000 })
    // GPT-4's window has 8,192 tokens.
    const known = agentWith({ at: 0.06 }, { model: 'gpt-4' })
    const mill = await bench.connect({ agents: [named, known] })
    for (const agent of [named, known]) {
      const chat = await chatOf(mill, 3, agent)
      await chat.ask('question')
      expect(await operations(mill, chat)).to.equal('compaction chat')
    }
  })

  it('says what is missing where a share is to be taken of a window that nobody knows', async () => {
    await bench.script([text('answer')])
    const agent = agentWith(true)
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 1, agent)
    const error = await errorFrom(() => chat.ask('question'))
    expect(error).to.have.property('code', 'configuration')
    expect(error).to.have.property('message').that.contains('test-model').and.contains('contextWindow')
    expect(bench.model.requests).to.have.length(0)
    expect((await chat.withCompaction({ at: 5_000 }).complete())?.content).to.equal('answer')
  })

  it('keeps the running round with its reasoning word for word, and counts the reasoning (B30)', async () => {
    const thinking = `T-e1 ${'why '.repeat(500)}`
    const id = 'call_e1'
    await bench.script([toolCalls([call('look', id)], { thinking, ...sized(420, 20) }), text(summary), text('answer')])
    const agent = agentWith({ at: 900 }, { tools: [recording('look', [])] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 2, agent)
    await chat.askLater('look it up')
    await chat.generate()
    // The provider's report says nothing of the reasoning; without the report it is counted by its length.
    await mill.models.Usage.update({ inputTokens: null }, { where: { chatId: chat.id } })
    const later = await mill.chats.find(chat.id)
    expect((await later.complete())?.content).to.equal('answer')
    expect(await operations(mill, chat)).to.equal('chat compaction chat')
    const [head, question, asks, result, ...more] = bench.model.requests[2]?.messages ?? []
    expect([head?.content, question?.content]).to.eql([headed.slice('user: '.length), 'look it up'])
    expect(asks).to.deep.include({ role: 'assistant', reasoning_content: thinking })
    expect(asks?.tool_calls?.map((one) => one.id)).to.eql([id])
    expect(result).to.deep.include({ role: 'tool', tool_call_id: id, content: 'look done' })
    expect(more).to.eql([])
  })

  it('gives up with an error that says so where no summary can help; a smaller message is answered (B65)', async () => {
    await bench.script([text(summary), text('answer')])
    const agent = agentWith({ at: 1_000 }, { instructions: 'x'.repeat(2_000), attempts: 1 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const error = await errorFrom(() => chat.ask('y'.repeat(2_400)))
    expect(error).to.be.instanceOf(ContextTooLargeError).and.deep.include({ retryable: false })
    expect(bench.model.requests).to.have.length(0)
    expect(await chat.failure()).to.have.property('code', 'chat.context_too_large')
    expect((await chat.ask('smaller'))?.content).to.equal('answer')
    expect(await chat.failure()).to.equal(null)
    expect(await operations(mill, chat)).to.equal('compaction chat')
  })

  it('asks for two summaries a turn at most, however often the turn is taken up (B65)', async () => {
    const held = text(long(summary).repeat(2))
    await bench.script([held, held, text('never')])
    const agent = agentWith({ at: 400, keep: 2 }, { instructions: 'x'.repeat(1_400), attempts: 5 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 3, agent)
    expect(await errorFrom(() => chat.ask('question'))).to.be.instanceOf(ContextTooLargeError)
    expect(bench.model.requests).to.have.length(2)
    expect((await chatRow(mill, chat)).compactions).to.equal(2)
    expect(await errorFrom(() => chat.step())).to.be.instanceOf(ContextTooLargeError)
    expect(bench.model.requests).to.have.length(2)
  })

  it('sends what no request can hold shortened, so that it can be summarised at all', async () => {
    await bench.script([text(summary), text('answer')])
    const agent = agentWith({ at: 0.8 }, { contextWindow: 1_000 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.addMessage({ role: 'user', content: `begin ${'y'.repeat(50_000)} end` })
    await chat.addMessage({ role: 'assistant', content: 'That is long.' })
    expect((await chat.ask('question'))?.content).to.equal('answer')
    const [first] = bench.model.requests[0]?.messages ?? []
    expect(`${first?.content}`.length).to.be.below(4_000)
    expect(first?.content).to.match(/^begin y+\n\[\.\.\. cut.*\]\ny+ end$/s)
  })

  it('goes on without a summary that failed, as long as the request fits', async () => {
    await bench.script([text(''), text('answer')])
    const agent = agentWith({ at: 0.5 }, { contextWindow: 1_000, retries: 0 })
    const tried: string[] = []
    const mill = await bench.connect({
      agents: [agent],
      onObservation: (seen) => (seen.type === 'compaction.ended' ? tried.push(seen.outcome) : null),
    })
    const chat = await chatOf(mill, 3, agent)
    expect((await chat.ask('question'))?.content).to.equal('answer')
    expect(sent(1)).to.have.length(7)
    expect(await operations(mill, chat)).to.equal('compaction chat')
    expect(tried).to.deep.equal(['failed'])
  })

  it('fails where the summary failed and the request does not fit, and says why', async () => {
    await bench.script([httpError(400, 'the summariser is out')])
    const agent = agentWith({ at: 0.5 }, { contextWindow: 600, retries: 0 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 3, agent)
    const error = await errorFrom(() => chat.ask('question'))
    expect(error).to.be.instanceOf(ContextTooLargeError)
    expect(error).to.have.nested.property('cause.code', 'provider.bad_request')
    expect(bench.model.requests).to.have.length(1)
  })

  it('is cancelled with its turn, and nothing is stored (S67)', async () => {
    const held = gate(text(summary))
    await bench.script([held])
    const agent = agentWith({ at: 500 })
    const [here, there] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await chatOf(here, 3, agent)
    const ended = errorFrom(() => chat.ask('question'))
    await held.reached
    await (await there.chats.find(chat.id)).cancel()
    expect(await ended).to.have.property('code', 'chat.cancelled')
    expect(await roles(chat)).to.equal('user assistant user assistant user assistant user')
    expect(bench.model.requests).to.have.length(1)
  })

  it('rests after the summary where it is told to; the next complete goes on', async () => {
    await bench.script([text(summary), text('answer')])
    const agent = agentWith({ at: 500, pauseAfter: true })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 3, agent)
    expect((await chat.ask('question'))?.content).to.equal('question')
    expect(await chat.isComplete()).to.equal(false)
    expect([(await chatRow(mill, chat)).wantedAt, await chat.running()]).to.eql([null, false])
    expect((await chat.complete())?.content).to.equal('answer')
    expect(sent(1)).to.eql([headed, 'user: question'])
  })

  it('is no step of its own', async () => {
    await bench.script([text(summary), text('answer')])
    const agent = agentWith({ at: 500 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await chatOf(mill, 3, agent)
    await chat.askLater('question')
    expect((await chat.step())?.content).to.equal('answer')
    expect(await operations(mill, chat)).to.equal('compaction chat')
  })
})
