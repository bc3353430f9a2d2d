import { expect } from 'chai'
import * as z from 'zod'
import { ArgumentError, type Chat, ConfigurationError, defineAgent } from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { rejectionOf } from './support/watching.ts'

const order = z.object({ customer: z.string(), since: z.iso.date().transform((date) => new Date(date)) })
const given = { customer: 'Ada', since: '2024-05-01' }
const concierge = defineAgent({
  name: 'concierge',
  inputs: order,
  instructions: async ({ inputs, chat }) =>
    `${inputs.customer} is with us since ${inputs.since.getUTCFullYear()}; chat of ${String(chat.owner)}.`,
})
const frozen = defineAgent({
  name: 'frozen',
  inputs: { type: 'object', properties: { tone: { type: 'string', default: 'kind' } } },
  instructionsAt: 'create',
  instructions: ({ inputs }) => `Be ${String(inputs.tone)}.`,
})
const plain = defineAgent({ name: 'plain', instructions: 'You are plain.' })

onEachDatabase('The inputs of an agent', (kind) => {
  const bench = useBench(kind)
  const connect = () => bench.connect({ agents: [concierge, frozen, plain] })
  const system = () =>
    bench.model.requests
      .at(-1)
      ?.messages.filter(({ role }) => role === 'system')
      .map(({ content }) => content)
  const stored = async (chat: Chat) =>
    (await chat.messages()).filter(({ role }) => role === 'system').map(({ content }) => content)

  it('make its instructions for each run, in any process, as its schema reads them (E94)', async () => {
    await bench.script(text('Yes.'))
    const [web, worker] = [await connect(), await connect()]
    const chat = await web.chats.create({ agent: concierge, owner: 'shop', inputs: given })
    worker.startWorkers()
    await chat.askLater('Am I known?', { enqueue: true })
    await until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    expect(system()).to.deep.equal(['Ada is with us since 2024; chat of shop.'])
    expect(await stored(chat)).to.deep.equal([])
    expect((await web.chats.find(chat.id)).inputs).to.deep.equal(given)

    chat.withInputs({ ...given, customer: 'Grace' })
    expect(chat.inputs).to.deep.equal({ ...given, customer: 'Grace' })
    expect(((await chat.render()).messages as { content: string }[])[0]?.content).to.match(/^Grace/)
    await chat.ask('And now?')
    expect(system()).to.deep.equal(['Grace is with us since 2024; chat of shop.'])
    expect((await web.chats.fork(chat)).inputs, 'a fork has them too').to.deep.equal({ ...given, customer: 'Grace' })
  })

  it('are stored as instructions when the chat is made, where the agent says so (E95)', async () => {
    await bench.script(text('Yes.'))
    const mill = await connect()
    const chat = await mill.chats.create({ agent: frozen, inputs: { tone: 'short' } })
    expect(await stored(chat)).to.deep.equal(['Be short.'])
    await chat.withInputs({ tone: 'long' }).ask('Hello?')
    expect(system(), 'what was stored stays').to.deep.equal(['Be short.'])
    const usual = await mill.chats.create({ agent: frozen })
    expect(await stored(usual), 'with the default of its schema').to.deep.equal(['Be kind.'])
    const elsewhere = await bench.connect()
    const strange = await elsewhere.chats.create({ agent: 'frozen' }, { agentElsewhere: true })
    await (await mill.chats.find(strange.id)).ask('Hello?')
    expect(system(), 'made for each run where nobody could store them').to.deep.equal(['Be kind.'])
  })

  it('are refused where its schema does not take them, and nothing is written (E94)', async () => {
    const mill = await connect()
    const count = () => mill.models.Chat.count()
    const before = await count()
    for (const inputs of [undefined, { customer: 'Ada' }, { ...given, more: 1 }]) {
      const error = await rejectionOf(mill.chats.create({ agent: concierge, inputs }))
      expect(error).to.be.instanceOf(ArgumentError)
      expect((error as Error).message)
        .to.include('concierge')
        .and.include("The agent's inputs: customer, since")
    }
    expect(await rejectionOf(mill.chats.create({ agent: plain, inputs: {} }))).to.be.instanceOf(ArgumentError)
    expect(await rejectionOf(mill.chats.create({ inputs: given }))).to.be.instanceOf(ArgumentError)
    expect(await count()).to.equal(before)

    const chat = await mill.chats.create({ agent: concierge, inputs: given })
    expect(() => chat.withInputs([] as never)).to.throw(ArgumentError)
    chat.withInputs({ customer: 7 })
    expect(await rejectionOf(chat.save())).to.be.instanceOf(ArgumentError)
    expect((await mill.chats.find(chat.id)).inputs).to.deep.equal(given)
  })

  it('fail the turn, by the worker, where nobody could look at them before (E94)', async () => {
    await bench.script(text('Yes.'))
    const web = await bench.connect()
    const chat = await web.chats.create({ agent: 'concierge', inputs: { wrong: true } }, { agentElsewhere: true })
    const mill = await connect()
    const error = await rejectionOf((await mill.chats.find(chat.id)).ask('Hello?'))
    expect(error).to.be.instanceOf(ConfigurationError)
    expect((error as Error).message).to.include('withInputs()')
    expect(bench.model.requests).to.have.length(0)
    await (await mill.chats.find(chat.id)).withInputs(given).complete()
    expect(system()).to.deep.equal(['Ada is with us since 2024; chat of null.'])
  })

  it('reach a function whose errors fail the turn without their text (E94)', async () => {
    await bench.script(text('Yes.'))
    const failing = defineAgent({
      name: 'failing',
      instructions: () => {
        throw new Error('secret of the vault')
      },
    })
    const wrong = defineAgent({ name: 'wrong', instructions: () => 7 as never })
    const mill = await bench.connect({ agents: [failing, wrong] })
    const chat = await mill.chats.create({ agent: failing })
    const error = await rejectionOf(chat.ask('Hello?'))
    expect(error)
      .to.be.instanceOf(ConfigurationError)
      .and.have.property('cause')
      .with.property('message', 'secret of the vault')
    expect(JSON.stringify(await chat.failure())).to.not.include('secret')
    expect(await rejectionOf((await mill.chats.create({ agent: wrong })).ask('Hello?'))).to.be.instanceOf(
      ConfigurationError,
    )
  })
})
