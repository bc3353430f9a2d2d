import { expect } from 'chai'
import {
  ArgumentError,
  BadRequestError,
  type Chat,
  defineAgent,
  type Fallback,
  type ModelClient,
  openAiClient,
  ProviderError,
  RateLimitError,
  ServerError,
} from '../../src/index.ts'
import { cut, httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('Fallbacks', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const models = () => bench.model.requests.map(({ body }) => (body as { model: string }).model)

  const told = (seen: string[]) => (chat: Chat) =>
    chat
      .beforeFallback(({ from, to, error, attempt, chunksYielded }) => {
        seen.push(`${attempt}: ${from.model} -> ${to.model}, ${error.constructor.name}, shown ${chunksYielded()}`)
      })
      .afterFallback(({ model, response, fallbackError }) => {
        const failed = fallbackError === undefined ? '' : (fallbackError as Error).constructor.name
        seen.push(`${model}: ${response?.text ?? failed}`)
      })

  it('answer where the model fails, in their order; the chat keeps its model (S90)', async () => {
    await bench.script([httpError(429, 'slow down'), httpError(500, 'broken'), text('Here'), text('Again')])
    const agent = defineAgent({ name: freshName(), retries: 0 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const seen: string[] = []
    told(seen)(chat.withFallbacks('second', { model: 'third', provider: 'openai' }))
    expect((await chat.ask('Go'))?.content).to.equal('Here')
    expect(models()).to.deep.equal(['test-model', 'second', 'third'])
    expect(seen).to.deep.equal([
      '1: test-model -> second, RateLimitError, shown false',
      'second: ServerError',
      '2: second -> third, ServerError, shown false',
      'third: Here',
    ])
    const [, answer] = await chat.messages()
    const usages = await usageRows(mill, chat)
    expect(usages.map(({ model, status, messageId }) => [model, status, messageId])).to.deep.equal([
      ['test-model', 'failed', answer?.id],
      ['second', 'failed', answer?.id],
      ['third', 'succeeded', answer?.id],
    ])
    await chat.ask('Once more')
    expect(models().at(-1)).to.equal('test-model')
  })

  it('are stored, so that another process asks them, and beat those of the agent; null returns to these', async () => {
    await bench.script([httpError(500, 'broken'), text('Stored'), httpError(500, 'broken'), text('Agent')])
    const agent = defineAgent({ name: freshName(), retries: 0, fallbacks: ['of-agent'] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect(chat.fallbacks).to.deep.equal({ models: [{ model: 'of-agent' }] })
    await chat.withFallbacks('of-chat', { on: ['provider.server_error'] }).askLater('Go')
    const other = await (await bench.connect({ agents: [agent] })).chats.find(chat.id)
    expect(other.fallbacks).to.deep.equal({ models: [{ model: 'of-chat' }], on: ['provider.server_error'] })
    await other.complete()
    await other.withFallbacks(null).ask('Again')
    expect(models()).to.deep.equal(['test-model', 'of-chat', 'test-model', 'of-agent'])
  })

  it('void what was shown and answer under a new id (S87)', async () => {
    await bench.script([cut({ after: 'The first ' }), text('The second')])
    const agent = defineAgent({ name: freshName(), retries: 0, fallbacks: ['second'] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const seen: string[] = []
    told(seen)(chat)
    const events = chat.events()
    const chunks: string[] = []
    await chat.ask('Go', {}, ({ messageId, index, text: words }) => void chunks.push(`${messageId} ${index} ${words}`))
    const restarted = await firstOf(events, 'attempt.restarted')
    const ids = [...new Set(chunks.map((chunk) => chunk.split(' ')[0]))]
    expect(ids).to.have.length(2)
    expect(restarted).to.deep.include({ replaces: ids[0], messageId: ids[1] })
    expect(chunks.filter((chunk) => chunk.startsWith(`${ids[1]} 0 `))).to.have.length(1)
    expect(await roles(chat)).to.equal('user assistant')
    expect((await chat.messages())[1]?.id).to.equal(ids[1])
    expect(seen[0]).to.match(/shown true$/)
  })

  it('have retries of their own, and end with the last error where none answers', async () => {
    await bench.script([...Array(4)].map((_, at) => httpError(at < 2 ? 429 : 500, 'no', { 'retry-after-ms': '1' })))
    const agent = defineAgent({ name: freshName(), retries: 1, fallbacks: ['second'] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect(await errorFrom(() => chat.ask('Go'))).to.be.instanceOf(ServerError)
    expect(models()).to.deep.equal(['test-model', 'test-model', 'second', 'second'])
    expect(await roles(chat)).to.equal('user')
  })

  it('are not asked after an error that they are not for; one of their own ends it at once', async () => {
    await bench.script([httpError(400, 'bad'), httpError(500, 'broken'), httpError(400, 'bad')])
    const agent = defineAgent({ name: freshName(), retries: 0, fallbacks: ['second', 'third'] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const seen: string[] = []
    told(seen)(chat)
    expect(await errorFrom(() => chat.ask('Go'))).to.be.instanceOf(BadRequestError)
    expect(seen).to.deep.equal([])
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(BadRequestError)
    expect(seen.at(-1)).to.equal('second: BadRequestError')
    expect(models()).to.deep.equal(['test-model', 'test-model', 'second'])
  })

  it('of another provider go by its client; one that is missing is passed over', async () => {
    await bench.script([httpError(503, 'down'), text('Other')])
    const client = openAiClient({ apiKey: 'key', baseURL: bench.model.url, provider: 'elsewhere' })
    const agent = defineAgent({
      name: freshName(),
      client,
      model: 'own',
      retries: 0,
      fallbacks: [
        { model: 'lost', provider: 'nobody' },
        { model: 'other', provider: 'openai' },
      ],
    })
    const notices: string[] = []
    const mill = await bench.connect({
      agents: [agent],
      onObservation: (observation) => observation.type === 'notice' && notices.push(observation.message),
    })
    const chat = await mill.chats.create({ agent })
    const fallbacks: Fallback[] = []
    chat.beforeFallback((fallback) => void fallbacks.push(fallback))
    await chat.ask('Go')
    expect(fallbacks.map(({ provider, model }) => [provider, model])).to.deep.equal([['openai', 'other']])
    expect(notices.filter((notice) => /Fallback lost/.test(notice))).to.have.length(1)
    expect((await usageRows(mill, chat)).map(({ provider }) => provider)).to.deep.equal(['elsewhere', 'openai'])
  })

  it('of another provider are sent neither reasoning nor headers of the first, nor the first theirs (E34)', async () => {
    await bench.script([
      text('One', { thinking: 'own thoughts' }),
      httpError(503, 'down'),
      toolCalls([call('read', freshId())], { thinking: 'other thoughts' }),
      text('Two'),
    ])
    const agent = defineAgent({
      name: freshName(),
      client: signing(openAiClient({ apiKey: 'key', baseURL: bench.model.url, provider: 'elsewhere' })),
      retries: 0,
      tools: [recording('read', [])],
      headers: { 'x-tenant': 'seven' },
      fallbacks: [{ model: 'other', provider: 'elsewhere' }],
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.withModel('own', { provider: 'openai' }).ask('First')
    await chat.ask('Second')
    expect(models()).to.deep.equal(['own', 'own', 'other', 'own'])
    const sent = bench.model.requests.map(({ body, headers }) => ({
      own: JSON.stringify(body).includes('own thoughts'),
      other: /other thoughts|of the other/.test(JSON.stringify(body)),
      tenant: headers['x-tenant'],
    }))
    expect(sent).to.deep.equal([
      { own: false, other: false, tenant: 'seven' },
      { own: true, other: false, tenant: 'seven' },
      { own: false, other: false, tenant: undefined },
      { own: true, other: false, tenant: 'seven' },
    ])
    expect((await chat.messages())[3]?.thinkingText).to.equal('other thoughts')
  })

  it('follow errors by class as by code, and store the codes (E33)', async () => {
    class OwnError extends RateLimitError {}
    class NeedsMore extends ProviderError {
      readonly code = 'own.more'
      constructor(details: { readonly text: string }) {
        super(details.text.trim())
      }
    }
    await bench.script([httpError(400, 'bad'), text('Here'), httpError(500, 'broken')])
    const agent = defineAgent({ name: freshName(), retries: 0 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    chat.withFallbacks('second', { on: [OwnError, 'provider.rate_limit', BadRequestError] })
    const on = ['provider.rate_limit', 'provider.bad_request']
    expect((await chat.ask('Go'))?.content).to.equal('Here')
    expect((await mill.chats.find(chat.id)).fallbacks).to.deep.equal({ models: [{ model: 'second' }], on })
    expect(await errorFrom(() => chat.ask('Again'))).to.be.instanceOf(ServerError)
    const any = defineAgent({ name: 'any', fallbacks: { models: ['second'], on: [ProviderError] } })
    expect(any.fallbacks?.on).to.include.members([...on, 'provider.stream_cut', 'provider.empty_answer'])
    expect(any.fallbacks?.on).to.not.include('argument')
    for (const wrong of [NeedsMore, ArgumentError, Error, () => {}]) {
      expect(() => chat.withFallbacks('second', { on: [wrong as never] })).to.throw(
        ArgumentError,
        /must be the code of an error, or a class/,
      )
    }
  })

  const throwing = [
    { hook: 'beforeFallback', leaves: 'user', asked: 1 },
    { hook: 'afterFallback', leaves: 'user assistant', asked: 2 },
  ] as const
  for (const { hook, leaves, asked } of throwing) {
    it(`end the run where ${hook} throws, which leaves ${leaves}; the next complete goes on (E30)`, async () => {
      await bench.script([httpError(500, 'broken'), text('Here')])
      const agent = defineAgent({ name: freshName(), retries: 0, fallbacks: ['second'] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      let broken = true
      chat[hook](() => {
        if (broken) throw new RangeError('a bug in a hook')
      })
      expect(await errorFrom(() => chat.ask('Go'))).to.be.instanceOf(RangeError)
      expect([await roles(chat), models().length, await chat.running()]).to.deep.equal([leaves, asked, false])
      broken = false
      await chat.complete()
      expect([await roles(chat), models().length]).to.deep.equal(['user assistant', 2])
    })
  }

  it('must name models', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    for (const wrong of [
      [],
      [''],
      [7],
      [{ provider: 'openai' }],
      ['a', { on: [] }],
      ['a', { on: 'x' }],
      ['a', { on: [7] }],
    ]) {
      expect(await errorFrom(() => chat.withFallbacks(...(wrong as [string])))).to.be.instanceOf(ArgumentError)
    }
    expect(() => defineAgent({ name: 'any', fallbacks: [7 as never] })).to.throw(ArgumentError)
    expect(chat.fallbacks).to.equal(null)
  })
})

/** A client whose calls come with a signature that only its provider can read. */
function signing(client: ModelClient): ModelClient {
  return {
    ...client,
    attempt: async (request, options) => {
      const answer = await client.attempt(request, options)
      return { ...answer, toolCalls: answer.toolCalls.map((one) => ({ ...one, thoughtSignature: 'of the other' })) }
    },
  }
}

async function firstOf(events: AsyncIterable<{ type: string }>, type: string): Promise<object> {
  for await (const event of events) if (event.type === type) return event
  throw new Error(`no ${type}`)
}
