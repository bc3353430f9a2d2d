import { expect } from 'chai'
import {
  ArgumentError,
  defineAgent,
  openAiClient,
  UnknownModelError,
  UnsupportedByProviderError,
} from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { freshName } from './support/tools.ts'

onEachDatabase('The model of a chat', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const asked = () => bench.model.requests.map(({ body }) => (body as { model: string }).model)

  it('is set by an id, a value or a row, and has a row of its own once it is stored', async () => {
    await bench.script(() => text('Yes'))
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    expect([chat.modelId, chat.model, chat.provider, await chat.modelRow()]).to.deep.equal([null, null, null, null])
    chat.model = 'first'
    expect([chat.modelId, chat.provider]).to.deep.equal(['first', null])
    expect(await mill.models.Model.count({ where: { modelId: 'first' } })).to.equal(0)
    await chat.save()
    const row = await chat.modelRow()
    expect([row?.provider, row?.modelId, row?.name]).to.deep.equal(['openai', 'first', 'first'])
    chat.model = { modelId: 'second', provider: 'openai' }
    expect([chat.modelId, chat.provider]).to.deep.equal(['second', 'openai'])
    await chat.ask('Go')
    if (row !== null) chat.model = row
    await chat.ask('Go')
    chat.modelId = 'third'
    await chat.ask('Go')
    await chat.withModel(null).ask('Go')
    expect(asked()).to.deep.equal(['second', 'first', 'third', 'test-model'])
    expect(await chat.modelRow()).to.equal(null)
    const found = await mill.models.Chat.findOne({ where: { id: chat.id }, include: ['modelRow'] })
    expect(found?.modelRowId).to.equal(null)
  })

  it('keeps what the catalogue knows of it, and is known from then on', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create({ model: 'gpt-4o-mini' })
    expect((await chat.modelRow())?.contextWindow).to.be.above(100_000)
    const strict = await mill.chats.create()
    strict.assumeModelExists = false
    const name = freshName()
    expect(await errorFrom(() => strict.withModel(name).save())).to.be.instanceOf(UnknownModelError)
    expect((await mill.models.Chat.findByPk(strict.id))?.model).to.equal(null)
    await strict.withModel('gpt-4o-mini').save()
    await mill.chats.create({ model: name })
    await strict.withModel(name).save()
    expect(await mill.models.Model.count({ where: { modelId: name } })).to.equal(1)
  })

  it('has one row, however many processes store it first at once (S32)', async () => {
    const mills = await Promise.all([bench.connect(), bench.connect(), bench.connect()])
    const name = freshName()
    const chats = await Promise.all(
      mills.flatMap((mill) => [mill.chats.create({ model: name }), mill.chats.create({ model: name })]),
    )
    const [row, ...more] = (await mills[0]?.models.Model.findAll({ where: { modelId: name } })) ?? []
    expect(more).to.deep.equal([])
    expect(chats).to.have.length(6)
    for (const chat of chats) expect((await chat.modelRow())?.id).to.equal(row?.id ?? 'none')
    const again = freshName()
    await Promise.all(chats.map((chat) => chat.withModel(again).save()))
    expect(await mills[0]?.models.Model.count({ where: { modelId: again } })).to.equal(1)
    expect(new Set(await Promise.all(chats.map(async (chat) => (await chat.modelRow())?.modelId)))).to.deep.equal(
      new Set([again]),
    )
  })

  it('that was not stored is dropped by reload, with its provider; a provider may be set alone (S104)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create({ model: 'kept' })
    chat.provider = 'elsewhere'
    chat.model = 'dropped'
    await chat.reload()
    expect([chat.modelId, chat.provider]).to.deep.equal(['kept', null])
    chat.provider = 'elsewhere'
    expect([chat.modelId, chat.provider]).to.deep.equal(['kept', 'elsewhere'])
    await chat.save()
    expect((await mill.chats.find(chat.id)).provider).to.equal('elsewhere')
  })

  it('speaks one protocol, which may be said', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    expect(chat.withModel('m', { protocol: 'chat_completions' }).protocol).to.equal('chat_completions')
    expect(chat.withModel('m').protocol).to.equal(null)
    chat.protocol = 'chat_completions'
    expect(chat.protocol).to.equal('chat_completions')
    for (const bad of ['responses', '', 7]) {
      expect(await errorFrom(() => (chat.protocol = bad as never))).to.be.instanceOf(ArgumentError)
    }
    for (const bad of [7, '', 'x'.repeat(256), {}, undefined]) {
      expect(await errorFrom(() => chat.withModel(bad as never))).to.be.instanceOf(ArgumentError)
    }
  })
})

onEachDatabase('A chat in memory', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  it('is built once, follows the model that is set, and stores what it says (S105)', async () => {
    await bench.script([text('One'), text('Two')])
    const statements: string[] = []
    const mill = await bench.connect({ observe: { onStatement: (sql) => statements.push(sql) } })
    const chat = await mill.chats.create({ model: 'first' })
    await chat.ask('Go')
    const llm = await chat.toLlm()
    expect(llm.messages.map(({ content }) => content)).to.deep.equal(['Go', 'One'])
    statements.length = 0
    chat.model = 'second'
    expect(await chat.toLlm()).to.equal(llm)
    expect([llm.model, [...llm].length, llm.chat]).to.deep.equal(['second', 2, chat])
    expect(statements).to.deep.equal([])
    expect((await llm.ask('And?'))?.content).to.equal('Two')
    expect(bench.model.requests[1]?.body).to.deep.include({ model: 'second' })
    expect(llm.messages).to.have.length(4)
    expect(await chat.messages()).to.deep.equal([...llm.messages])
    expect((await llm.addMessage({ role: 'user', content: 'More' }))?.content).to.equal('More')
    await (await mill.chats.find(chat.id)).withInstructions('Be brief.').save()
    expect(llm.messages).to.have.length(5)
    await chat.reload()
    expect(llm.messages).to.have.length(6)
  })

  it('has the other verbs of a chat', async () => {
    await bench.script([text('One'), text('Two'), text('Three')])
    const mill = await bench.connect()
    const llm = await (await mill.chats.create()).toLlm()
    expect(await llm.askLater('Go')).to.equal(llm)
    expect((await llm.step())?.content).to.equal('One')
    expect((await llm.generate())?.content).to.equal('Two')
    expect((await llm.complete())?.content).to.equal('Two')
    expect(await llm.runTools()).to.equal(llm)
    expect((await llm.compact())?.summaryThrough).to.equal(2)
    expect(llm.messages).to.have.length(4)
  })

  it('can have its tokens counted where the provider counts; Chat Completions does not', async () => {
    await bench.script(() => text('Yes'))
    const counting = openAiClient({ apiKey: 'k', baseURL: bench.model.url, provider: 'counting' })
    const client = {
      ...counting,
      countTokens: async (request: { messages: readonly unknown[] }) => request.messages.length * 10,
    }
    const agent = defineAgent({ name: freshName(), client })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.withInstructions('Be brief.').askLater('Go')
    expect([await chat.countTokens(), await chat.countTokens('And?')]).to.deep.equal([20, 30])
    expect(await chat.messages()).to.have.length(2)
    expect(bench.model.requests).to.have.length(0)
    const plain = await mill.chats.create()
    expect(await errorFrom(() => plain.countTokens())).to.be.instanceOf(UnsupportedByProviderError)
  })
})
