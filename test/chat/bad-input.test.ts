import { expect } from 'chai'
import * as z from 'zod'
import {
  type Agent,
  ArgumentError,
  AuthenticationError,
  ChatNotFoundError,
  ConfigurationError,
  defineAgent,
  defineTool,
  MissingAgentError,
  PendingToolCallsError,
  type Threadmill,
  type ThreadmillError,
  ToolCallRunningError,
} from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { allRows } from '../support/all-rows.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { rejectionOf } from './support/watching.ts'

const noChat = '00000000-0000-7000-8000-000000000000'
const support = defineAgent({ name: 'support' })
const refund = (description: string) =>
  defineTool({ name: 'refund', description, parameters: z.object({ order: z.number() }), execute: () => 'done' })

/** The act fails with an error of this class and code, and leaves every row as it was. */
async function refuses(
  mill: Threadmill,
  act: () => Promise<unknown>,
  errorClass: abstract new (...args: never[]) => ThreadmillError,
  code: string,
): Promise<ThreadmillError> {
  const before = await allRows(mill)
  const error = await rejectionOf(act())
  expect(error).to.be.instanceOf(errorClass)
  expect(error).to.have.property('code', code)
  expect(await allRows(mill)).to.deep.equal(before)
  return error as ThreadmillError
}

onEachDatabase('What an application gets wrong', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })

  it('is told that there is no such chat, by every way to name one', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const others: readonly unknown[] = [
      noChat,
      '',
      'nonsense',
      "' OR 1=1 --",
      null,
      7,
      chat.id.toUpperCase(),
      `${chat.id} `,
    ]
    for (const id of others) {
      const error = await refuses(mill, () => mill.chats.find(id as string), ChatNotFoundError, 'chat.not_found')
      if (typeof id === 'string') expect(error.message).to.include(id)
    }
    for (const job of [mill.jobs.complete, mill.jobs.runTools]) {
      const error = await refuses(mill, () => job.enqueue(noChat), ChatNotFoundError, 'chat.not_found')
      expect(error.chatId).to.equal(noChat)
    }
  })

  it('is told so too of a chat that was deleted after it was found', async () => {
    await bench.script(text('never asked'))
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await mill.models.Chat.destroy({ where: { id: chat.id } })
    const acts: readonly (() => Promise<unknown>)[] = [
      () => chat.ask('Hello?'),
      () => chat.askLater('Hello?'),
      () => chat.complete(),
      () => chat.step(),
      () => chat.generate(),
      () => chat.runTools(),
      () => chat.queue('Hello?'),
      () => chat.addMessage({ role: 'user', content: 'Hello?' }),
      () => chat.withTemperature(1).save(),
      () => chat.reload(),
      () => chat.isComplete(),
      () => chat.waiting(),
      () => chat.running(),
      () => chat.failure(),
      () => chat.pendingApprovals(),
      () => mill.jobs.complete.enqueue(chat),
    ]
    for (const act of acts) await refuses(mill, act, ChatNotFoundError, 'chat.not_found')
    expect(bench.model.requests).to.have.length(0)
  })

  it('can make no chat of an agent that the process lacks', async () => {
    const mill = await bench.connect({ agents: [support] })
    for (const agent of ['suport', { name: 'suport' }, 'Support', 'support ']) {
      const act = () => mill.chats.create({ agent })
      const error = await refuses(mill, act, MissingAgentError, 'configuration.missing_agent')
      expect(error).to.be.instanceOf(ConfigurationError)
      expect(error.message)
        .to.include(typeof agent === 'string' ? agent : agent.name)
        .and.include('connect({ agents })')
    }
  })

  it('can run no chat of an agent that the process lacks, and changes nothing by trying (R26)', async () => {
    await bench.script(text('never asked'))
    const [web, worker] = [await bench.connect({ agents: [support] }), await bench.connect()]
    const chat = await web.chats.create({ agent: support })
    await chat.askLater('Hello?')
    const foreign = await worker.chats.find(chat.id)
    const acts = [() => foreign.complete(), () => foreign.step(), () => foreign.generate(), () => foreign.runTools()]
    for (const act of acts) {
      const error = await refuses(web, act, MissingAgentError, 'configuration.missing_agent')
      expect(error.message).to.include('"support"').and.include(chat.id)
    }
    expect(bench.model.requests).to.have.length(0)
  })

  it('leaves the job of such a chat to a worker that has the agent (R26)', async () => {
    await bench.script(text('Hello.'))
    const [web, worker] = [await bench.connect({ agents: [support] }), await bench.connect()]
    const chat = await web.chats.create({ agent: support })
    await worker.startWorkers({ complete: 1, runTools: 0 }).ready()
    await chat.askLater('Hello?', { enqueue: true })
    const row = () => web.models.Chat.findByPk(chat.id)
    await until('the worker puts it off', async () => ((await row())?.putOff ?? 0) > 0)
    expect((await row())?.wantedAt).to.be.instanceOf(Date)
    expect(await chat.failure()).to.equal(null)
    expect(bench.model.requests).to.have.length(0)
    await web.startWorkers({ complete: 1, runTools: 0 }).ready()
    await until('the other worker answers', () => chat.isComplete())
    expect((await chat.messages()).at(-1)?.content).to.equal('Hello.')
  })

  it('can give no agent, and no process, two tools of one name', async () => {
    const mill = await bench.connect()
    const tools = [refund('Refunds an order.'), refund('Refunds a fee.')]
    const agents: readonly (() => unknown)[] = [() => defineAgent({ name: 'till', tools })]
    for (const define of agents) expect(define).to.throw(ConfigurationError, /refund/)
    const till = defineAgent({ name: 'till', tools: tools.slice(0, 1) })
    const connects: readonly { tools?: typeof tools; agents?: Agent[] }[] = [
      { tools },
      { agents: [till], tools: tools.slice(1) },
      { agents: [till, defineAgent({ name: 'till' })] },
    ]
    for (const options of connects) {
      const error = await refuses(mill, () => bench.connect(options), ConfigurationError, 'configuration')
      expect(error.message).to.match(/"?(refund|till)"?/)
    }
  })

  it('lets no tool see arguments that its schema refuses, and tells the model why', async () => {
    const seen: unknown[] = []
    const strict = defineTool({
      name: 'refund',
      description: 'Refunds an order.',
      parameters: z.object({ order: z.number() }),
      execute: (args) => {
        seen.push(args)
        return 'done'
      },
    })
    const call = (args: object) => ({ name: 'refund', arguments: args })
    await bench.script([
      toolCalls([call({ order: 'forty-two' }), call({}), call({ order: 1, hurry: true }), call({ order: 42 })]),
      text('One of four.'),
    ])
    const agent = defineAgent({ name: 'till', tools: [strict] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect((await chat.ask('Refund it.'))?.content).to.equal('One of four.')
    expect(seen).to.deep.equal([{ order: 42 }])
    const results = (await chat.messages()).filter((message) => message.role === 'tool')
    expect(results.map((message) => message.outcome)).to.deep.equal(['failed', 'failed', 'failed', 'succeeded'])
    const told = results.map((message) => message.content ?? '')
    expect(told[0]).to.match(/Invalid arguments.*order/)
    expect(told[1]).to.match(/order is missing/)
    expect(told[2]).to.match(/hurry is unknown/)
    expect(told[3]).to.equal('done')
  })

  it('learns that its API key is refused, without the key in any message or row', async () => {
    const key = 'sk-live-1234567890abcdefghij'
    await bench.script(httpError(401, `Incorrect API key provided: ${key}.`))
    const mill = await bench.connect({ openaiApiKey: key })
    const chat = await mill.chats.create()
    const error = await rejectionOf(chat.ask('Hello?'))
    expect(error).to.be.instanceOf(AuthenticationError).and.have.property('code', 'provider.authentication')
    expect(bench.model.requests, 'requests').to.have.length(1)
    const failure = await chat.failure()
    expect(failure?.code).to.equal('provider.authentication')
    const rows = await allRows(mill)
    expect((rows.usages as { errorCode: string }[]).at(-1)?.errorCode).to.equal('provider.authentication')
    const said = [error, (error as Error).cause].map((part) => `${part instanceof Error ? part.stack : part}`)
    expect(said.join() + JSON.stringify([error, failure, rows])).to.not.include(key)
    expect((error as Error).message).to.match(/API key/i)
    expect(await chat.messages()).to.have.length(1)
  })

  it('is refused what no chat can take, before anything is stored', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const acts: readonly (() => Promise<unknown>)[] = [
      () => chat.ask(''),
      () => chat.askLater(undefined as unknown as string),
      () => chat.queue(7 as unknown as string),
      () => chat.addMessage({ role: 'wizard' as 'user', content: 'x' }),
      () => chat.addMessage({ role: 'tool', content: 'x', toolCallId: 'call_none' }),
      () => chat.approve('call_none'),
      () => chat.deny(noChat),
      () => mill.chats.create({ colour: 'red' } as object),
      async () => chat.withTemperature(3),
      async () => chat.withTemperature(Number.NaN),
      async () => chat.withMaxOutputTokens(0.5),
      async () => chat.withModel(''),
      async () => chat.withTools('nobody'),
    ]
    for (const act of acts) await refuses(mill, act, ArgumentError, 'argument')
  })

  it('can neither ask while calls are open nor deny one that runs (S42, S23)', async () => {
    await bench.script([toolCalls([{ name: 'refund', arguments: { order: 1 } }]), text('Refunded.')])
    let letGo = (_: unknown) => {}
    const held = new Promise((resolve) => {
      letGo = resolve
    })
    const slow = defineTool({
      name: 'refund',
      description: 'Refunds an order.',
      parameters: z.object({ order: z.number() }),
      requiresApproval: true,
      execute: () => held,
    })
    const agent = defineAgent({ name: 'till', tools: [slow] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Refund order 1.')
    const asking = () => chat.askLater('And order 2.')
    await refuses(mill, asking, PendingToolCallsError, 'chat.pending_tool_calls')
    const [call] = await chat.pendingApprovals()
    if (call === undefined) throw new Error('No call waits')
    await chat.approve(call, { wake: false })
    const running = chat.complete()
    await until('the tool runs', async () => (await mill.models.ToolCall.findByPk(call.id))?.running())
    await refuses(mill, () => chat.deny(call, { wake: false }), ToolCallRunningError, 'tool_call.running')
    letGo('done')
    expect((await running)?.content).to.equal('Refunded.')
  })
})
