import { expect } from 'chai'
import {
  type Agent,
  BadRequestError,
  type Chat,
  defineAgent,
  MissingAgentError,
  ToolRoundLimitError,
} from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { lastCall, lastCalls, resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A round with calls that need approval', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** Runs the chat's wish in workers of a process of its own, which ends then. */
  async function inNewWorkers(agent: Agent, chatId: string, done: (chat: Chat) => Promise<boolean>): Promise<void> {
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.find(chatId)
    mill.startWorkers()
    await until('the workers did what they can', async () => (await done(chat)) && !(await chat.running()))
    await mill.close()
  }
  const answered = (chat: Chat) => chat.isComplete()
  const parkedOn = (count: number) => async (chat: Chat) =>
    (await chat.awaitingApproval()) && (await chat.pendingApprovals()).length === count

  it('changes nothing in a process that lacks its tool, approved or not (S46)', async () => {
    const wipe = freshId()
    await bench.script([toolCalls([call('wipe', wipe)]), text('Wiped.')])
    const runs: string[] = []
    const tool = recording('wipe', runs, { requiresApproval: true })
    const agent = defineAgent({ name: freshName(), tools: [tool] })
    const chat = await (await bench.connect({ agents: [agent] })).chats.create({ agent })
    await chat.ask('Wipe it')
    const toolless = await bench.connect({ agents: [defineAgent({ name: agent.name })] })
    const elsewhere = await toolless.chats.find(chat.id)

    const undecided = await lastCall(chat)
    await elsewhere.complete()
    expect(await lastCall(chat)).to.deep.equal(undecided)
    await chat.approve(wipe, { wake: false })
    const approved = await lastCall(chat)
    const error = await errorFrom(() => elsewhere.complete())
    expect(error).to.be.instanceOf(MissingAgentError)
    expect((error as Error).message)
      .to.include('wipe')
      .and.include(agent.name)
      .and.include(chat.id)
    expect(await lastCall(chat)).to.deep.equal(approved)
    expect(await roles(chat)).to.equal('user assistant')
    expect(bench.model.requests).to.have.length(1)

    expect((await chat.complete())?.content).to.equal('Wiped.')
    expect(runs).to.deep.equal(['wipe'])
  })

  it('runs its free call before the approval and its guarded one after, each once (S37, B51)', async () => {
    const [wipe, read] = [freshId(), freshId()]
    await bench.script([toolCalls([call('wipe', wipe), call('read', read)]), text('Both done.')])
    const runs: string[] = []
    const agent = defineAgent({
      name: freshName(),
      tools: [recording('wipe', runs, { requiresApproval: true }), recording('read', runs)],
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Wipe and read', { enqueue: true })
    await inNewWorkers(agent, chat.id, parkedOn(1))
    expect(runs).to.deep.equal(['read'])
    expect(Object.keys(await resultsById(chat))).to.deep.equal([read])
    expect(bench.model.requests).to.have.length(1)

    await chat.approve(wipe)
    await inNewWorkers(agent, chat.id, answered)
    expect(runs).to.deep.equal(['read', 'wipe'])
    expect(bench.model.requests).to.have.length(2)
    // In the order of the calls, not of their ends.
    const sent = bench.model.requests[1]?.messages.slice(2) ?? []
    expect(sent.map((message) => [message.tool_call_id, message.content])).to.deep.equal([
      [wipe, 'wipe done'],
      [read, 'read done'],
    ])
  })

  it('asks again only for what is undecided, and the model once, when both were granted (B53)', async () => {
    const [first, second] = [freshId(), freshId()]
    await bench.script([toolCalls([call('mail_a', first), call('mail_b', second)]), text('Both sent.')])
    const runs: string[] = []
    const agent = defineAgent({
      name: freshName(),
      tools: ['mail_a', 'mail_b'].map((name) => recording(name, runs, { requiresApproval: true })),
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Mail', { enqueue: true })
    await inNewWorkers(agent, chat.id, parkedOn(2))

    await chat.approve(first)
    await inNewWorkers(agent, chat.id, parkedOn(1))
    expect(runs).to.deep.equal(['mail_a'])
    expect((await chat.pendingApprovals()).map(({ toolCallId }) => toolCallId)).to.deep.equal([second])
    expect(bench.model.requests).to.have.length(1)

    await chat.approve(second)
    await inNewWorkers(agent, chat.id, answered)
    expect(runs).to.deep.equal(['mail_a', 'mail_b'])
    expect(bench.model.requests).to.have.length(2)
    expect(await roles(chat)).to.equal('user assistant tool tool assistant')
  })

  it('never runs the denied call beside the approved one (M33)', async () => {
    const [first, second, third] = [freshId(), freshId(), freshId()]
    await bench.script([toolCalls([call('mail', first), call('mail', second), call('mail', third)]), text('Done.')])
    const runs: string[] = []
    const tool = recording('mail', runs, { requiresApproval: true }, ({ toolCall }) => `sent ${toolCall.toolCallId}`)
    const agent = defineAgent({ name: freshName(), tools: [tool] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Mail')
    await chat.deny(second)
    await chat.approve(third)
    await chat.complete()
    expect(await chat.awaitingApproval()).to.equal(true)
    await chat.approve(first)
    await chat.complete()
    expect(runs).to.have.length(2)
    const sent = bench.model.requests[1]?.messages.slice(2) ?? []
    expect(sent.map((message) => [message.tool_call_id, message.content])).to.deep.equal([
      [first, `sent ${first}`],
      [second, '{"error":"The user denied the mail tool call."}'],
      [third, `sent ${third}`],
    ])
  })

  it('keeps one refusal when the model request after it fails (S47)', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wipe', id)]), httpError(400, 'no'), text('Left alone.')])
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', [], { requiresApproval: true })] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Wipe')
    await chat.deny(id)
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(BadRequestError)
    expect((await chat.complete())?.content).to.equal('Left alone.')
    expect(await roles(chat)).to.equal('user assistant tool assistant')
    expect(bench.model.requests[2]?.messages.filter(({ role }) => role === 'tool')).to.have.length(1)
  })

  it('counts no decision round as a tool round of its own', async () => {
    const ids = [freshId(), freshId()]
    await bench.script([
      toolCalls([call('wipe', ids[0]), call('wipe', ids[1])]),
      toolCalls([call('read')]),
      toolCalls([call('read')]),
    ])
    const agent = defineAgent({
      name: freshName(),
      rounds: 2,
      tools: [recording('wipe', [], { requiresApproval: true }), recording('read', [])],
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Wipe')
    for (const id of ids) {
      await chat.approve(id)
      if (id === ids[0]) await chat.complete()
    }
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(ToolRoundLimitError)
    expect(bench.model.requests).to.have.length(2)
  })

  describe('whose tool decides by a function', () => {
    async function resolving(decide: () => boolean | null | undefined | Promise<boolean | null>) {
      const id = freshId()
      await bench.script([toolCalls([call('pay', id)]), text('Answered.')])
      const runs: string[] = []
      let asked = 0
      const requiresApproval = () => {
        asked++
        return decide()
      }
      const agent = defineAgent({ name: freshName(), tools: [recording('pay', runs, { requiresApproval })] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      await chat.askLater('Pay')
      return { id, runs, asked: () => asked, agent, chat }
    }

    it('runs the call once the function says so, at the fourth time (S41)', async () => {
      const answers = [undefined, null, undefined, true]
      const { runs, asked, chat } = await resolving(() => answers.shift())
      expect(asked()).to.equal(0)
      for (const time of [1, 2, 3]) {
        await chat.complete()
        expect(asked()).to.equal(time)
        expect(await chat.awaitingApproval()).to.equal(true)
        expect((await lastCall(chat)).approval).to.equal('pending')
      }
      expect(runs).to.deep.equal([])
      expect((await chat.complete())?.content).to.equal('Answered.')
      expect([runs, asked()]).to.deep.equal([['pay'], 4])
      expect(bench.model.requests).to.have.length(2)
    })

    it('answers the call with a refusal when the function says no', async () => {
      const { id, runs, chat } = await resolving(() => Promise.resolve(false))
      expect((await chat.complete())?.content).to.equal('Answered.')
      expect(runs).to.deep.equal([])
      expect((await resultsById(chat))[id]?.outcome).to.equal('denied')
    })

    it('is bound by what a person decided, either way', async () => {
      for (const [decision, outcome] of [
        ['approve', 'succeeded'],
        ['deny', 'denied'],
      ] as const) {
        const { id, asked, chat } = await resolving(() => undefined)
        await chat.complete()
        await chat[decision](id, { wake: false })
        await chat.complete()
        expect([asked(), (await resultsById(chat))[id]?.outcome]).to.deep.equal([1, outcome])
      }
    })

    it('asks the function again for each call, though an earlier one was approved for the rest of the chat', async () => {
      const { id, runs, asked, chat, agent } = await resolving(() => null)
      await chat.complete()
      await chat.approve(id, { remember: true })
      await chat.complete()
      await bench.script([toolCalls([call('pay')])])
      const mill = await bench.connect({ agents: [agent] })
      const other = await mill.chats.find(chat.id)
      await other.ask('Pay again')
      expect([runs, asked()]).to.deep.equal([['pay'], 2])
      expect(await other.awaitingApproval()).to.equal(true)
    })
  })

  it('runs the rest of a round without asking once one call of it was approved for good (S38)', async () => {
    const ids = [freshId(), freshId()]
    await bench.script([toolCalls(ids.map((id) => call('wipe', id))), text('Both.')])
    const runs: string[] = []
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', runs, { requiresApproval: true })] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Wipe two')
    await chat.approve(ids[0] ?? '', { remember: true })
    expect((await chat.complete())?.content).to.equal('Both.')
    expect(runs).to.have.length(2)
    expect((await lastCalls(chat)).map(({ approval }) => approval)).to.deep.equal(['remembered', null])
  })
})
