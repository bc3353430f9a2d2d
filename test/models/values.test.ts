import { Big } from 'big.js'
import { expect } from 'chai'
import * as z from 'zod'
import {
  ArgumentError,
  defineAgent,
  defineTool,
  type Json,
  TextMessage,
  type Threadmill,
  ToolCallMessage,
  ToolMessage,
  ToolResultMessage,
} from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { TEXT_LIMIT_BYTES } from '../../src/tools/text-limit.ts'
import { rejectionOf } from '../chat/support/watching.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'

const json: Json[] = [
  { city: 'Oslo', n: 3 },
  {},
  [],
  [1, 'two', null, { three: [3] }],
  'plain text',
  '{"a":1}',
  '[1]',
  '"quoted"',
  'null',
  '',
  3,
  0,
  -1.5,
  true,
  false,
  null,
]
const family = '\u{1F469}\u200D\u{1F469}\u200D\u{1F467}'
const wide = `${family} \u{1D4B3}\u{20BB7} na\u00EFve \u4F60\u597D`

onEachDatabase('What a row holds', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })

  it('has the type that it was given in a JSON column, through any number of saves (B66)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    for (const owner of json) await chat.queue('Hello?', { owner, wake: false })
    const owners = async () => (await chat.queuedMessages()).map((queued) => queued.owner)
    expect(await owners(), 'read').to.deep.equal(json)
    for (const round of ['saved once', 'saved twice']) {
      for (const queued of await chat.queuedMessages()) {
        queued.changed('owner', true)
        await queued.save()
      }
      expect(await owners(), round).to.deep.equal(json)
    }
    for (const [at, owner] of json.entries()) {
      const queued = (await chat.queuedMessages())[at]
      await queued?.update({ owner: { was: owner } })
    }
    expect(await owners(), 'changed').to.deep.equal(json.map((owner) => ({ was: owner })))
  })

  it('keeps the arguments of calls and the reasoning of answers as they were (B66)', async () => {
    const seen: unknown[] = []
    const look = defineTool({
      name: 'look',
      description: 'Looks something up.',
      parameters: z.object({ what: z.json() }),
      execute: ({ what }) => {
        seen.push(what)
        return 'seen'
      },
    })
    const agent = defineAgent({ name: 'looker', tools: [look] })
    await bench.script([toolCalls(json.map((what) => ({ name: 'look', arguments: { what } }))), text('Done.')])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Look.')
    const [, asking] = await chat.messages()
    expect(asking?.toolCalls.map((call) => call.arguments.what)).to.deep.equal(json)
    expect(seen).to.deep.equal(json)
    const records = await mill.models.ToolCall.findAll({ where: { chatId: chat.id }, order: ['position'] })
    expect(records.map((call) => call.arguments.what)).to.deep.equal(json)
    const sent = bench.model.requests[1]?.messages.flatMap((message) => message.tool_calls ?? [])
    expect(sent?.map((call) => JSON.parse(call.function.arguments).what)).to.deep.equal(json)
  })

  it('comes back in the order of writing, whatever its time says (B68)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    // All in one statement after the other, many of them within one millisecond.
    const values = [0, 1, 2, 3].flatMap((turn) => {
      const tools = [0, 1].map((at) => new ToolMessage({ id: `${chat.id}-${turn}-${at}`, name: 'look', input: {} }))
      return [
        new TextMessage({ role: 'user', content: `question ${turn}` }),
        new ToolCallMessage({ role: 'assistant', tools }),
        ...tools.map((tool) => new ToolResultMessage({ tool, content: { data: tool.id } })),
        new TextMessage({ role: 'assistant', content: `answer ${turn}`, stopReason: 'stop' }),
      ]
    })
    await chat.addMessage(values)
    const written = (await chat.messages()).map((message) => message.id)
    expect(written).to.have.length(20)
    expect((await chat.transcript()).map((value) => value.toHash())).to.deep.equal(
      values.map((value) => value.toHash()),
    )
    const order = async () => (await chat.messages()).map((message) => message.id)
    // As if the clock had run backwards all the while, and stood still at the end.
    for (const [at, id] of written.entries()) {
      const createdAt = new Date(Date.UTC(2026, 0, 1) - Math.min(at, 15) * 2_000)
      await mill.models.Message.update({ createdAt }, { where: { id }, silent: true })
    }
    for (let times = 0; times < 100; times++) expect(await order()).to.deep.equal(written)
  })

  it('has its time to the millisecond, the same before and after it is read (B68)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const milliseconds: number[] = []
    for (let at = 0; at < 12; at++) {
      const before = Date.now()
      const queued = await chat.queue(`message ${at}`, { wake: false })
      expect(queued.createdAt.getTime()).to.be.within(before, Date.now())
      const read = await mill.models.QueuedMessage.findByPk(queued.id)
      expect(read?.createdAt.getTime()).to.equal(queued.createdAt.getTime())
      milliseconds.push(queued.createdAt.getMilliseconds())
    }
    expect(milliseconds.some((ms) => ms % 1_000 !== 0)).to.equal(true)
  })

  for (const [what, result] of Object.entries({
    '70,000 letters': 'x'.repeat(70_000),
    '33,000 letters of two bytes': '\u00E9'.repeat(33_000),
    'a million letters of four bytes': '\u{1F600}'.repeat(1_000_000),
  })) {
    it(`stores and sends a tool’s result of ${what} whole (B70)`, async function () {
      this.timeout(60_000)
      const { mill, chat } = await toolTurn(result)
      const stored = (await chat.messages()).find((message) => message.role === 'tool')
      expect(stored?.content === result, 'stored whole').to.equal(true)
      const record = await mill.models.Message.findByPk(stored?.id)
      expect(record?.content === result, 'read whole').to.equal(true)
      const sent = bench.model.requests[1]?.messages.find((message) => message.role === 'tool')
      expect(sent?.content === result, 'sent whole').to.equal(true)
      expect(await chat.isComplete()).to.equal(true)
    })
  }

  it('cuts a tool’s result above the limit between two characters, with a mark, and goes on (B70)', async function () {
    this.timeout(60_000)
    const { chat } = await toolTurn(`x${'\u{1F600}'.repeat(5 * 1024 * 1024)}`)
    const stored = (await chat.messages()).find((message) => message.role === 'tool')?.content ?? ''
    expect(Buffer.byteLength(stored)).to.be.within(TEXT_LIMIT_BYTES - 3, TEXT_LIMIT_BYTES)
    const [, smiles = '', kept, of] = /^x((?:\u{1F600})+)\n\[Cut here: (\d+) of (\d+) bytes\.\]$/u.exec(stored) ?? []
    expect([Number(kept), Number(of)]).to.deep.equal([1 + Buffer.byteLength(smiles), 1 + 4 * 5 * 1024 * 1024])
    const sent = bench.model.requests[1]?.messages.find((message) => message.role === 'tool')
    expect(sent?.content === stored, 'sent as stored').to.equal(true)
    expect(await chat.isComplete()).to.equal(true)
  })

  it('takes no text above the limit from an application, and stays as it was (B70)', async function () {
    this.timeout(60_000)
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const long = 'x'.repeat(TEXT_LIMIT_BYTES + 1)
    const acts: readonly (() => Promise<unknown>)[] = [
      () => chat.askLater(long),
      () => chat.queue(long, { wake: false }),
      () => chat.addMessage({ role: 'user', content: long }),
      async () => chat.withInstructions(long),
    ]
    for (const act of acts) {
      const error = await rejectionOf(act())
      expect(error)
        .to.be.instanceOf(ArgumentError)
        .and.have.property('message')
        .that.includes(`${TEXT_LIMIT_BYTES} bytes`)
    }
    await chat.askLater(long.slice(1))
    const [message] = await chat.messages()
    expect(message?.content?.length).to.equal(TEXT_LIMIT_BYTES)
    expect(await chat.queuedMessages()).to.deep.equal([])
  })

  it('is text of four bytes a character and more, in every column that people or models fill', async () => {
    await bench.script([
      toolCalls([{ name: 'echo', arguments: { word: wide } }], { text: wide, thinking: wide }),
      text(wide, { thinking: wide }),
    ])
    const echo = defineTool({
      name: 'echo',
      description: 'Says it again.',
      parameters: z.object({ word: z.string() }),
      execute: ({ word }) => word,
    })
    const agent = defineAgent({ name: `echo ${wide}`, tools: [echo] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent, owner: wide })
    await chat.withInstructions(wide).ask(wide)
    const found = await mill.chats.find(chat.id)
    expect([found.owner, found.agent]).to.deep.equal([wide, `echo ${wide}`])
    const messages = await found.messages()
    expect(messages.map((message) => [message.role, message.content])).to.deep.equal([
      ['system', wide],
      ['user', wide],
      ['assistant', wide],
      ['tool', wide],
      ['assistant', wide],
    ])
    expect(messages.flatMap((message) => message.thinkingText ?? [])).to.deep.equal([wide, wide])
    expect(messages.flatMap((message) => message.toolCalls).map((call) => call.arguments)).to.deep.equal([
      { word: wide },
    ])
  })

  it('is found by an id that is the same in every character', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const ids = ['call_A', 'call_a', 'call_a ', ' call_a', 'call_\u00E4', 'call_a\u0308']
    await chat.askLater('Do it.')
    await chat.addMessage({ role: 'assistant', toolCalls: ids.map((id) => ({ id, name: 'act' })) })
    const stored = (await chat.messages()).flatMap((message) => message.toolCalls)
    expect(stored.map((call) => call.toolCallId)).to.deep.equal(ids)
    for (const [at, id] of ids.entries()) {
      await chat.approve(id, { wake: false })
      const approved = await mill.models.ToolCall.findAll({ where: { approval: 'approved' }, order: ['position'] })
      expect(approved.map((call) => call.toolCallId)).to.deep.equal(ids.slice(0, at + 1))
      expect(await mill.models.ToolCall.count({ where: { toolCallId: id } })).to.equal(1)
    }
    for (const id of ids.slice(0, 3)) await chat.addMessage({ role: 'tool', toolCallId: id, content: `for "${id}"` })
    const results = (await chat.messages()).filter((message) => message.role === 'tool')
    const answered = (await chat.messages()).flatMap((message) => message.toolCalls).filter((call) => call.resultId)
    expect(answered.map((call) => call.resultId)).to.deep.equal(results.map((message) => message.id))
    await mill.models.Chat.destroy({ where: { id: `${chat.id} ` } })
    expect(await mill.models.Chat.count({ where: { id: chat.id } })).to.equal(1)
  })

  it('is money to ten places, read as text and never as a float', async () => {
    const agent = defineAgent({ name: 'priced', prices: { input: 0.0003, output: 123_456.789, cacheRead: 0.1 } })
    const usage = {
      prompt_tokens: 4,
      completion_tokens: 7,
      total_tokens: 11,
      prompt_tokens_details: { cached_tokens: 1 },
    }
    await bench.script([text('Fine.', { usage })])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('How are you?')
    const [row] = await mill.models.Usage.findAll({ where: { chatId: chat.id } })
    const costs = [row?.inputCost, row?.outputCost, row?.cacheReadCost, row?.totalCost]
    expect(costs.map((cost) => typeof cost)).to.deep.equal(['string', 'string', 'string', 'string'])
    // SQLite leaves out the zeros at the end.
    const places = costs.map((cost) => new Big(cost ?? '').toFixed(10))
    expect(places).to.deep.equal(['0.0000000009', '0.8641975230', '0.0000001000', '0.8641976239'])
    expect(row?.cacheWriteCost).to.equal(null)
    expect((await chat.cost()).total).to.equal('0.8641976239')
  })

  /** A turn whose tool gives this result. */
  async function toolTurn(result: string): Promise<{ mill: Threadmill; chat: Awaited<ReturnType<typeof create>> }> {
    const fetchAll = defineTool({
      name: 'fetch_all',
      description: 'Fetches everything.',
      parameters: z.object({}),
      execute: () => result,
    })
    const agent = defineAgent({ name: 'fetcher', tools: [fetchAll] })
    await bench.script([toolCalls([{ name: 'fetch_all', arguments: {} }]), text('That is much.')])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await create(mill)
    await chat.ask('Fetch it.')
    return { mill, chat }
  }
})

const create = (mill: Threadmill) => mill.chats.create({ agent: 'fetcher' })
