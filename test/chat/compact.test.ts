import { expect } from 'chai'
import {
  CancelledError,
  type Chat,
  defineAgent,
  NothingToCompactError,
  PendingToolCallsError,
  SummaryRefusedError,
  type Threadmill,
} from '../../src/index.ts'
import { gate, type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext, insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { chatRow, roles, usageRows } from './support/rows.ts'
import { call, freshName, recording } from './support/tools.ts'

const long = (words: string) => `${words} ${'and so on, at some length, '.repeat(8)}`
const summary = 'They talked about numbers.'

onEachDatabase('Summarising a chat on demand', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  async function chatOf(mill: Threadmill, pairs: number, agent?: string): Promise<Chat> {
    const chat = await mill.chats.create(agent === undefined ? {} : { agent })
    for (let at = 1; at <= pairs; at++) {
      await chat.addMessage({ role: 'user', content: long(`question ${at}`) })
      await chat.addMessage({ role: 'assistant', content: long(`answer ${at}`) })
    }
    return chat
  }
  const sent = (at: number) =>
    bench.model.requests[at]?.messages.map(({ role, content }) => `${role}: ${content}`) ?? []

  it('adds the summary as a message; requests carry it and what came later, the ledger its cost (S100)', async () => {
    await bench.script([text(summary, { usage: { prompt_tokens: 900, completion_tokens: 12 } }), text('next answer')])
    const mill = await bench.connect()
    const chat = await chatOf(mill, 5)
    await chat.withInstructions('Be brief.').save()
    const stored = await chat.compact()
    expect(stored).to.deep.include({ role: 'assistant', content: summary, summaryThrough: 9 })
    const messages = await chat.messages()
    expect(messages.filter(({ role }) => role !== 'system')).to.have.length(11)
    expect(messages.at(-1)?.id).to.equal(stored?.id)
    const [usage] = await usageRows(mill, chat)
    expect(usage).to.deep.include({
      operation: 'compaction',
      messageId: stored?.id,
      status: 'succeeded',
      answerId: null,
    })
    expect((await chat.tokens()).output).to.equal(12)
    expect(await chat.isComplete()).to.equal(true)
    expect((await chat.complete())?.content).to.equal(long('answer 5'))
    expect(bench.model.requests).to.have.length(1)

    expect((await chat.ask('next question'))?.content).to.equal('next answer')
    expect(sent(1)).to.eql([
      'system: Be brief.',
      `user: Summary of the conversation so far:\n\n${summary}`,
      'user: next question',
    ])
  })

  it("begins as the chat's own requests do, tools included, so that the prompt cache serves it", async () => {
    await bench.script([text(long('answer')), text(summary)])
    const agent = defineAgent({ name: freshName(), instructions: 'Be brief.', tools: [recording('look', [])] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask(long('question'))
    await chat.compact()
    const [first, second] = bench.model.requests
    expect(second?.messages.slice(0, 2)).to.eql(first?.messages)
    expect(second?.tools).to.eql(first?.tools)
    expect(second?.body).to.have.property('tool_choice', 'none')
    expect(first?.body).not.to.have.property('tool_choice')
    expect(second?.messages.at(-1)?.role).to.equal('user')
    expect(second?.model).to.equal(first?.model)
  })

  it('asks the model that is named, with the instructions that are given, and keeps the last messages', async () => {
    await bench.script([text(summary), text('next answer')])
    const mill = await bench.connect()
    const chat = await chatOf(mill, 2)
    const stored = await chat.compact({ model: 'cheap-model', instructions: 'Keep the numbers.', keep: 1 })
    expect(stored?.summaryThrough).to.equal(2)
    expect(bench.model.requests[0]?.model).to.equal('cheap-model')
    expect(sent(0)).to.have.length(4)
    expect(sent(0).at(-1)).to.contain('Keep the numbers.')
    await chat.ask('next question')
    expect(bench.model.requests[1]?.model).to.equal('test-model')
    expect(sent(1).slice(1)).to.eql([`assistant: ${long('answer 2')}`, 'user: next question'])
  })

  it('replaces an earlier summary, which stays in the transcript', async () => {
    await bench.script([text(summary), text(long('second answer')), text('A newer summary.'), text('third answer')])
    const mill = await bench.connect()
    const chat = await chatOf(mill, 2)
    await chat.compact()
    await chat.ask(long('second question'))
    await chat.compact({ keep: 1 })
    expect(sent(2)[0]).to.contain(summary)
    await chat.ask('third question')
    expect(sent(3)).to.eql([
      'user: Summary of the conversation so far:\n\nA newer summary.',
      `assistant: ${long('second answer')}`,
      'user: third question',
    ])
    expect((await chat.messages()).filter(({ summaryThrough }) => summaryThrough !== null)).to.have.length(2)
  })

  const refusals: readonly (readonly [string, Reply, string])[] = [
    ['is empty', text(' \n'), 'empty'],
    ['asks for a tool', toolCalls([call('look')], { text: summary }), 'tools'],
    ['is cut off', text(summary, { finishReason: 'length' }), 'cut off'],
    ['is as long as what it would replace', text('x'.repeat(2_000)), '2000 characters'],
    [
      'has as many tokens as the request had',
      text(summary, {
        usage: { prompt_tokens: 100, completion_tokens: 130, completion_tokens_details: { reasoning_tokens: 30 } },
      }),
      '100 tokens',
    ],
  ]
  for (const [what, reply, said] of refusals) {
    it(`refuses a summary that ${what}; what it cost stays in the ledger`, async () => {
      await bench.script([reply])
      const mill = await bench.connect()
      const chat = await chatOf(mill, 2)
      const error = await errorFrom(() => chat.compact())
      expect(error).to.be.instanceOf(SummaryRefusedError).and.have.property('message').that.contains(said)
      expect(await roles(chat)).to.equal('user assistant user assistant')
      const usages = await usageRows(mill, chat)
      expect(usages.map((usage) => [usage.operation, usage.status, usage.messageId])).to.eql([
        ['compaction', 'succeeded', null],
      ])
      expect(usages[0]?.inputTokens).to.be.above(0)
      const row = await chatRow(mill, chat)
      expect([row.claimedBy, row.failure, row.attempts]).to.eql([null, null, 0])
    })
  }

  it('refuses an open round without a request, which goes on waiting', async () => {
    await bench.script([toolCalls([call('guarded')])])
    const agent = defineAgent({ name: freshName(), tools: [recording('guarded', [], { requiresApproval: true })] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('do it')
    expect(await errorFrom(() => chat.compact())).to.be.instanceOf(PendingToolCallsError)
    expect(bench.model.requests).to.have.length(1)
    expect((await chatRow(mill, chat)).parked).to.equal(true)
    expect(await chat.awaitingApproval()).to.equal(true)
  })

  it('says so where there is nothing to summarise, without a request', async () => {
    await bench.script([])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    expect(await errorFrom(() => chat.compact())).to.be.instanceOf(NothingToCompactError)
    await chat.askLater('only a question')
    expect(await errorFrom(() => chat.compact())).to.be.instanceOf(NothingToCompactError)
    expect(bench.model.requests).to.have.length(0)
  })

  it('refuses options that there are not', async () => {
    const chat = await (await bench.connect()).chats.create()
    for (const options of [{ keep: -1 }, { keep: 1.5 }, { model: '' }, { at: 0.5 }]) {
      expect(await errorFrom(() => chat.compact(options as never))).to.have.property('code', 'argument')
    }
  })

  it('returns null while another process runs the chat, and asks nothing (S16)', async () => {
    const held = gate(text('answer'))
    await bench.script([held])
    const [here, there] = [await bench.connect(), await bench.connect()]
    const chat = await chatOf(here, 2)
    const running = chat.ask('question')
    await held.reached
    expect(await (await there.chats.find(chat.id)).compact()).to.equal(null)
    expect(bench.model.requests).to.have.length(1)
    held.release()
    await running
  })

  it('throws once for a cancel that came before, without a request (S67)', async () => {
    await bench.script([text(summary)])
    const [here, there] = [await bench.connect(), await bench.connect()]
    const chat = await chatOf(here, 2)
    await here.jobs.complete.enqueue(chat)
    await (await there.chats.find(chat.id)).cancel()
    expect(await errorFrom(() => chat.compact())).to.be.instanceOf(CancelledError)
    expect(bench.model.requests).to.have.length(0)
    expect((await chat.compact())?.content).to.equal(summary)
  })

  it('is stopped by a cancel from another process, and stores nothing (S67)', async () => {
    const held = gate(text(summary))
    await bench.script([held])
    const [here, there] = [await bench.connect(), await bench.connect()]
    const chat = await chatOf(here, 2)
    const ended = errorFrom(() => chat.compact())
    const request = await held.reached
    await (await there.chats.find(chat.id)).cancel()
    expect(await ended).to.be.instanceOf(CancelledError)
    expect(await bench.model.waitForEnd(request)).to.equal('aborted')
    expect(await roles(chat)).to.equal('user assistant user assistant')
    expect((await usageRows(here, chat)).map(({ status }) => status)).to.eql(['cancelled'])
    const row = await chatRow(here, chat)
    expect([row.cancelTurn, row.claimedBy, row.wantedAt]).to.eql([null, null, null])
  })

  it('leaves an answered turn as it ended when its summary is cancelled; an unanswered one is cancelled with it', async () => {
    const told: string[] = []
    const agent = defineAgent({ name: freshName(), onTurnEnd: (_, { kind }) => void told.push(kind) })
    await bench.script([text(long('answer')), text(summary), text(summary)])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask(long('question'))
    beforeNext(mill, 'commitSummary', () => chat.cancel())
    expect(await errorFrom(() => chat.compact())).to.be.instanceOf(CancelledError)
    expect(told).to.eql(['answered'])
    const row = await chatRow(mill, chat)
    expect([row.cancelledTurn, row.cancelTurn, row.claimedBy, row.wantedAt]).to.eql([null, null, null, null])
    await chat.askLater('another')
    beforeNext(mill, 'commitSummary', () => chat.cancel())
    expect(await errorFrom(() => chat.compact())).to.be.instanceOf(CancelledError)
    expect(told).to.eql(['answered', 'cancelled'])
    expect((await chatRow(mill, chat)).cancelledTurn).to.equal(2)
  })

  it("tells the agent of a turn's end, though a summary stands for the answer by then (E01)", async () => {
    const told: string[] = []
    const agent = defineAgent({ name: freshName(), onTurnEnd: (_, outcome) => void told.push(outcome.kind) })
    await bench.script([text(long('answer')), text(summary)])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater(long('question'))
    // One move by hand ends no turn; the run that finds it at rest does.
    await chat.generate()
    const before = told.length
    await mill.models.Chat.update({ endedTurn: null }, { where: { id: chat.id } })
    await chat.compact()
    await chat.complete()
    expect(told.slice(before)).to.eql(['answered'])
  })

  it('drops a summary that comes back after the cancel, though nobody saw the cancel before (S67)', async () => {
    const held = gate(text(summary))
    await bench.script([held])
    const [here, there] = [await bench.connect(), await bench.connect()]
    const chat = await chatOf(here, 2)
    beforeNext(here, 'commitSummary', async () => (await there.chats.find(chat.id)).cancel())
    held.release()
    expect(await errorFrom(() => chat.compact())).to.be.instanceOf(CancelledError)
    expect(await roles(chat)).to.equal('user assistant user assistant')
  })

  it('is not stopped by a cancel that found nothing to cancel (S67)', async () => {
    await bench.script([text(summary)])
    const chat = await chatOf(await bench.connect(), 2)
    await chat.cancel()
    expect((await chat.compact())?.content).to.equal(summary)
  })

  it('keeps what is written meanwhile, after the summary, and it is answered (B63)', async () => {
    const held = gate(text(summary))
    await bench.script([held, text('answer')])
    const [here, there] = [await bench.connect(), await bench.connect()]
    const chat = await chatOf(here, 2)
    const made = chat.compact()
    await held.reached
    const other = await there.chats.find(chat.id)
    await other.withInstructions('A rule that came meanwhile.').save()
    await other.askLater('asked meanwhile')
    held.release()
    expect((await made)?.summaryThrough).to.equal(3)
    expect((await other.complete())?.content).to.equal('answer')
    expect(sent(1)).to.eql([
      'system: A rule that came meanwhile.',
      `user: Summary of the conversation so far:\n\n${summary}`,
      'user: asked meanwhile',
    ])
  })

  it('brings nothing back to a chat that is deleted meanwhile (B63)', async () => {
    const held = gate(text(summary))
    await bench.script([held])
    const mill = await bench.connect()
    const chat = await chatOf(mill, 2)
    const ended = errorFrom(() => chat.compact())
    await held.reached
    await mill.models.Chat.destroy({ where: { id: chat.id } })
    held.release()
    expect(await ended).to.have.property('code', 'chat.not_found')
    expect(await mill.models.Message.count({ where: { chatId: chat.id } })).to.equal(0)
  })

  it('keeps an approval for the rest of the chat that a summary stands for', async () => {
    await bench.script([
      toolCalls([call('guarded')]),
      text(long('done')),
      text(summary),
      toolCalls([call('guarded')]),
      text('again'),
    ])
    const runs: string[] = []
    const agent = defineAgent({ name: freshName(), tools: [recording('guarded', runs, { requiresApproval: true })] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask(long('do it'))
    const [waiting] = await chat.pendingApprovals()
    await chat.approve(waiting ?? '', { remember: true, wake: false })
    await chat.complete()
    await chat.compact()
    expect((await chat.ask('do it again'))?.content).to.equal('again')
    expect(runs).to.eql(['guarded', 'guarded'])
  })

  it('lets a run read the rows after the summary, not the history', async function () {
    this.timeout(60_000)
    await bench.script([text(summary), text('answer')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await chat.withInstructions('Be brief.').save()
    await chat.addMessage({ role: 'user', content: 'begin' })
    await mill.models.Message.bulkCreate(
      Array.from({ length: 998 }, (_, at) => ({
        id: `filler-${at}-${chat.id}`.slice(0, 36),
        chatId: chat.id,
        position: at + 2,
        role: at % 2 === 0 ? ('assistant' as const) : ('user' as const),
        content: `message ${at}`,
      })),
    )
    await mill.models.Chat.update({ nextPosition: 1_000 }, { where: { id: chat.id } })
    await chat.addMessage({ role: 'assistant', content: 'end' })
    await chat.compact()
    const { rows } = insidesOf(mill).ports
    const read: number[] = []
    const transcript = rows.transcript
    Object.assign(rows, {
      transcript: async (...given: Parameters<typeof transcript>) => {
        const messages = await transcript(...given)
        read.push(messages.length)
        return messages
      },
    })
    expect((await chat.ask('question'))?.content).to.equal('answer')
    expect(read).to.eql([3])
    expect(await chat.messages()).to.have.length(1_004)
  })
})
