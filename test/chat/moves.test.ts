import { expect } from 'chai'
import { type Chat, defineAgent } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { lastCalls, resultsById, roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A single move', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** A chat whose question waits, and beside it a message in the queue. */
  async function staged() {
    const ids = [freshId(), freshId()]
    const calls = toolCalls([call('read', ids[0]), call('wipe', ids[1])], { text: 'One moment.' })
    await bench.script([calls, text('Done.'), text('And that.')])
    const runs: string[] = []
    const tools = [recording('read', runs), recording('wipe', runs, { requiresApproval: true })]
    const agent = defineAgent({ name: freshName(), tools })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Go')
    await chat.queue('Later', { steer: false, wake: false })
    return { ids, runs, mill, chat }
  }
  const queued = async (chat: Chat) => (await chat.queuedMessages()).map(({ content }) => content)

  it('of generate is one answer, stored with its calls, of which none runs', async () => {
    const { ids, runs, mill, chat } = await staged()
    const chunks: string[] = []
    const answer = await chat.generate((chunk) => void chunks.push(chunk.text))
    expect([answer?.role, answer?.content]).to.deep.equal(['assistant', 'One moment.'])
    expect(chunks.join('')).to.equal('One moment.')
    expect(answer?.toolCalls.map(({ toolCallId }) => toolCallId)).to.deep.equal(ids)
    expect((await chat.messages()).at(-1)?.id).to.equal(answer?.id)
    expect((await usageRows(mill, chat)).map(({ messageId }) => messageId)).to.deep.equal([answer?.id])
    expect(
      (await lastCalls(chat)).every(({ startedAt, resultId }) => startedAt === null && resultId === null),
    ).to.equal(true)
    expect([runs, await queued(chat), await chat.running()]).to.deep.equal([[], ['Later'], false])
    expect(bench.model.requests).to.have.length(1)
  })

  it('of runTools runs what may run and stores its results, and asks no model', async () => {
    const { ids, runs, chat } = await staged()
    await chat.generate()
    expect(await chat.runTools()).to.equal(chat)
    expect([runs, Object.keys(await resultsById(chat))]).to.deep.equal([['read'], [ids[0]]])
    expect(await chat.awaitingApproval()).to.equal(true)
    await chat.approve(ids[1] ?? '', { wake: false })
    expect(await chat.runTools()).to.equal(chat)
    expect(runs).to.deep.equal(['read', 'wipe'])
    expect(await roles(chat)).to.equal('user assistant tool tool')
    expect([await queued(chat), bench.model.requests.length]).to.deep.equal([['Later'], 1])
    const before = await chat.messages()
    expect(await chat.runTools(), 'with nothing to run').to.equal(chat)
    expect(await chat.messages()).to.deep.equal(before)
  })

  it('of step runs the open calls if there are any, else asks the model, and is null where nothing can be done', async () => {
    const { ids, runs, chat } = await staged()
    const chunks: string[] = []
    const step = () => chat.step((chunk) => void chunks.push(chunk.text))
    expect((await step())?.content).to.equal('One moment.')
    expect([runs, chunks.join('')]).to.deep.equal([[], 'One moment.'])
    expect((await step())?.role).to.equal('tool')
    expect([runs, bench.model.requests.length]).to.deep.equal([['read'], 1])
    expect(await step(), 'of a chat that waits').to.equal(null)
    await chat.deny(ids[1] ?? '', { wake: false })
    expect((await step())?.outcome).to.equal('denied')
    expect((await step())?.content).to.equal('Done.')
    expect(await chat.isComplete(), 'with a message in the queue').to.equal(false)
    expect((await step())?.content).to.equal('And that.')
    expect(await step(), 'of a chat that is complete').to.equal(null)
    expect([await queued(chat), bench.model.requests.length]).to.deep.equal([[], 3])
  })
})
