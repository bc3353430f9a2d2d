import { expect } from 'chai'
import { defineAgent, transferTool } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { chatRow } from './support/rows.ts'
import { call, freshName, recording } from './support/tools.ts'

onEachDatabase('A chat that goes to another agent while somebody changes it', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 10_000, sweepEveryMs: 100 })

  /** Two agents that the first transfers to or may be transferred to, and a tool of its that somebody else acts in. */
  function cast(act: () => Promise<unknown>) {
    const sales = defineAgent({ name: freshName(), instructions: 'Sales.' })
    const billing = defineAgent({ name: freshName(), instructions: 'Billing.' })
    const slow = recording('slow', [], {}, async () => {
      await act()
      return 'done'
    })
    const tools = [transferTool(billing, { name: 'to_billing', description: 'x' }), slow]
    return { desk: defineAgent({ name: freshName(), instructions: 'Desk.', tools }), billing, sales }
  }

  it('keeps settings that were stored during the round, and instructions (E176)', async () => {
    const { desk, billing } = cast(async () => {
      const elsewhere = await other.chats.find(chat.id)
      await elsewhere.withTemperature(0.25).withInstructions('Be brief.').save()
    })
    await bench.script([toolCalls([call('to_billing'), call('slow')]), text('Here to help.')])
    const options = { agents: [desk, billing] }
    const [mill, other] = [await bench.connect(options), await bench.connect(options)]
    const chat = await mill.chats.create({ agent: desk })
    await chat.ask('I want to pay.')
    expect((await chatRow(mill, chat)).settings).to.deep.equal({ temperature: 0.25 })
    expect(bench.model.requests.at(-1)?.body.temperature).to.equal(0.25)
    const { messages } = bench.model.requests.at(-1) ?? { messages: [] }
    expect(messages.filter(({ role }) => role === 'system').map(({ content }) => content)).to.deep.equal(['Be brief.'])
  })

  it('keeps settings that are stored in the very moment in which it goes (E176)', async () => {
    const { desk, billing } = cast(async () => {})
    await bench.script([toolCalls([call('to_billing')]), text('Here to help.')])
    const options = { agents: [desk, billing] }
    const [mill, other] = [await bench.connect(options), await bench.connect(options)]
    const chat = await mill.chats.create({ agent: desk })
    beforeNext(mill, 'transfer', async () => (await other.chats.find(chat.id)).withTemperature(0.25).save())
    await chat.ask('I want to pay.')
    expect((await chatRow(mill, chat)).settings).to.deep.equal({ temperature: 0.25 })
  })

  it('goes to whom it was said last: a word that comes during the round is not lost (E176)', async () => {
    const { desk, billing, sales } = cast(async () => (await other.chats.find(chat.id)).transferTo(sales))
    await bench.script([toolCalls([call('to_billing'), call('slow')]), text('Here to help.')])
    const options = { agents: [desk, billing, sales] }
    const [mill, other] = [await bench.connect(options), await bench.connect(options)]
    const chat = await mill.chats.create({ agent: desk })
    await chat.ask('I want to pay.')
    expect((await chatRow(mill, chat)).agent).to.equal(sales.name)
  })

  it('is not held up while the instructions of the new agent are made (E176)', async () => {
    const desk = defineAgent({ name: freshName(), instructions: 'Desk.' })
    const late = defineAgent({
      name: freshName(),
      instructionsAt: 'create',
      instructions: async ({ chat: { id } }) => {
        await (await other.chats.find(id)).withTemperature(0.25).save()
        return 'Late.'
      },
    })
    const options = { agents: [desk, late] }
    const [mill, other] = [await bench.connect(options), await bench.connect(options)]
    const chat = await mill.chats.create({ agent: desk })
    await chat.transferTo(late)
    const row = await chatRow(mill, chat)
    expect([row.agent, row.settings]).to.deep.equal([late.name, { temperature: 0.25 }])
    expect((await chat.messages()).map(({ content }) => content)).to.deep.equal(['Late.'])
  })
})
