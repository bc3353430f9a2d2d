import { expect } from 'chai'
import * as z from 'zod'
import { type Chat, defineAgent, defineTool, MissingAgentError, type Threadmill } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { rejectionOf } from './support/watching.ts'

const named = (name: string) =>
  defineTool({ name, description: `Does ${name}.`, parameters: z.object({}), execute: () => `${name} done` })
const [look, dig] = [named('look'), named('dig')]
const guide = defineAgent({
  name: 'guide',
  model: 'agent-model',
  temperature: 1.5,
  maxOutputTokens: 500,
  instructions: 'You are a guide.',
  tools: [named('walk')],
})
const equipment = { agents: [guide], tools: [look, dig] }
const asAgentSays = {
  model: 'agent-model',
  temperature: 1.5,
  limit: 500,
  system: ['You are a guide.'],
  tools: ['walk'],
}

onEachDatabase('A chat’s settings', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })

  /** A process that configures and one that works, and a chat of the agent. */
  async function twoProcesses(): Promise<{ web: Threadmill; worker: Threadmill; chat: Chat }> {
    await bench.script(text('Yes.'))
    const [web, worker] = [await bench.connect(equipment), await bench.connect(equipment)]
    return { web, worker, chat: await web.chats.create({ agent: guide }) }
  }
  /** What the last request said. */
  function asked() {
    const request = bench.model.requests.at(-1)
    const body = (request?.body ?? {}) as { model?: string; temperature?: number; max_completion_tokens?: number }
    return {
      model: body.model,
      temperature: body.temperature,
      limit: body.max_completion_tokens,
      system: request?.messages.filter(({ role }) => role === 'system').map(({ content }) => content),
      tools: request?.tools.map((tool) => tool.function.name),
    }
  }
  const systemRows = (mill: Threadmill, chat: Chat) =>
    mill.models.Message.findAll({ where: { chatId: chat.id, role: 'system' }, order: ['position'] })

  it('are the agent’s as long as the chat has none', async () => {
    const { chat } = await twoProcesses()
    await chat.ask('Where?')
    expect(asked()).to.deep.equal(asAgentSays)
  })

  it('are stored by an enqueue and kept to by a worker of another process', async () => {
    const { web, worker, chat } = await twoProcesses()
    chat.withModel('chat-model').withTemperature(0).withMaxOutputTokens(99)
    chat.withInstructions('Answer in verse.').withTools('look', dig)
    await chat.askLater('Where?')
    await worker.startWorkers({ complete: 1, runTools: 0 }).ready()
    await web.jobs.complete.enqueue(chat)
    await until('the worker answers', () => chat.isComplete())
    const own = {
      model: 'chat-model',
      temperature: 0,
      limit: 99,
      system: ['Answer in verse.'],
      tools: ['look', 'dig'],
    }
    expect(asked()).to.deep.equal(own)
    const row = await web.models.Chat.findByPk(chat.id)
    expect(row?.settings).to.deep.equal({ temperature: 0, maxOutputTokens: 99, tools: ['look', 'dig'] })
    const found = await worker.chats.find(chat.id)
    await found.ask('And now?')
    expect(asked(), 'of a chat that was found').to.deep.equal(own)
  })

  it('are the agent’s again after null, one by one', async () => {
    const { worker, chat } = await twoProcesses()
    chat.withModel('chat-model').withTemperature(0).withMaxOutputTokens(99)
    await chat.withInstructions('Answer in verse.').withTools('look').save()
    const changes: [(one: Chat) => Chat, Partial<typeof asAgentSays>][] = [
      [(one) => one.withTemperature(null), { temperature: 1.5 }],
      [(one) => one.withMaxOutputTokens(null), { limit: 500 }],
      [(one) => one.withTools(null), { tools: ['walk'] }],
      [(one) => one.withInstructions(null), { system: ['You are a guide.'] }],
      [(one) => one.withModel(null), { model: 'agent-model' }],
    ]
    let expected = { model: 'chat-model', temperature: 0, limit: 99, system: ['Answer in verse.'], tools: ['look'] }
    for (const [change, back] of changes) {
      change(chat)
      expected = { ...expected, ...back }
      await chat.askLater('Where?')
      await (await worker.chats.find(chat.id)).complete()
      expect(asked()).to.deep.equal(expected)
    }
    expect(asked()).to.deep.equal(asAgentSays)
  })

  for (const [verb, store] of Object.entries({
    ask: (chat: Chat) => chat.ask('Where?'),
    askLater: (chat: Chat) => chat.askLater('Where?'),
    complete: (chat: Chat) => chat.complete(),
    step: (chat: Chat) => chat.step(),
    generate: (chat: Chat) => chat.generate(),
    runTools: (chat: Chat) => chat.runTools(),
    addMessage: (chat: Chat) => chat.addMessage({ role: 'user', content: 'Where?' }),
    queue: (chat: Chat) => chat.queue('Where?', { wake: false }),
    save: (chat: Chat) => chat.save(),
  })) {
    it(`are stored by ${verb}, and not before`, async () => {
      const { web, chat } = await twoProcesses()
      await chat.askLater('First?')
      chat.withTemperature(0.25).withInstructions('Be brief.')
      const stored = async () => {
        const row = await web.models.Chat.findByPk(chat.id)
        return [row?.settings, (await systemRows(web, chat)).map((message) => message.content)]
      }
      expect(await stored()).to.deep.equal([{}, []])
      await store(chat)
      expect(await stored()).to.deep.equal([{ temperature: 0.25 }, ['Be brief.']])
    })
  }

  it('stay to be stored when what would have stored them fails', async () => {
    const { web, chat } = await twoProcesses()
    await bench.script([toolCalls([{ name: 'guarded', arguments: {} }]), text('Done.')])
    const guarded = defineTool({
      name: 'guarded',
      description: 'Asks first.',
      parameters: z.object({}),
      requiresApproval: true,
      execute: () => 'done',
    })
    const agent = defineAgent({ name: 'careful', tools: [guarded] })
    const mill = await bench.connect({ agents: [agent] })
    const careful = await mill.chats.create({ agent })
    await careful.ask('Do it.')
    careful.withTemperature(0.5)
    expect(await rejectionOf(careful.askLater('And that.'))).to.have.property('code', 'chat.pending_tool_calls')
    const settings = async () => (await web.models.Chat.findByPk(careful.id))?.settings
    expect(await settings()).to.deep.equal({})
    await careful.save()
    expect(await settings()).to.deep.equal({ temperature: 0.5 })
    expect(chat.id).to.not.equal(careful.id)
  })

  it('stand after a reload, stored or not, but for a model and a provider that were not stored (S104)', async () => {
    const { web, worker, chat } = await twoProcesses()
    await chat.withTemperature(0.5).withModel('kept').save()
    await (await worker.chats.find(chat.id)).withMaxOutputTokens(77).save()
    chat.withTemperature(0.75).withInstructions('Be brief.').withTools('look', named('swim'))
    await chat.withModel('dropped', { provider: 'nobody' }).reload()
    expect([chat.modelId, chat.provider, chat.temperature, chat.maxOutputTokens]).to.deep.equal([
      'kept',
      null,
      0.75,
      77,
    ])
    expect(await systemRows(web, chat)).to.deep.equal([])
    await chat.ask('Where?')
    expect(asked()).to.deep.equal({
      model: 'kept',
      temperature: 0.75,
      limit: 77,
      system: ['Be brief.'],
      tools: ['look', 'swim'],
    })
    const row = await web.models.Chat.findByPk(chat.id)
    expect(row?.settings).to.deep.equal({ temperature: 0.75, maxOutputTokens: 77, tools: ['look', 'swim'] })
    expect((await systemRows(web, chat)).map(({ content }) => content)).to.deep.equal(['Be brief.'])
    expect((await (await chat.withTemperature(null).reload()).save()).temperature).to.equal(1.5)
    expect((await web.models.Chat.findByPk(chat.id))?.settings).to.not.have.property('temperature')
  })

  it('hold instructions in rows: the same text writes nothing, another text keeps the row (S101)', async () => {
    const statements: string[] = []
    await bench.script(text('Yes.'))
    const mill = await bench.connect({ ...equipment, observe: { onStatement: (sql) => statements.push(sql) } })
    const chat = await mill.chats.create({ agent: guide })
    await chat.withInstructions('Be brief.').save()
    const [first] = await systemRows(mill, chat)
    statements.length = 0
    await chat.withInstructions('Be brief.').save()
    const written = () => statements.filter((sql) => /^(INSERT|UPDATE|DELETE)[^;]*threadmill_messages/.test(sql))
    expect(written()).to.deep.equal([])
    const rows = async () => (await systemRows(mill, chat)).map(({ id, content }) => ({ id, content }))
    expect(await rows()).to.deep.equal([{ id: first?.id, content: 'Be brief.' }])
    await chat.withInstructions('Be long.').save()
    expect(written()).to.have.length(1)
    expect(await rows()).to.deep.equal([{ id: first?.id, content: 'Be long.' }])
    expect((await systemRows(mill, chat))[0]?.createdAt).to.deep.equal(first?.createdAt)
  })

  it('hold appended instructions behind the others, until all are replaced or dropped (S101)', async () => {
    const { web, chat } = await twoProcesses()
    const texts = async () => (await systemRows(web, chat)).map((message) => message.content)
    await chat.withInstructions('One.').withInstructions('Two.', { append: true }).save()
    expect(await texts()).to.deep.equal(['One.', 'Two.'])
    const [one] = await systemRows(web, chat)
    await chat.ask('Where?')
    expect(asked().system).to.deep.equal(['One.', 'Two.'])
    await chat.withInstructions('Three.', { append: true }).ask('And now?')
    expect(await texts()).to.deep.equal(['One.', 'Two.', 'Three.'])
    // Added last, sent first: a system message belongs to no turn.
    expect(bench.model.requests.at(-1)?.messages.map(({ role }) => role)).to.deep.equal([
      'system',
      'system',
      'system',
      'user',
      'assistant',
      'user',
    ])
    await chat.withInstructions('Only this.').save()
    expect((await systemRows(web, chat)).map(({ id, content }) => [id, content])).to.deep.equal([
      [one?.id, 'Only this.'],
    ])
    await chat.withInstructions(null).save()
    expect(await texts()).to.deep.equal([])
    await chat.ask('Who are you?')
    expect(asked().system).to.deep.equal(['You are a guide.'])
    expect((await chat.messages()).filter(({ role }) => role !== 'system')).to.have.length(6)
  })

  it('name tools: an object can be used by its own chat, a name only where the process has it', async () => {
    await bench.script([toolCalls([{ name: 'swim', arguments: {} }]), text('Wet.')])
    const mill = await bench.connect({ agents: [guide] })
    const chat = await mill.chats.create({ agent: guide })
    expect((await chat.withTools(named('swim')).ask('Swim.'))?.content).to.equal('Wet.')
    const [, , result] = await chat.messages()
    expect(result?.content).to.equal('swim done')
    const found = await mill.chats.find(chat.id)
    const error = await rejectionOf(found.ask('Again.'))
    expect(error).to.be.instanceOf(MissingAgentError).and.have.property('message').that.includes('swim')
    expect(await found.failure()).to.equal(null)
  })
})
