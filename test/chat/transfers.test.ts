import { expect } from 'chai'
import * as z from 'zod'
import { ArgumentError, type Chat, defineAgent, defineTool, MissingAgentError, transferTool } from '../../src/index.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { chatRow, resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'
import { rejectionOf } from './support/watching.ts'

onEachDatabase('A chat that goes to another agent', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 10_000, sweepEveryMs: 100 })
  /** What each request was: its model, its system messages and its tools. */
  const asked = () =>
    bench.model.requests.map(({ model, messages, tools }) => [
      model,
      messages
        .filter(({ role }) => role === 'system')
        .map(({ content }) => content)
        .join(),
      tools.map((tool) => tool.function.name).join(),
    ])
  const system = async (chat: Chat) =>
    (await chat.messages()).filter(({ role }) => role === 'system').map(({ content }) => content)
  const atRest = (chat: Chat) =>
    until('the chat is answered', async () => (await chat.isComplete()) && !(await chat.running()), 60_000)

  /** Two agents of which the first can transfer to the second, and a third that stores its instructions. */
  function cast(runs: string[] = []) {
    const [first, second, third] = [freshName(), freshName(), freshName()]
    const billing = defineAgent({
      name: second,
      model: 'billing-model',
      inputs: z.object({ plan: z.string() }).partial(),
      instructions: ({ inputs }) => `Billing, plan ${inputs.plan ?? 'unknown'}.`,
      tools: [recording('pay', runs)],
      hooks: { afterMessage: (message) => void runs.push(`billing saw ${message.role}`) },
    })
    const desk = defineAgent({
      name: first,
      model: 'desk-model',
      instructions: 'Desk.',
      tools: [
        transferTool(billing, { name: 'to_billing', description: 'x', inputs: () => ({ plan: 'gold' }) }),
        recording('look', runs, { requiresApproval: true }),
        transferTool(third, { name: 'to_sales', description: 'x' }),
      ],
    })
    const sales = defineAgent({ name: third, instructionsAt: 'create', instructions: 'Sales.' })
    return { desk, billing, sales }
  }

  it('is answered by that one in the same turn, with its model, instructions, inputs, tools and hooks (E97)', async () => {
    const runs: string[] = []
    const { desk, billing, sales } = cast(runs)
    const id = freshId()
    await bench.script([toolCalls([call('to_billing', id)]), toolCalls([call('pay')]), text('Paid.')])
    const mill = await bench.connect({ agents: [desk, sales] })
    const chat = await mill.chats.create({ agent: desk })
    mill.startWorkers()
    await chat.askLater('I want to pay.', { enqueue: true })
    await atRest(chat)
    const [deskTools, billingTools] = ['to_billing,look,to_sales', 'pay']
    expect(asked()).to.deep.equal([
      ['desk-model', 'Desk.', deskTools],
      ['billing-model', 'Billing, plan gold.', billingTools],
      ['billing-model', 'Billing, plan gold.', billingTools],
    ])
    expect((await resultsById(chat))[id]).to.deep.equal({
      content: `Agent ${billing.name} goes on with the conversation.`,
      outcome: 'succeeded',
    })
    expect(runs).to.deep.equal(['billing saw assistant', 'pay', 'billing saw tool', 'billing saw assistant'])
    const now = await mill.chats.find(chat.id)
    expect([now.agent, now.inputs, (await chatRow(mill, chat)).turn]).to.deep.equal([billing.name, { plan: 'gold' }, 1])
    expect(await roles(chat)).to.equal('user assistant tool assistant tool assistant')
  })

  it('goes once its round is whole: what is open is still of the agent before (E97)', async () => {
    const runs: string[] = []
    const { desk, billing, sales } = cast(runs)
    await bench.script([toolCalls([call('to_billing'), call('look')]), text('Here to help.')])
    const options = { agents: [desk, sales] }
    const mill = await bench.connect(options)
    const chat = await mill.chats.create({ agent: desk })
    await chat.ask('I want to pay.')
    expect((await mill.chats.find(chat.id)).agent).to.equal(desk.name)
    const [look] = await chat.pendingApprovals()
    expect(look?.name).to.equal('look')
    const again = await (await bench.connect(options)).chats.find(chat.id)
    await again.approve(look ?? '')
    expect((await again.complete())?.content).to.equal('Here to help.')
    expect(runs[0]).to.equal('look')
    expect((await mill.chats.find(chat.id)).agent).to.equal(billing.name)
    expect(asked().map(([model]) => model)).to.deep.equal(['desk-model', 'billing-model'])
  })

  it('leaves the instructions that the agent before stored, and keeps its own (E97)', async () => {
    const { desk, billing, sales } = cast()
    await bench.script(text('Yes.'))
    const mill = await bench.connect({ agents: [desk, sales] })
    const stored = await mill.chats.create({ agent: sales })
    expect(await system(stored)).to.deep.equal(['Sales.'])
    await stored.transferTo(billing, { inputs: { plan: 'iron' } })
    expect(await system(stored)).to.deep.equal([])
    await stored.ask('Hello?')
    await stored.transferTo(sales)
    expect(await system(stored)).to.deep.equal(['Sales.'])
    const own = await mill.chats.create({ agent: desk })
    await own.withInstructions('Be brief.').save()
    await own.transferTo(sales)
    expect(await system(own)).to.deep.equal(['Be brief.'])
    expect(asked().map(([, said]) => said)).to.deep.equal(['Billing, plan iron.'])
  })

  it('is transferred by the application too, at once while nobody runs it (E98)', async () => {
    const { desk, billing, sales } = cast()
    const extra = defineTool({ name: 'extra', description: 'x', parameters: z.object({}), execute: () => 'x' })
    await bench.script(text('Yes.'))
    const mill = await bench.connect({ agents: [desk, sales], tools: [extra] })
    const chat = await mill.chats.create({ agent: desk })
    await chat.withTools('look', extra).withTemperature(0.5).ask('Hello?')
    expect(await chat.transferTo(billing.name, { inputs: { plan: 'tin' } })).to.equal(chat)
    expect([chat.agent, chat.inputs]).to.deep.equal([billing.name, { plan: 'tin' }])
    expect((await chatRow(mill, chat)).wantedAt).to.equal(null)
    await (await mill.chats.find(chat.id)).ask('And now?')
    expect(asked().at(-1)).to.deep.equal(['billing-model', 'Billing, plan tin.', 'pay'])
    expect(bench.model.requests.at(-1)?.body.temperature).to.equal(0.5)

    const bad = [
      ['nobody'],
      [billing, { inputs: { plan: 7 } }],
      [billing, { inputs: [] }],
      [desk, { inputs: {} }],
      [null],
    ]
    for (const [agent, options] of bad) {
      const error = await rejectionOf(chat.transferTo(agent as never, options as never))
      expect(error).to.be.instanceOf(agent === 'nobody' ? MissingAgentError : ArgumentError)
    }
    const joined = rejectionOf(
      mill.transaction(async (transaction) => {
        await chat.transferTo(desk, { transaction })
        throw new Error('no')
      }),
    )
    expect(await joined).to.have.property('message', 'no')
    expect((await mill.chats.find(chat.id)).agent).to.equal(billing.name)
  })

  it('goes after the answer that is being made, where a process runs it (E98)', async () => {
    const { desk, billing, sales } = cast()
    const held = gate(text('From the desk.'))
    await bench.script([held, text('From billing.')])
    const mill = await bench.connect({ agents: [desk, sales] })
    const chat = await mill.chats.create({ agent: desk })
    mill.startWorkers()
    await chat.askLater('Hello?', { enqueue: true })
    await held.reached
    await chat.transferTo(billing)
    await chat.queue('And now?')
    expect((await mill.chats.find(chat.id)).agent).to.equal(desk.name)
    held.release()
    await atRest(chat)
    expect((await mill.chats.find(chat.id)).agent).to.equal(billing.name)
    expect((await chat.messages()).map(({ content }) => content)).to.deep.equal([
      'Hello?',
      'From the desk.',
      'And now?',
      'From billing.',
    ])
    expect(asked().map(([model]) => model)).to.deep.equal(['desk-model', 'billing-model'])
  })

  it('goes on in a process that has that agent, where the one that ran it does not (E98)', async () => {
    const { desk, sales } = cast()
    const far = defineAgent({ name: freshName(), instructions: 'Far.' })
    const held = gate(text('From the desk.'))
    await bench.script([held, text('From afar.')])
    const here = await bench.connect({ agents: [desk, sales] })
    const chat = await here.chats.create({ agent: desk })
    expect(await rejectionOf(chat.transferTo(far))).to.be.instanceOf(MissingAgentError)
    here.startWorkers()
    await chat.askLater('Hello?', { enqueue: true })
    await held.reached
    await chat.transferTo(far, { agentElsewhere: true })
    await chat.queue('And now?')
    held.release()
    await until('it is that agent’s', async () => (await here.chats.find(chat.id)).agent === far.name)
    const there = await bench.connect({ agents: [far] })
    there.startWorkers()
    await atRest(chat)
    expect((await chat.messages()).at(-1)?.content).to.equal('From afar.')
    expect(asked().at(-1)?.[1]).to.equal('Far.')
  })
})
