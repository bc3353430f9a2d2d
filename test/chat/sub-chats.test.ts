import { expect } from 'chai'
import * as z from 'zod'
import {
  agentTool,
  type Chat,
  ConfigurationError,
  type ConnectOptions,
  defineAgent,
  defineTool,
} from '../../src/index.ts'
import {
  gate,
  httpError,
  type LoggedRequest,
  type Reply,
  type Respond,
  text,
  toolCalls,
} from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { change, chatRow, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'
import { rejectionOf } from './support/watching.ts'

/** Replies by agent, which its instructions name; each agent has a list of its own. */
function scripts(lists: Readonly<Record<string, readonly Reply[]>>): Respond {
  const left = new Map(Object.entries(lists).map(([name, replies]) => [name, [...replies]]))
  return ({ messages }: LoggedRequest) => {
    const name = String(messages.find(({ role }) => role === 'system')?.content)
    const next = left.get(name)?.shift()
    if (next === undefined) throw new Error(`Agent ${name} was asked too often`)
    return next
  }
}

onEachDatabase('An agent as a tool', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 10_000, sweepEveryMs: 100 })

  /** A chat of an agent `root` that can ask an agent `helper`, and what both are said to reply. */
  async function setUp(
    replies: Readonly<Record<string, readonly Reply[]>>,
    {
      helper: more = {},
      tool = {},
      connect = {},
    }: {
      helper?: Partial<Parameters<typeof defineAgent>[0]>
      tool?: Partial<Parameters<typeof agentTool>[1]>
      connect?: ConnectOptions
    } = {},
  ) {
    const [rootName, helperName] = [freshName(), freshName()]
    const helper = defineAgent({ retries: 0, instructions: 'helper', ...more, name: helperName })
    const root = defineAgent({
      name: rootName,
      instructions: 'root',
      retries: 0,
      tools: [agentTool(helper, { name: 'help', description: 'Asks the helper.', ...tool })],
    })
    const model = await bench.script(scripts(replies))
    const options = { agents: [root], ...connect }
    const mill = await bench.connect(options)
    const chat = await mill.chats.create({ agent: root, owner: rootName })
    return { mill, model, root, helper, chat, options }
  }
  const asks = (id = freshId()) => toolCalls([call('help', id, { message: 'Find it.' })])
  const settled = (chat: Chat) =>
    until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()))
  const only = async (chat: Chat): Promise<Chat> => {
    const [sub, ...more] = await chat.subChats()
    if (sub === undefined || more.length > 0) throw new Error('The chat has not exactly one sub-chat')
    return sub
  }
  const said = async (chat: Chat) => (await chat.messages()).map(({ role, content }) => `${role}: ${content}`)

  it('answers a call in a chat of its own, run by workers, and its answer is the result, once (E90)', async () => {
    const id = freshId()
    const { mill, model, root, helper, chat } = await setUp({
      root: [asks(id), text('Found.')],
      helper: [text('Here.')],
    })
    mill.startWorkers()
    await chat.askLater('Where is it?', { enqueue: true })
    await settled(chat)
    expect(await said(chat)).to.deep.equal([
      'user: Where is it?',
      'assistant: null',
      'tool: Here.',
      'assistant: Found.',
    ])
    expect(await resultsById(chat)).to.deep.equal({ [id]: { content: 'Here.', outcome: 'succeeded' } })
    const sub = await only(chat)
    expect(await said(sub)).to.deep.equal(['user: Find it.', 'assistant: Here.'])
    expect([sub.agent, sub.owner, sub.parent?.chatId, chat.parent]).to.deep.equal([
      helper.name,
      root.name,
      chat.id,
      null,
    ])
    expect(model.requests).to.have.length(3)
    await until('the sub-chat is given back', async () => !(await sub.running()))
    expect(await sub.isComplete()).to.equal(true)
    expect((await chatRow(mill, sub)).wantedAt).to.equal(null)
  })

  it('is run by whoever runs the chat by hand, workers or not (E91)', async () => {
    const { chat, mill } = await setUp({ root: [asks(), text('Found.')], helper: [text('Here.')] })
    expect((await chat.ask('Where is it?'))?.content).to.equal('Found.')
    expect((await chatRow(mill, chat)).wantedAt).to.equal(null)
    expect(await said(await only(chat))).to.deep.equal(['user: Find it.', 'assistant: Here.'])
  })

  it('shows what it waits for on the chat at the top, where people decide, also after a restart (E91)', async () => {
    const runs: string[] = []
    const dig = recording('dig', runs, { requiresApproval: true })
    const id = freshId()
    const { chat, root, mill, options } = await setUp(
      { root: [asks(), text('Found.')], helper: [toolCalls([call('dig', id)]), text('Dug.')] },
      { helper: { tools: [dig] } },
    )
    const seen: string[] = []
    const stop = new AbortController()
    const watching = (async () => {
      for await (const event of chat.events({ signal: stop.signal })) {
        seen.push(event.type === 'approval.requested' ? `${event.type} ${event.toolCall.toolCallId}` : event.type)
      }
    })()
    const pool = mill.startWorkers()
    await chat.askLater('Where is it?', { enqueue: true })
    await until('it waits for a decision', () => chat.awaitingApproval())
    await until('viewers of the chat are told', () => seen.includes(`approval.requested ${id}`))
    await pool.close()
    stop.abort()
    await watching.catch(() => {})
    expect([await chat.waiting(), await chat.awaitingSubChats(), await chat.awaitingTasks()]).to.deep.equal([
      true,
      true,
      false,
    ])
    const sub = await only(chat)
    expect((await chat.pendingApprovals()).map((one) => [one.toolCallId, one.chatId])).to.deep.equal([[id, sub.id]])
    const { approvals } = await mill.approvals.list({ owner: root.name })
    expect(approvals.map(({ chatId, rootChatId }) => [chatId, rootChatId])).to.deep.equal([[sub.id, chat.id]])
    expect((await chat.diagnosis()).waitsFor).to.deep.include({
      ...(await chat.diagnosis()).waitsFor[0],
      subChatId: sub.id,
    })

    const later = await bench.connect(options)
    const joined: string[] = []
    const again = await later.chats.find(chat.id)
    for await (const event of again.events()) {
      joined.push(event.type)
      if (event.type === 'approval.requested') break
    }
    expect(joined).to.include('sub_chat.started')
    later.startWorkers()
    await again.approve(id, { by: 'ada' })
    await settled(again)
    expect(runs).to.deep.equal(['dig'])
    expect((await again.messages()).at(-1)?.content).to.equal('Found.')
    expect((await sub.decisions()).map(({ decidedBy }) => decidedBy)).to.deep.equal(['ada'])
    expect(await rejectionOf(again.approve('nowhere'))).to.have.property('code', 'argument')
  })

  it('asks its questions on the chat at the top, and takes edited arguments there (E91)', async () => {
    const parameters = z.object({ deep: z.int().optional() })
    const dig = defineTool({
      name: 'dig',
      description: 'Digs.',
      parameters,
      requiresApproval: true,
      execute: ({ deep }) => `${deep} deep`,
    })
    const wonder = defineTool({
      name: 'wonder',
      description: 'Asks.',
      parameters,
      execute: async (_, { ask }) => ask({ message: 'How?', fields: [{ name: 'how' }] }),
    })
    const { chat } = await setUp(
      { root: [asks(), text('Found.')], helper: [toolCalls([call('wonder'), call('dig')]), text('Dug.')] },
      { helper: { tools: [dig, wonder] } },
    )
    await chat.ask('Where?')
    expect([await chat.awaitingInput(), await chat.awaitingApproval()]).to.deep.equal([true, true])
    const [question] = await chat.pendingInputs()
    const [approval] = await chat.pendingApprovals()
    await chat.answer(question ?? '', { how: 'so' })
    expect(await rejectionOf(chat.approve(approval ?? '', { arguments: { deep: 'x' } }))).to.have.property(
      'code',
      'argument',
    )
    await chat.approve(approval ?? '', { arguments: { deep: 3 } })
    expect((await chat.complete())?.content).to.equal('Found.')
    const results = Object.values(await resultsById(await only(chat))).map(({ content }) => content)
    expect(results).to.deep.equal(['{"how":"so"}', '3 deep'])
  })

  it('is stopped with the chat: its request and its tools end, and nothing of it runs later (E92)', async () => {
    const held = gate(text('Never.'))
    const { chat, mill, model } = await setUp({ root: [asks(), text('Again.')], helper: [held] })
    mill.startWorkers()
    await chat.askLater('Where?', { enqueue: true })
    await held.reached
    await chat.cancel()
    await until('the chat is stopped', async () => !(await chat.cancelled()) && !(await chat.running()))
    const sub = await only(chat)
    await until('the sub-chat is stopped', async () => (await chatRow(mill, sub)).cancelledTurn === 1)
    expect((await said(chat)).at(-1)).to.include('interrupted')
    for (const one of [chat, sub]) {
      await until('nobody wants it', async () => (await chatRow(mill, one)).wantedAt === null)
      expect((await chatRow(mill, one)).claimedBy).to.equal(null)
    }
    expect(model.requests).to.have.length(2)
    await chat.askLater('Once more?', { enqueue: true })
    await settled(chat)
    expect((await chat.messages()).at(-1)?.content).to.equal('Again.')
  })

  it('is stopped too where its call is denied, where the chat is edited, and where it takes too long (E92)', async () => {
    const slow = () => recording('dig', [], { requiresApproval: true })
    const three = { root: [asks(), text('So be it.')], helper: [toolCalls([call('dig')])] }
    const denied = await setUp(three, { helper: { tools: [slow()] } })
    await denied.chat.ask('Where?')
    const help = (await denied.chat.messages()).flatMap(({ toolCalls: calls }) => calls)[0]
    await denied.chat.deny(help?.toolCallId ?? '', { reason: 'too dear' })
    expect((await denied.chat.complete())?.content).to.equal('So be it.')
    expect((await chatRow(denied.mill, await only(denied.chat))).cancelTurn).to.equal(1)

    const edited = await setUp(three, { helper: { tools: [slow()] } })
    await edited.chat.ask('Where?')
    await edited.chat.edit((await edited.chat.messages())[0]?.id ?? '', 'Who?')
    expect((await edited.chat.complete())?.content).to.equal('So be it.')
    expect((await chatRow(edited.mill, await only(edited.chat))).cancelTurn).to.equal(1)
    expect(await edited.chat.pendingApprovals()).to.deep.equal([])

    const late = await setUp(three, { helper: { tools: [slow()] }, tool: { expiresMs: 50 } })
    await late.chat.ask('Where?')
    late.mill.startWorkers()
    await settled(late.chat)
    expect(Object.values(await resultsById(late.chat))[0]?.content).to.include('did not answer in time')
    const sub = await only(late.chat)
    await until('it is stopped', async () => (await chatRow(late.mill, sub)).cancelledTurn === 1)
  })

  it('that fails, is stopped or deleted by itself is a result that says so (E90)', async () => {
    const failing = await setUp({ root: [asks(), text('A pity.')], helper: [httpError(401, 'No such key.')] })
    expect((await failing.chat.ask('Where?'))?.content).to.equal('A pity.')
    const [failed] = Object.values(await resultsById(failing.chat))
    expect(failed?.outcome).to.equal('failed')
    expect(failed?.content).to.include(failing.helper.name).and.to.include('could not answer')

    const waits = { root: [asks(), text('A pity.')], helper: [toolCalls([call('dig')])] }
    const dig = recording('dig', [], { requiresApproval: true })
    const stopped = await setUp(waits, { helper: { tools: [dig] } })
    await stopped.chat.ask('Where?')
    await (await only(stopped.chat)).cancel()
    expect((await stopped.chat.complete())?.content).to.equal('A pity.')
    expect(Object.values(await resultsById(stopped.chat))[0]?.outcome).to.equal('interrupted')

    const deleted = await setUp(waits, { helper: { tools: [dig] } })
    await deleted.chat.ask('Where?')
    await (await only(deleted.chat)).delete()
    expect((await deleted.chat.complete())?.content).to.equal('A pity.')
    expect(Object.values(await resultsById(deleted.chat))[0]?.outcome).to.equal('interrupted')
  })

  it('counts for the chat, is deleted with it, and stands in no list (E93)', async () => {
    const { chat, mill, root } = await setUp({ root: [asks(), text('Found.')], helper: [text('Here.')] })
    await chat.ask('Where?')
    const sub = await only(chat)
    const [all, own, theirs] = [await chat.tokens(), await mill.usage.total({ owner: root.name }), await sub.tokens()]
    expect(theirs.input).to.be.greaterThan(0)
    expect(all.input).to.equal(own.tokens.input)
    expect(all.input ?? 0).to.be.greaterThan(theirs.input ?? 0)
    expect((await mill.chats.list({ owner: root.name })).chats.map(({ id }) => id)).to.deep.equal([chat.id])
    expect((await mill.chats.search('Here.', { owner: root.name })).chats).to.deep.equal([])
    const fork = await mill.chats.fork(sub)
    expect([fork.parent, await fork.subChats()]).to.deep.equal([null, []])
    await chat.delete()
    expect(await mill.models.Chat.count({ where: { id: [chat.id, sub.id] } })).to.equal(0)
    expect(await mill.models.Message.count({ where: { chatId: sub.id } })).to.equal(0)
  })

  it('may ask agents itself, several at once, and all that they wait for shows at the top (E91)', async () => {
    const runs: string[] = []
    const dig = recording('dig', runs, { requiresApproval: true })
    const leaf = defineAgent({ name: freshName(), instructions: 'leaf', tools: [dig] })
    const twice = [call('help', freshId(), { message: 'a' }), call('help', freshId(), { message: 'b' })]
    const down = () => toolCalls([call('leaf', freshId(), { message: 'c' })])
    const { chat } = await setUp(
      {
        root: [toolCalls(twice), text('Found.')],
        helper: [down(), down(), text('1'), text('2')],
        leaf: [toolCalls([call('dig')]), toolCalls([call('dig')]), text('x'), text('y')],
      },
      { helper: { tools: [agentTool(leaf, { name: 'leaf', description: 'Asks.' })] } },
    )
    await chat.ask('Where?')
    const pending = await chat.pendingApprovals()
    expect(pending).to.have.length(2)
    expect([await chat.awaitingApproval(), runs]).to.deep.equal([true, []])
    expect(await chat.subChats()).to.have.length(4)
    for (const one of pending) await chat.approve(one)
    expect((await chat.complete())?.content).to.equal('Found.')
    expect(runs).to.deep.equal(['dig', 'dig'])
    const results = Object.values(await resultsById(chat)).map(({ content }) => content)
    expect(results.toSorted()).to.deep.equal(['1', '2'])
  })

  it('that asks itself comes to an end, which it is told of (E90)', async () => {
    const name = freshName()
    const agent = defineAgent({
      name,
      retries: 0,
      tools: [agentTool(name, { name: 'again', description: 'Asks itself.' })],
    })
    const model = await bench.script(({ messages }) => {
      const result = messages.findLast(({ role }) => role === 'tool')
      return result === undefined
        ? toolCalls([call('again', freshId(), { message: 'On.' })])
        : text(String(result.content))
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect((await chat.ask('Go.'))?.content).to.include('has 8 chats above it')
    expect(await chat.subChats()).to.have.length(8)
    expect(model.requests).to.have.length(17)
  })

  it('takes arguments and inputs of its own, and is refused where the process lacks it (E90, E94)', async () => {
    const { chat, mill } = await setUp(
      {
        root: [toolCalls([call('help', freshId(), { about: 'tea' })]), text('Found.')],
        'helper of tea': [text('Here.')],
      },
      {
        helper: {
          inputs: z.object({ topic: z.string() }),
          instructions: ({ inputs }) => `helper of ${String((inputs as { topic: string }).topic)}`,
        },
        tool: {
          parameters: z.object({ about: z.string() }),
          message: (args) => `About ${String((args as { about: string }).about)}`,
          inputs: (args) => ({ topic: (args as { about: string }).about }),
        },
      },
    )
    expect((await chat.ask('Where?'))?.content).to.equal('Found.')
    const sub = await only(chat)
    expect([sub.inputs, await said(sub)]).to.deep.equal([{ topic: 'tea' }, ['user: About tea', 'assistant: Here.']])

    const lost = defineAgent({
      name: freshName(),
      instructions: 'root',
      tools: [agentTool('nobody', { description: 'x' })],
    })
    await bench.script(toolCalls([call('nobody', freshId(), { message: 'x' })]))
    const strange = await (await bench.connect({ agents: [lost] })).chats.create({ agent: lost })
    expect(await rejectionOf(strange.ask('Where?'))).to.be.instanceOf(ConfigurationError)
    expect(await mill.models.Chat.count({ where: { parentId: strange.id } })).to.equal(0)
  })

  it('is told of by the run that holds its chat alone: one that lost it says nothing (E90)', async () => {
    const { chat, mill, options, model } = await setUp({
      root: [asks(), text('Found.')],
      helper: [httpError(401, 'No such key.'), text('Here.')],
    })
    const other = await bench.connect(options)
    // The claim lapses between the failure of the turn and the word of it.
    beforeNext(mill, 'reportToParent', async () => {
      await change(mill.models.Chat, (await only(chat)).id, { claimed_until: new Date(Date.now() - 1_000) })
    })
    await chat.ask('Where?')
    expect([await chat.waiting(), await resultsById(chat)]).to.deep.equal([true, {}])
    other.startWorkers()
    await settled(chat)
    expect((await chat.messages()).at(-1)?.content).to.equal('Found.')
    expect(Object.values(await resultsById(chat))).to.deep.equal([{ content: 'Here.', outcome: 'succeeded' }])
    expect(await (await only(chat)).failure()).to.equal(null)
    expect(model.requests).to.have.length(4)
  })

  it('that answers a turn which was given up meanwhile waits for whoever tries it again (E90)', async () => {
    const bad = recording('bad', [], {}, () => {
      throw new Error('out of order')
    })
    const dig = recording('dig', [], { requiresApproval: true })
    const helper = defineAgent({ name: freshName(), instructions: 'helper', tools: [dig] })
    const help = agentTool(helper, { name: 'help', description: 'Asks.' })
    const root = defineAgent({ name: freshName(), instructions: 'root', retries: 0, tools: [help, bad] })
    await bench.script(
      scripts({
        root: [toolCalls([call('help', freshId(), { message: 'x' }), call('bad')]), text('Found.')],
        helper: [toolCalls([call('dig')]), text('Here.')],
      }),
    )
    const mill = await bench.connect({ agents: [root] })
    const chat = await mill.chats.create({ agent: root })
    expect(await rejectionOf(chat.ask('Where?'))).to.have.property('message', 'out of order')
    const sub = await only(chat)
    await sub.complete()
    await sub.approve((await sub.pendingApprovals())[0] ?? '')
    await sub.complete()
    const row = await chatRow(mill, chat)
    expect([row.wantedAt, (await chat.failure())?.message]).to.deep.equal([null, 'out of order'])
    expect((await chat.complete())?.content).to.equal('Found.')
    expect(Object.values(await resultsById(chat))[0]?.content).to.equal('Here.')
  })

  it('is offered to connect by the tools that ask it, and must not share a name with another (E90)', async () => {
    const one = defineAgent({ name: 'one' })
    const ask = agentTool(one, { description: 'x' })
    const error = await rejectionOf(
      bench.connect({ agents: [defineAgent({ name: 'two', tools: [ask] }), defineAgent({ name: 'one' })] }),
    )
    expect(error).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes('one')
    const mill = await bench.connect({ tools: [ask] })
    expect((await mill.chats.create({ agent: 'one' })).agent).to.equal('one')
  })
})
