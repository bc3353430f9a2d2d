import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect } from 'chai'
import {
  CancelledError,
  type Chat,
  defineAgent,
  openAiClient,
  type Threadmill,
  type UsageRecord,
} from '../../src/index.ts'
import { hang, httpError, rawSse, text } from '../../src/testing/index.ts'
import { chunk, sse } from '../providers/scripted-server.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { rejectionOf } from './support/watching.ts'

/** USD per million tokens: one token of input costs 0.000003. */
const prices = { input: 3, output: 15, cacheRead: 0.3 }
const priced = defineAgent({ name: 'priced', prices, retries: 2 })
/** The prices that known faults are told with. */
const tested = defineAgent({
  name: 'tested',
  prices: { input: 2, output: 8, cacheRead: 0.5, cacheWrite: 2.5 },
})
const soon = { 'retry-after-ms': '1' }
const used = (prompt: number, completion: number, rest: object = {}) => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, ...rest },
})

const usagesOf = (mill: Threadmill, chat: Chat) =>
  mill.models.Usage.findAll({ where: { chatId: chat.id }, order: ['createdAt', 'id'] })

/** Input, output, cache read and total, without zeros at the end, which SQLite leaves out. */
const costsOf = (usage: UsageRecord | undefined) =>
  [usage?.inputCost, usage?.outputCost, usage?.cacheReadCost, usage?.totalCost].map((cost) =>
    cost == null ? null : String(Number(cost)),
  )

onEachDatabase('The ledger of attempts', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })

  it('has an entry for each try, all linked to the answer, whose tokens are their sum (S89)', async () => {
    const failing = sse(chunk({}, used(7, 2)), { error: { message: 'out of memory', type: 'server_error' } })
    await bench.script([
      httpError(503, 'busy', soon),
      rawSse(failing),
      text('Fine.', used(10, 5)),
      text('Bye.', used(100, 50)),
    ])
    const mill = await bench.connect({ agents: [priced] })
    const chat = await mill.chats.create({ agent: priced })
    const answer = await chat.ask('How are you?')
    const usages = await usagesOf(mill, chat)
    expect(usages.map((usage) => [usage.status, usage.errorCode, usage.inputTokens, usage.outputTokens])).to.deep.equal(
      [
        ['failed', 'provider.server_error', null, null],
        ['failed', 'provider.server_error', 7, 2],
        ['succeeded', null, 10, 5],
      ],
    )
    expect(new Set(usages.map((usage) => usage.messageId))).to.deep.equal(new Set([answer?.id]))
    const ofMessage = await mill.models.Message.findByPk(answer?.id, { include: 'usages' })
    expect(ofMessage?.get('usages')).to.have.length(3)
    expect(await chat.tokens()).to.include({ input: 17, output: 7 })
    await chat.ask('Bye')
    expect(await ofMessage?.tokens(), 'of the message').to.include({ input: 17, output: 7 })
    expect(await chat.tokens(), 'of the chat').to.include({ input: 117, output: 57 })
  })

  it('keeps what an attempt cost when the prices change later (S93)', async () => {
    await bench.script([text('Fine.', used(10, 5)), text('Still fine.', used(10, 5))])
    const mill = await bench.connect({ agents: [priced] })
    const chat = await mill.chats.create({ agent: priced })
    await chat.ask('How are you?')
    const dearer = defineAgent({ name: 'priced', prices: { input: 300, output: 1_500 } })
    const later = await (await bench.connect({ agents: [dearer] })).chats.find(chat.id)
    await later.ask('And now?')
    const costs = (await usagesOf(mill, chat)).map((usage) => Number(usage.totalCost))
    expect(costs).to.deep.equal([0.000105, 0.0105])
    expect(Number((await later.cost()).total)).to.equal(0.010605)
  })

  it('counts a refused connection as nothing, so that the total stays known (S91, B34)', async () => {
    await bench.script([text('Fine.', used(1_000, 100))])
    const closed = await closedPort()
    let tries = 0
    const client = openAiClient({
      apiKey: 'test-key',
      baseURL: bench.model.url,
      fetch: (input, init) => {
        tries += 1
        return fetch(tries === 1 ? `http://127.0.0.1:${closed}/v1/chat/completions` : input, init)
      },
    })
    const agent = defineAgent({ name: 'unlucky', client, prices, retries: 1 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('How are you?')
    const usages = await usagesOf(mill, chat)
    expect(usages.map((usage) => [usage.status, usage.errorCode, usage.inputTokens, usage.outputTokens])).to.deep.equal(
      [
        ['failed', 'provider.connection', 0, 0],
        ['succeeded', null, 1_000, 100],
      ],
    )
    expect(usages.map(({ totalCost }) => Number(totalCost ?? Number.NaN))).to.deep.equal([0, 0.0045])
    expect((await chat.cost()).total).to.equal('0.0045')
  })

  it('knows no total cost after a timeout that reported no tokens (S92)', async () => {
    await bench.script([hang(), text('Fine.', used(1_000, 100))])
    const agent = defineAgent({ name: 'hasty', prices, retries: 1, timeoutMs: 300 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('How are you?')
    const usages = await usagesOf(mill, chat)
    expect(usages.map((usage) => [usage.errorCode, usage.inputTokens, Number(usage.totalCost)])).to.deep.equal([
      ['provider.timeout', null, 0],
      [null, 1_000, 0.0045],
    ])
    expect(usages[0]?.totalCost).to.equal(null)
    expect(await chat.tokens()).to.include({ input: 1_000, output: 100 })
    expect((await chat.cost()).total).to.equal(null)
  })

  for (const shown of [false, true]) {
    const what = shown ? 'some text, linked to the message that keeps it' : 'no text, linked to no message'
    it(`counts a cancelled stream that showed ${what} (S94, B34)`, async () => {
      const begun = sse(chunk({ reasoning_content: 'Hm. ' }, used(12, 3)), chunk(shown ? { content: 'Well' } : {}))
      const last = sse(chunk({ reasoning_content: 'So.' }))
      await bench.script([hang({ after: rawSse(begun + last) })])
      const [mill, other] = [await bench.connect({ agents: [priced] }), await bench.connect({ agents: [priced] })]
      const chat = await mill.chats.create({ agent: priced })
      await chat.askLater('How are you?')
      const cancelling: Promise<unknown>[] = []
      const running = chat.complete(({ thinking }) => {
        if (thinking !== 'So.') return
        cancelling.push(other.chats.find(chat.id).then((same) => same.cancel()))
      })
      expect(await rejectionOf(running)).to.be.instanceOf(CancelledError)
      await Promise.all(cancelling)
      const [usage, ...others] = await usagesOf(mill, chat)
      expect(others).to.deep.equal([])
      expect([usage?.status, usage?.inputTokens, usage?.outputTokens]).to.deep.equal(['cancelled', 12, 3])
      const kept = (await chat.messages()).filter((message) => message.role === 'assistant')
      expect(kept.map(({ content, finishReason }) => [content, finishReason])).to.deep.equal(
        shown ? [['Well', 'cancelled']] : [],
      )
      expect(usage?.messageId).to.equal(kept[0]?.id ?? null)
      expect(await chat.tokens()).to.include({ input: 12, output: 3 })
      expect((await chat.cost()).total).to.equal('0.000081')
    })
  }

  it('counts a cancelled stream with the usage that it reported last (B34)', async () => {
    const shown = sse(chunk({ content: 'Well ' }, used(300, 20)), chunk({ content: 'then' }, used(300, 40)))
    await bench.script([hang({ after: rawSse(shown) })])
    const mill = await bench.connect({ agents: [tested] })
    const chat = await mill.chats.create({ agent: tested })
    const cancelling: Promise<unknown>[] = []
    const running = chat.ask('How are you?', {}, ({ index }) => void (index === 1 && cancelling.push(chat.cancel())))
    expect(await rejectionOf(running)).to.be.instanceOf(CancelledError)
    await Promise.all(cancelling)
    const [usage, ...more] = await usagesOf(mill, chat)
    expect([usage?.status, usage?.inputTokens, usage?.outputTokens, more.length]).to.deep.equal([
      'cancelled',
      300,
      40,
      0,
    ])
    expect((await chat.cost()).total).to.equal('0.00092')
  })

  it('knows neither tokens nor cost of a cancelled stream that reported none (B34)', async () => {
    await bench.script([hang({ after: 'Well then' })])
    const mill = await bench.connect({ agents: [priced] })
    const chat = await mill.chats.create({ agent: priced })
    const cancelling: Promise<unknown>[] = []
    const running = chat.ask('How are you?', {}, () => void cancelling.push(chat.cancel()))
    expect(await rejectionOf(running)).to.be.instanceOf(CancelledError)
    await Promise.all(cancelling)
    const [usage] = await usagesOf(mill, chat)
    expect([usage?.status, usage?.inputTokens, usage?.outputTokens]).to.deep.equal(['cancelled', null, null])
    expect(await chat.tokens()).to.include({ input: null, output: null })
    expect((await chat.cost()).total).to.equal(null)
  })

  it('knows no cost of a chat that asked nothing (S95)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await chat.askLater('How are you?')
    expect(await chat.cost()).to.deep.equal({
      input: null,
      output: null,
      cacheRead: null,
      cacheWrite: null,
      total: null,
    })
    expect((await chat.tokens()).input).to.equal(null)
  })

  it('takes the last of the totals that a stream repeats, and a null after it for nothing (B31)', async () => {
    const shown = (content: string, completion: number, reason: string | null = null) =>
      chunk({ content }, { ...used(19, completion), finish_reason: reason })
    const stream = sse(
      shown('a', 2),
      shown('b', 5),
      shown('c', 9, 'stop'),
      { id: 'cc-b31', choices: [], usage: null },
      '[DONE]',
    )
    await bench.script([rawSse(stream)])
    const mill = await bench.connect({ agents: [tested] })
    const chat = await mill.chats.create({ agent: tested })
    expect((await chat.ask('How are you?'))?.content).to.equal('abc')
    const [usage, ...more] = await usagesOf(mill, chat)
    expect([usage?.inputTokens, usage?.outputTokens, more.length]).to.deep.equal([19, 9, 0])
    expect(costsOf(usage)).to.deep.equal(['0.000038', '0.000072', null, '0.00011'])
    expect((await chat.cost()).total).to.equal('0.00011')
  })

  it('bills cached input once, at its own price, and never less than no input (B32)', async () => {
    await bench.script([
      text('One.', used(1_500, 50, { prompt_tokens_details: { cached_tokens: 1_100 } })),
      text('Two.', used(1_500, 50, { prompt_tokens_details: { cached_tokens: 1_600 } })),
    ])
    const mill = await bench.connect({ agents: [tested] })
    const chat = await mill.chats.create({ agent: tested })
    await chat.ask('First?')
    await chat.ask('Second?')
    const usages = await usagesOf(mill, chat)
    expect(usages.map((usage) => [usage.inputTokens, usage.cacheReadTokens, usage.outputTokens])).to.deep.equal([
      [400, 1_100, 50],
      [0, 1_600, 50],
    ])
    expect(usages.map(costsOf)).to.deep.equal([
      ['0.0008', '0.0004', '0.00055', '0.00175'],
      ['0', '0.0004', '0.0008', '0.0012'],
    ])
    expect(await chat.cost()).to.deep.equal({
      input: '0.0008',
      output: '0.0008',
      cacheRead: '0.00135',
      cacheWrite: '0',
      total: '0.00295',
    })
  })

  it('adds up costs to the last of ten places (B32)', async () => {
    const odd = defineAgent({ name: 'odd', prices: { input: 0.1, output: 0.0003 } })
    await bench.script(Array.from({ length: 3 }, () => text('Fine.', used(1, 1))))
    const mill = await bench.connect({ agents: [odd] })
    const chat = await mill.chats.create({ agent: odd })
    for (const question of ['a', 'b', 'c']) await chat.ask(question)
    const usages = await usagesOf(mill, chat)
    expect(usages.map((usage) => Number(usage.totalCost))).to.deep.equal([1.003e-7, 1.003e-7, 1.003e-7])
    expect((await chat.cost()).total).to.equal('0.0000003009')
  })
})

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
}
