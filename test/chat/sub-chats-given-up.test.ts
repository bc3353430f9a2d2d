import { expect } from 'chai'
import { agentTool, CancelledError, type Chat, defineAgent } from '../../src/index.ts'
import { gate, type LoggedRequest, type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { change, chatRow, lastCalls } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'
import { rejectionOf } from './support/watching.ts'

onEachDatabase('The sub-chats of a turn that was given up', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 10_000, sweepEveryMs: 100 })

  /** A chat of an agent `root`, whose helper is at work for as long as a tool of it waits for a decision. */
  async function setUp(replies: Readonly<Record<string, readonly Reply[]>>) {
    const bad = recording('bad', [], {}, () => {
      throw new Error('out of order')
    })
    const ended: string[] = []
    const begin = recording(
      'begin',
      [],
      {
        resume: async (task, { task: again }) => again({ id: task.id, pollMs: 60_000 }),
        cancelTask: ({ id }) => void ended.push(id),
      },
      ({ task }) => task({ id: 'job-1', pollMs: 60_000 }),
    )
    const dig = recording('dig', [], { requiresApproval: true })
    const leaf = defineAgent({ name: freshName(), retries: 0, instructions: 'leaf', tools: [dig] })
    const asksLeaf = agentTool(leaf, { name: 'leaf', description: 'Asks.' })
    const helper = defineAgent({ name: freshName(), retries: 0, instructions: 'helper', tools: [dig, bad, asksLeaf] })
    const asksHelper = agentTool(helper, { name: 'help', description: 'Asks.' })
    const root = defineAgent({
      name: freshName(),
      retries: 0,
      instructions: 'root',
      tools: [asksHelper, bad, begin],
    })
    const left = new Map(Object.entries(replies).map(([name, list]) => [name, [...list]]))
    await bench.script(({ messages }: LoggedRequest) => {
      const name = String(messages.find(({ role }) => role === 'system')?.content)
      return left.get(name)?.shift() ?? text('Nothing more.')
    })
    const mill = await bench.connect({ agents: [root] })
    return { mill, ended, chat: await mill.chats.create({ agent: root }) }
  }
  const asks = (name: string) => call(name, freshId(), { message: 'Find it.' })
  const only = async (chat: Chat): Promise<Chat> => {
    const [sub, ...more] = await chat.subChats()
    if (sub === undefined || more.length > 0) throw new Error('The chat has not exactly one sub-chat')
    return sub
  }

  it('are stopped by a cancel, though nothing else of the chat runs (E175)', async () => {
    const held = gate(text('Never.'))
    const { mill, chat } = await setUp({ root: [toolCalls([asks('help'), call('bad')])], helper: [held] })
    expect(await rejectionOf(chat.ask('Where?'))).to.have.property('message', 'out of order')
    mill.startWorkers()
    await held.reached
    const { turn } = await chatRow(mill, chat)
    await chat.cancel({ turn: turn + 1 })
    expect((await chatRow(mill, await only(chat))).cancelTurn).to.equal(null)
    await chat.cancel({ turn })
    const sub = await only(chat)
    await until('the sub-chat is stopped', async () => (await chatRow(mill, sub)).cancelledTurn === 1)
    const row = await chatRow(mill, chat)
    expect([row.wantedAt, row.cancelTurn, row.failure?.message]).to.deep.equal([null, null, 'out of order'])
  })

  it('are not in the way of a message that interrupts (E175)', async () => {
    const { mill, chat } = await setUp({
      root: [toolCalls([asks('help'), call('bad')]), text('So be it.')],
      helper: [toolCalls([call('dig')])],
    })
    expect(await rejectionOf(chat.ask('Where?'))).to.have.property('message', 'out of order')
    mill.startWorkers()
    const sub = await only(chat)
    await until('the sub-chat waits', () => sub.awaitingApproval())
    await chat.post('Never mind.', { whileRunning: 'interrupt' })
    await until('the message is answered', async () => (await chat.messages()).at(-1)?.content === 'So be it.')
    await until('the sub-chat is stopped', async () => (await chatRow(mill, sub)).cancelledTurn === 1)
  })

  it('are stopped where that turn was itself one of a sub-chat: nobody waits for them (E175)', async () => {
    const held = gate(text('Never.'))
    const { mill, chat } = await setUp({
      root: [toolCalls([asks('help')]), text('A pity.')],
      helper: [toolCalls([asks('leaf'), call('bad')])],
      leaf: [held],
    })
    mill.startWorkers()
    await chat.askLater('Where?', { enqueue: true })
    await until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    const [helper, leaf] = await chat.subChats()
    expect(await helper?.failure()).to.have.property('message', 'out of order')
    await until('the leaf is stopped', async () => (await chatRow(mill, leaf as Chat)).cancelledTurn === 1)
  })

  it('and its tasks are stopped where its question is edited (E175)', async () => {
    const { mill, chat, ended } = await setUp({
      root: [toolCalls([asks('help'), call('begin'), call('bad')]), text('So be it.')],
      helper: [toolCalls([call('dig')])],
    })
    expect(await rejectionOf(chat.ask('Where?'))).to.have.property('message', 'out of order')
    const sub = await only(chat)
    await sub.complete()
    await chat.edit((await chat.messages())[0]?.id ?? '', 'Who?')
    expect((await chatRow(mill, sub)).cancelTurn).to.equal(1)
    expect(ended).to.deep.equal(['job-1'])
    expect((await chat.complete())?.content).to.equal('So be it.')
  })

  it('are stopped too where the worker that asked them died, and the question is edited (E175)', async () => {
    const { mill, chat } = await setUp({
      root: [toolCalls([asks('help')]), text('So be it.')],
      helper: [toolCalls([call('dig')])],
    })
    await chat.ask('Where?')
    const sub = await only(chat)
    // As after the pause of the call was stored, and before the chat was given back.
    const dead = { claimed_by: 'dead', claimed_until: new Date(Date.now() - 1_000), wanted_at: new Date(), parked: 0 }
    await change(mill.models.Chat, chat.id, dead)
    await chat.edit((await chat.messages())[0]?.id ?? '', 'Who?')
    expect((await chatRow(mill, sub)).cancelTurn).to.equal(1)
    expect((await chat.complete())?.content).to.equal('So be it.')
  })

  it('is stopped where its call gets a result by hand (E175)', async () => {
    const { mill, chat } = await setUp({
      root: [toolCalls([asks('help')]), text('So be it.')],
      helper: [toolCalls([call('dig')])],
    })
    await chat.ask('Where?')
    const [help] = await lastCalls(chat)
    await chat.addMessage({ role: 'tool', toolCallId: help?.toolCallId ?? '', content: 'In the shed.' })
    expect((await chatRow(mill, await only(chat))).cancelTurn).to.equal(1)
    expect((await lastCalls(chat))[0]?.mcpState).to.equal(null)
    expect((await chat.complete())?.content).to.equal('So be it.')
  })

  it('are not taken up again by the worker that they were given up for want of, once nobody waits for them (E175)', async () => {
    const { mill, chat } = await setUp({
      root: [toolCalls([asks('help')]), text('So be it.')],
      helper: [toolCalls([call('dig')]), text('Never.')],
    })
    await chat.askLater('Where?')
    await chat.step()
    await chat.step()
    const sub = await only(chat)
    const failure = { code: 'configuration.missing_agent', message: 'x', turn: 1, at: new Date().toISOString() }
    await change(mill.models.Chat, sub.id, { failure: JSON.stringify(failure), wanted_at: null })
    await chat.cancel()
    expect(await rejectionOf(chat.complete())).to.be.instanceOf(CancelledError)
    // The start of a worker that has the agent lifts such failures.
    mill.startWorkers()
    await until('the sub-chat is stopped', async () => (await chatRow(mill, sub)).cancelledTurn === 1)
    expect((await sub.messages()).map(({ role }) => role)).to.deep.equal(['user'])
    expect(await sub.failure()).to.equal(null)
  })

  it('and wait for a worker that has the tool, as their calls do for them, where that is what they lack (E90)', async () => {
    const { mill, chat } = await setUp({
      root: [toolCalls([asks('help')]), text('So be it.')],
      helper: [toolCalls([call('dig')]), text('Here.')],
    })
    await chat.ask('Where?')
    const sub = await only(chat)
    await chat.approve((await chat.pendingApprovals())[0]?.id ?? '')
    const poor = await bench.connect({ agents: [defineAgent({ name: `${sub.agent}`, retries: 0 })] })
    await change(mill.models.Chat, sub.id, { put_off: 24 })
    await poor.jobs.complete.perform(sub.id, () => false).catch(() => {})
    expect((await chatRow(mill, sub)).failure?.code).to.equal('configuration.missing_agent')
    expect((await chatRow(mill, chat)).wantedAt).to.equal(null)
    mill.startWorkers()
    await until('it is answered', async () => (await chat.messages()).at(-1)?.content === 'So be it.')
    expect((await sub.messages()).at(-1)?.content).to.equal('Here.')
  })
})
