import { createServer } from 'node:http'
import { expect } from 'chai'
import * as z from 'zod'
import {
  ArgumentError,
  type Chat,
  ConfigurationError,
  type ConnectOptions,
  defineAgent,
  InvalidToolChoiceError,
  openAiClient,
  type SettingsInput,
  type Threadmill,
} from '../../src/index.ts'
import { rawBody, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { lastCalls, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

const order = z.object({ item: z.string(), count: z.int() })
const orderSchema = {
  type: 'object',
  properties: { item: { type: 'string' }, count: { type: 'integer' } },
  required: ['item', 'count'],
}

interface Line {
  readonly set: (chat: Chat, value: never, options?: { persist?: boolean }) => Chat
  readonly read: (chat: Chat) => unknown
  readonly value: unknown
  /** As it is read and stored; left out: the value. */
  readonly stored?: unknown
  /** What the request says of it. */
  readonly sent: object | ((chat: Chat) => object)
  readonly bad: readonly unknown[]
}

const table: { readonly [Key in keyof SettingsInput]-?: Line } = {
  temperature: {
    set: (chat, value, options) => chat.withTemperature(value, options),
    read: (chat) => chat.temperature,
    value: 0.5,
    sent: { temperature: 0.5 },
    bad: [-1, 2.1, Number.NaN, '1', undefined],
  },
  maxOutputTokens: {
    set: (chat, value, options) => chat.withMaxOutputTokens(value, options),
    read: (chat) => chat.maxOutputTokens,
    value: 99,
    sent: { max_completion_tokens: 99 },
    bad: [0, 1.5, '1', undefined],
  },
  providerOptions: {
    set: (chat, value, options) => chat.withProviderOptions(value, options),
    read: (chat) => chat.providerOptions,
    value: { seed: 7, logit_bias: { 50: -1 } },
    sent: { seed: 7, logit_bias: { 50: -1 } },
    bad: [[], 'seed', 7, undefined, { at: 1n }, new Date(), new Map([['seed', 7]]), { toJSON: () => [7] }],
  },
  endUser: {
    set: (chat, value, options) => chat.withEndUser(value, options),
    read: (chat) => chat.endUser,
    value: 'user-7',
    sent: { user: 'user-7' },
    bad: ['', 7, 'x'.repeat(256), undefined],
  },
  schema: {
    set: (chat, value, options) => chat.withSchema(value, options),
    read: (chat) => chat.schema,
    value: { name: 'an order!', schema: orderSchema, strict: true },
    stored: { name: 'an_order_', schema: { ...orderSchema, additionalProperties: false }, strict: true },
    sent: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'an_order_', schema: { ...orderSchema, additionalProperties: false }, strict: true },
      },
    },
    bad: ['order', 7, { type: 'string' }, { schema: 7 }, undefined],
  },
  toolOptions: {
    set: (chat, value, options) => chat.withToolOptions(value, options),
    read: (chat) => chat.toolOptions,
    value: { choice: 'read', calls: 'one', concurrency: true, workers: 3, rounds: 4 },
    sent: { tool_choice: { type: 'function', function: { name: 'read' } }, parallel_tool_calls: false },
    bad: [
      { choice: 7 },
      { calls: 0 },
      { calls: 'few' },
      { workers: 0 },
      { rounds: 1.5 },
      { speed: 1 },
      'auto',
      undefined,
    ],
  },
  thinking: {
    set: (chat, value, options) => chat.withThinking(value, options),
    read: (chat) => chat.thinking,
    value: { effort: 'low' },
    sent: { reasoning_effort: 'low' },
    bad: ['low', { effort: 'much' }, { budget: 0 }, { display: 'all' }, { depth: 1 }, undefined],
  },
  citations: {
    set: (chat, value, options) => chat.withCitations(value, options),
    read: (chat) => chat.citations,
    value: false,
    sent: {},
    bad: ['no', 1, undefined],
  },
  caching: {
    set: (chat, value, options) => chat.withCaching(value, options),
    read: (chat) => chat.caching,
    value: { retention: '24h' },
    sent: (chat) => ({ prompt_cache_key: chat.id, prompt_cache_retention: '24h' }),
    bad: [{ key: '' }, { retention: '1h' }, { ttl: 1 }, 'yes', undefined],
  },
  compaction: {
    set: (chat, value, options) => chat.withCompaction(value, options),
    read: (chat) => chat.compaction,
    value: { at: 50_000 },
    sent: {},
    bad: [{ at: 0 }, { at: '1' }, { keep: -1 }, 7, undefined],
  },
  fallbacks: {
    set: (chat, value, options = {}) =>
      value === null
        ? chat.withFallbacks(null, options)
        : chat.withFallbacks(...(value as { models: string[] }).models, options),
    read: (chat) => chat.fallbacks,
    value: { models: ['second'] },
    stored: { models: [{ model: 'second' }] },
    sent: {},
    bad: [{ models: [] }, { models: [7] }, { models: [''] }],
  },
}
const settings = Object.entries(table) as [keyof SettingsInput, Line][]

onEachDatabase('A setter', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  const body = (at = -1) => (bench.model.requests.at(at)?.body ?? {}) as Record<string, unknown>
  const tools = [recording('read', []), recording('write', [])]
  const withAgent = (options: Partial<ConnectOptions> = {}) => ({
    agents: [defineAgent({ name: freshName(), tools })],
    ...options,
  })
  const newChat = async (mill: Threadmill, options: ConnectOptions) => mill.chats.create({ agent: options.agents?.[0] })

  for (const [name, line] of settings) {
    it(`of ${name} is stored, read back, kept to by a worker of another process, and taken back by null`, async () => {
      await bench.script(() => text('{"item":"cup","count":2}'))
      const options = withAgent()
      const web = await bench.connect(options)
      const chat = await newChat(web, options)
      expect(line.read(chat)).to.equal(null)
      for (const bad of line.bad) {
        const error = await errorFrom(() => line.set(chat, bad as never))
        expect(error, JSON.stringify(String(bad))).to.be.instanceOf(ArgumentError)
        expect((error as Error).message).to.contain(chat.id)
      }
      expect(line.read(chat)).to.equal(null)
      expect(line.set(chat, line.value as never)).to.equal(chat)
      const stored = line.stored ?? line.value
      expect(line.read(chat)).to.deep.equal(stored)
      await chat.askLater('Go')
      const row = await web.models.Chat.findByPk(chat.id)
      expect(row?.settings).to.deep.equal({ [name]: stored })

      const worker = await bench.connect(options)
      const found = await worker.chats.find(chat.id)
      expect(line.read(found)).to.deep.equal(stored)
      await found.complete()
      const sent = typeof line.sent === 'function' ? line.sent(chat) : line.sent
      expect(body()).to.deep.include(sent)
      const without = body()
      line.set(found, null as never)
      expect(line.read(found)).to.equal(null)
      await found.ask('Again')
      for (const key of Object.keys(sent)) expect(body(), key).to.not.have.property(key)
      expect(Object.keys(without).length).to.be.at.least(Object.keys(body()).length)
    })
  }

  it('may be of an agent, beaten by the chat, and given to a new chat', async () => {
    await bench.script(() => text('Yes'))
    const agent = defineAgent({ name: freshName(), temperature: 1, endUser: 'agent', thinking: { effort: 'high' } })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent, temperature: 0, caching: { key: 'shared' } })
    expect([chat.temperature, chat.endUser, chat.thinking]).to.deep.equal([0, 'agent', { effort: 'high' }])
    await chat.withThinking(false).ask('Go')
    expect(body()).to.deep.include({
      temperature: 0,
      user: 'agent',
      reasoning_effort: 'none',
      prompt_cache_key: 'shared',
    })
    expect(await errorFrom(() => mill.chats.create({ temperature: 3 }))).to.be.instanceOf(ArgumentError)
  })

  for (const [name, line] of settings) {
    it(`of ${name} with persist: false is in no row, and null takes it back (E20)`, async () => {
      const options = withAgent()
      const mill = await bench.connect(options)
      const chat = await newChat(mill, options)
      line.set(chat, line.value as never, { persist: false })
      await (await chat.save()).reload()
      expect(line.read(chat)).to.deep.equal(line.stored ?? line.value)
      expect((await mill.models.Chat.findByPk(chat.id))?.settings).to.deep.equal({})
      expect(line.read(line.set(chat, null as never, { persist: false }))).to.equal(null)
      for (const bad of [{ persist: 'no' }, { persists: false }]) {
        const error = await errorFrom(() => line.set(chat, line.value as never, bad as never))
        expect(error).to.be.instanceOf(ArgumentError)
      }
      expect(line.read(chat)).to.equal(null)
    })
  }

  it('of tool options keeps each option where it was set, by itself (E20)', async () => {
    await bench.script(() => text('Yes'))
    const options = withAgent()
    const mill = await bench.connect(options)
    const chat = await newChat(mill, options)
    chat.withToolOptions({ choice: 'none', rounds: 3 }).withToolOptions({ rounds: 2, calls: 'one' }, { persist: false })
    expect(chat.toolOptions).to.deep.equal({ choice: 'none', rounds: 2, calls: 'one' })
    await chat.ask('Go')
    expect(body()).to.deep.include({ tool_choice: 'none', parallel_tool_calls: false })
    expect((await mill.models.Chat.findByPk(chat.id))?.settings).to.deep.equal({
      toolOptions: { choice: 'none', rounds: 3 },
    })
    chat.withToolOptions({ rounds: 9 })
    expect(chat.toolOptions).to.deep.equal({ choice: 'none', rounds: 9, calls: 'one' })
    chat.withToolOptions({ calls: null }, { persist: false })
    expect(chat.toolOptions).to.deep.equal({ choice: 'none', rounds: 9 })
    expect(chat.withToolOptions(null).toolOptions).to.equal(null)
  })

  it('of tools with persist: false offers them in the runs of the object alone (E20)', async () => {
    await bench.script(() => text('Yes'))
    const options = withAgent()
    const mill = await bench.connect(options)
    const chat = await newChat(mill, options)
    const offered = () => (body().tools as { function: { name: string } }[]).map((tool) => tool.function.name)
    await chat.withTools('read').withTools(recording('dig', []), { persist: false }).ask('Go')
    expect(offered()).to.deep.equal(['read', 'dig'])
    await (await mill.chats.find(chat.id)).ask('Go')
    expect(offered()).to.deep.equal(['read'])
    await (await chat.withTools('write').reload()).ask('Go')
    expect(offered()).to.deep.equal(['read', 'write', 'dig'])
    expect([...chat.withTools(null, { persist: false }).tools.keys()]).to.deep.equal(['read', 'write'])
    const error = await errorFrom(() => chat.withTools('read', { persists: false } as never))
    expect(error).to.be.instanceOf(ArgumentError)
  })

  it('with persist: false counts for the object alone, survives reload, and beats what is stored (E20)', async () => {
    await bench.script(() => text('Yes'))
    const mill = await bench.connect()
    const chat = await mill.chats.create({ temperature: 1 })
    chat.withTemperature(0, { persist: false }).withEndUser('me', { persist: false })
    await (await chat.reload()).ask('Go')
    expect(body()).to.deep.include({ temperature: 0, user: 'me' })
    expect((await mill.models.Chat.findByPk(chat.id))?.settings).to.deep.equal({ temperature: 1 })
    await (await mill.chats.find(chat.id)).ask('Go')
    expect(body()).to.deep.include({ temperature: 1 })
    expect(body()).to.not.have.property('user')
    await chat.withTemperature(0.5).ask('Go')
    expect(body()).to.deep.include({ temperature: 0.5 })
  })

  it('of a schema takes Zod, names it, and answers are read by `parsed`; null asks for free text', async () => {
    await bench.script([text('{"item":"cup","count":2}'), text('A cup.')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const answer = await chat.withSchema(order).ask('Order a cup')
    expect(answer?.parsed).to.deep.equal({ item: 'cup', count: 2 })
    expect(answer?.content).to.equal('{"item":"cup","count":2}')
    expect((await chat.messages())[1]?.parsed).to.deep.equal({ item: 'cup', count: 2 })
    expect(Object.keys(answer ?? {})).to.not.include('parsed')
    const format = body().response_format as { json_schema: { name: string; schema: { required: string[] } } }
    expect(format.json_schema.name).to.equal('response')
    expect(format.json_schema.schema.required).to.deep.equal(['item', 'count'])
    expect((await chat.withSchema(null).ask('And in words?'))?.parsed).to.equal(null)
  })

  it('of the tool choice forces the first round of each turn only, whoever goes on (S82)', async () => {
    await bench.script([toolCalls([call('read', freshId())]), text('Read.'), text('No need.')])
    const options = withAgent()
    const [web, worker] = [await bench.connect(options), await bench.connect(options)]
    const chat = await newChat(web, options)
    await chat.withToolOptions({ choice: 'required' }).askLater('Go')
    await chat.generate()
    await (await worker.chats.find(chat.id)).complete()
    await chat.ask('Again')
    const choices = bench.model.requests.map(({ body: sent }) => (sent as { tool_choice?: string }).tool_choice)
    expect(choices).to.deep.equal(['required', undefined, 'required'])
  })

  it('of the tool choice does not force a call again after a message that steered the turn (S82)', async () => {
    await bench.script([toolCalls([call('read', freshId())]), text('Read.')])
    const options = withAgent()
    const mill = await bench.connect(options)
    const chat = await newChat(mill, options)
    await chat.withToolOptions({ choice: 'required' }).askLater('Go')
    await chat.generate()
    await chat.queue('And be short', { steer: true, wake: false })
    await chat.complete()
    expect((await chat.messages()).map(({ role }) => role)).to.deep.equal([
      'user',
      'assistant',
      'tool',
      'user',
      'assistant',
    ])
    const choices = bench.model.requests.map(({ body: sent }) => (sent as { tool_choice?: string }).tool_choice)
    expect(choices).to.deep.equal(['required', undefined])
  })

  it('of the tool choice must name a tool of the chat', async () => {
    await bench.script(() => text('Yes'))
    const options = withAgent()
    const mill = await bench.connect(options)
    const chat = await newChat(mill, options)
    for (const choice of ['dig', '', 7] as never[]) {
      expect(await errorFrom(() => chat.withToolOptions({ choice }))).to.be.instanceOf(InvalidToolChoiceError)
    }
    const twoBad = await errorFrom(() => chat.withToolOptions({ choice: 7 as never, rounds: 0 }))
    expect(twoBad).to.be.instanceOf(ArgumentError).and.not.instanceOf(InvalidToolChoiceError)
    expect(chat.toolOptions).to.equal(null)
    await chat.withTools('read').withToolOptions({ choice: 'write' }).askLater('Go')
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(InvalidToolChoiceError)
    expect(bench.model.requests).to.have.length(0)
  })

  it('of calls lets the first ones of an answer run and refuses the rest, without asking for approval (S81)', async () => {
    const ids = Array.from({ length: 200 }, () => freshId())
    const runs: string[] = []
    const replies = [toolCalls(ids.map((id, at) => call(at < 100 ? 'read' : 'guarded', id))), text('Fifty read.')]
    await bench.script(replies)
    let asked = 0
    const requiresApproval = () => {
      asked++
      return null
    }
    const agent = defineAgent({
      name: freshName(),
      tools: [recording('read', runs), recording('guarded', runs, { requiresApproval })],
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect((await chat.withToolOptions({ calls: 50 }).ask('Go'))?.content).to.equal('Fifty read.')
    expect(runs).to.deep.equal(Array(50).fill('read'))
    const results = await resultsById(chat)
    const outcomes = [...Array(50).fill('succeeded'), ...Array(150).fill('failed')]
    expect(ids.map((id) => results[id]?.outcome)).to.deep.equal(outcomes)
    expect(results[ids[199] ?? '']?.content).to.match(/^\{"error":.*first 50/)
    expect((await lastCalls(chat)).map(({ approval }) => approval)).to.deep.equal(Array(200).fill(null))
    expect(asked).to.equal(0)
    expect(bench.model.requests[1]?.messages.filter(({ role }) => role === 'tool')).to.have.length(200)
  }).timeout(60_000)

  it('of rounds and concurrency beats the agent’s', async () => {
    await bench.script(() => toolCalls([call('write', freshId())]))
    const agent = defineAgent({ name: freshName(), tools, rounds: 9, concurrency: 2 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect(chat.concurrency).to.equal(2)
    expect(chat.withToolOptions({ concurrency: true }).concurrency).to.equal(8)
    expect(chat.withToolOptions({ workers: 5 }).concurrency).to.equal(5)
    expect(chat.withToolOptions({ concurrency: false }).concurrency).to.equal(1)
    chat.withToolOptions({ workers: null })
    expect(chat.toolOptions).to.deep.equal({ concurrency: false })
    expect([...chat.tools.keys()]).to.deep.equal(['read', 'write'])
    expect([...chat.withTools('write').tools.keys()]).to.deep.equal(['write'])
    const error = await errorFrom(() => chat.withToolOptions({ rounds: 1 }).ask('Go'))
    expect((error as { code?: string }).code).to.equal('chat.tool_round_limit')
    expect(bench.model.requests).to.have.length(1)
  })

  it('of thinking may hide what the model thinks, and of citations drop what it cites', async () => {
    const message = {
      role: 'assistant',
      content: 'Yes',
      reasoning: 'Hm',
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example', title: 'A' } }],
    }
    const reply = () =>
      rawBody(JSON.stringify({ id: 'cc', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    await bench.script(reply)
    const agent = defineAgent({ name: freshName(), streaming: false })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const shown = await chat.ask('Go')
    expect(shown?.thinkingText).to.equal('Hm')
    expect(shown?.citations).to.have.length(1)
    const hidden = await chat.withThinking({ display: 'omitted' }).withCitations(false).ask('Again')
    expect([hidden?.thinkingText, hidden?.citations]).to.deep.equal([null, null])
  })

  it('of thinking and cache boundaries speaks the words of OpenRouter where that is asked (S103)', async () => {
    await bench.script(() => text('Yes'))
    const client = openAiClient({ apiKey: 'k', baseURL: bench.model.url, provider: 'openrouter' })
    const agent = defineAgent({ name: freshName(), client })
    const [web, worker] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await web.chats.create({ agent })
    expect(await errorFrom(() => chat.cacheUntilHere())).to.be.instanceOf(ArgumentError)
    expect(await chat.withInstructions('Long prompt').cacheUntilHere({ ttl: '1h' })).to.equal(chat)
    chat
      .withThinking({ budget: 500, display: 'omitted' })
      .withInstructions('Shorter', { append: true, cacheUntilHere: true })
    await chat.askLater('Go')
    expect(await errorFrom(() => chat.cacheUntilHere({ ttl: 'long' }))).to.be.instanceOf(ArgumentError)
    await (await worker.chats.find(chat.id)).complete()
    expect(body().reasoning).to.deep.equal({ max_tokens: 500, exclude: true })
    expect(body().messages).to.deep.equal([
      {
        role: 'system',
        content: [{ type: 'text', text: 'Long prompt', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      },
      { role: 'system', content: [{ type: 'text', text: 'Shorter', cache_control: { type: 'ephemeral' } }] },
      { role: 'user', content: 'Go' },
    ])
    await chat.withCaching(false).ask('Again')
    expect(JSON.stringify(body())).to.not.contain('cache_control')
    const stored = await web.models.Message.findAll({ where: { chatId: chat.id, role: 'system' }, order: ['position'] })
    expect(stored.map((row) => row.cacheBoundary)).to.deep.equal([{ ttl: '1h' }, true])
  })

  it('of instructions keeps them out of the table with persist: false, through reload and in place (S102)', async () => {
    await bench.script(() => text('Yes'))
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const said = () =>
      bench.model.requests
        .at(-1)
        ?.messages.filter(({ role }) => role === 'system')
        .map(({ content }) => content)
    await chat.withInstructions('Stored').save()
    chat.withInstructions('It is Monday.', { append: true, persist: false })
    await (await chat.reload()).ask('Go')
    expect(said()).to.deep.equal(['Stored', 'It is Monday.'])
    await chat.withInstructions('Only this', { persist: false }).ask('Go')
    expect(said()).to.deep.equal(['Only this'])
    expect(await mill.models.Message.count({ where: { chatId: chat.id, role: 'system' } })).to.equal(1)
    await chat.withInstructions(null, { persist: false }).ask('Go')
    expect(said()).to.deep.equal(['Stored'])
  })

  it('of instructions takes its own options and no others, and a text or null', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const bad = [{ persists: false }, { persist: 'no' }, { append: 1 }, { cacheUntilHere: 'yes' }, null, 'append']
    const acts = [
      ...bad.map((options) => () => chat.withInstructions('Stored', options as never)),
      () => chat.withInstructions(7 as never),
      () => chat.withInstructions('Stored', { cacheUntilHere: { ttl: 'long' } }),
    ]
    for (const act of acts) {
      const error = await errorFrom(act)
      expect(error).to.be.instanceOf(ArgumentError)
      expect((error as Error).message).to.contain(chat.id)
    }
    await chat.save()
    expect(await mill.models.Message.count({ where: { chatId: chat.id } })).to.equal(0)
  })

  it('of headers and context is never stored; workers get theirs from the agent and contextFor (E21)', async () => {
    await bench.script(() => text('Yes'))
    const headers = () => bench.model.requests.at(-1)?.headers ?? {}
    const agent = defineAgent({ name: freshName(), headers: { 'x-team': 'blue' } })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent, owner: 'tenant-7' })
    expect(chat.headers).to.deep.equal({ 'x-team': 'blue' })
    chat
      .withHeaders({ 'x-team': 'red' })
      .withContext({ apiKey: 'key-of-a-tenant', organization: 'org-7', headers: { 'x-tenant': '7' } })
    chat.withHeaders({ ...chat.headers, 'x-trace': 't1' })
    expect(chat.headers).to.deep.equal({ 'x-team': 'red', 'x-trace': 't1' })
    chat.withHeaders({ 'x-trace': 't1' })
    expect(chat.headers).to.deep.equal({ 'x-team': 'blue', 'x-trace': 't1' })
    await chat.withHeaders({ 'x-team': 'red' }).ask('Go')
    expect(headers()).to.include({ 'x-team': 'red', 'x-tenant': '7', 'openai-organization': 'org-7' })
    const rows = JSON.stringify(await mill.models.Chat.findByPk(chat.id))
    expect(rows).to.not.match(/key-of-a-tenant|red/)
    await chat.withHeaders(null).withContext(null).ask('Go')
    expect(headers()).to.include({ 'x-team': 'blue' }).and.not.have.property('openai-organization')

    const asked: unknown[] = []
    const worker = await bench.connect({
      agents: [agent],
      contextFor: async (of) => {
        asked.push(of)
        return { organization: `org-of-${of.owner}` }
      },
    })
    await chat.askLater('Go', { enqueue: true })
    await worker.startWorkers({ complete: 1 }).ready()
    await until('the worker answered', async () => (await chat.isComplete()) && !(await chat.running()))
    expect(headers()).to.include({ 'openai-organization': 'org-of-tenant-7' })
    expect(asked[0]).to.deep.equal({ id: chat.id, agent: agent.name, owner: 'tenant-7' })
  })

  it('of context uses its key, endpoint and client in place of the configured ones (E21)', async () => {
    const seen: string[] = []
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization ?? '')
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const baseURL = `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`
    try {
      const mill = await bench.connect()
      const chat = await mill.chats.create()
      const asked = await errorFrom(() => chat.withContext({ apiKey: 'key-of-a-tenant', baseURL }).ask('Go'))
      expect((asked as { code?: string }).code).to.equal('provider.authentication')
      expect(String(asked)).to.not.contain('key-of-a-tenant')
      const client = openAiClient({ apiKey: 'key-of-a-client', baseURL, provider: 'elsewhere' })
      await errorFrom(() => chat.withContext({ client }).complete())
      expect(seen).to.deep.equal(['Bearer key-of-a-tenant', 'Bearer key-of-a-client'])
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  })

  it('of context reaches a client that the agent brings, or sends nothing (E21)', async () => {
    await bench.script(() => text('Yes'))
    const client = openAiClient({ apiKey: 'key-of-the-house', baseURL: bench.model.url, organization: 'house' })
    const { withAccess: _, ...fixed } = client
    const agents = [client, fixed].map((own) => defineAgent({ name: freshName(), client: own }))
    const mill = await bench.connect({ agents, contextFor: () => ({ organization: 'tenant' }) })
    const chats = await Promise.all(agents.map((agent) => mill.chats.create({ agent })))
    await chats[0]?.ask('Go')
    expect(bench.model.requests.map(({ headers }) => headers['openai-organization'])).to.deep.equal(['tenant'])
    expect(await errorFrom(() => chats[1]?.ask('Go'))).to.be.instanceOf(ConfigurationError)
    expect(bench.model.requests).to.have.length(1)
    await chats[1]?.withContext({ headers: { 'x-tenant': '7' } }).complete()
    expect(bench.model.requests.at(-1)?.headers).to.include({ 'openai-organization': 'house', 'x-tenant': '7' })
  })

  it('of headers and context refuses what can not be used, without quoting it (E21)', async () => {
    const mill = await bench.connect({ contextFor: () => ({ apiKey: 7 }) as never })
    const chat = await mill.chats.create()
    for (const bad of [{ 'bad name': 'x' }, { good: 'line\nbreak' }, { good: 7 }, 'x', undefined]) {
      expect(await errorFrom(() => chat.withHeaders(bad as never))).to.be.instanceOf(ArgumentError)
    }
    for (const bad of [{ apiKey: '' }, { baseURL: 'ftp://x' }, { secret: 'hush' }, { client: {} }, 'x', undefined]) {
      const error = await errorFrom(() => chat.withContext(bad as never))
      expect(error).to.be.instanceOf(ArgumentError)
      expect((error as Error).message).to.not.contain('hush')
    }
    expect(await errorFrom(() => chat.ask('Go'))).to.be.instanceOf(ConfigurationError)
  })
})
