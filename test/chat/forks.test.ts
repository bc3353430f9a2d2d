import { expect } from 'chai'
import { ArgumentError, type Chat, ChatNotFoundError, defineAgent, type Threadmill } from '../../src/index.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { chatRow, lastCall, roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A fork', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  async function setUp(replies: Parameters<typeof bench.script>[0], runs: string[] = []) {
    await bench.script(replies)
    const tools = [recording('look', runs), recording('wipe', runs, { requiresApproval: true })]
    const told: string[] = []
    const agent = defineAgent({
      name: freshName(),
      tools,
      retries: 0,
      onTurnEnd: (_, { kind }) => void told.push(kind),
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent, owner: { type: 'User', id: agent.name } })
    return { mill, agent, chat, runs, told }
  }
  /** What a message says, without what is its own. */
  const said = async (chat: Chat) =>
    (await chat.messages()).map(({ role, content, position, finishReason, outcome, toolCalls: calls }) => ({
      ...{ role, content, position, finishReason, outcome },
      calls: calls.map(({ name, arguments: passed, resultId }) => ({ name, passed, answered: resultId !== null })),
    }))
  const sentTo = (at: number) => JSON.stringify(bench.model.requests[at]?.body.messages)

  it('has the messages with ids of its own, the settings, the instructions and the owner (E54)', async () => {
    const { mill, agent, chat, runs, told } = await setUp([
      toolCalls([call('look', 'call_of_the_provider')]),
      text('Seen'),
      text('Old'),
      text('New'),
    ])
    await chat.withModel('other-model').withInstructions('Be brief.').withTemperature(0.5).ask('Look')
    const fork = await mill.chats.fork(chat)
    expect(await said(fork)).to.deep.equal(await said(chat))
    const ids = (await chat.messages()).flatMap(({ id, toolCalls: calls }) => [id, ...calls.map((one) => one.id)])
    for (const { id, toolCalls: calls } of await fork.messages()) {
      for (const own of [id, ...calls.map((one) => one.id)]) expect(ids).not.to.include(own)
    }
    const [old, copy] = [await lastCall(chat), await lastCall(fork)]
    expect(copy.toolCallId).to.not.equal(old.toolCallId)
    expect(copy.providerCallId).to.equal(old.providerCallId ?? old.toolCallId)
    expect((await fork.messages()).find(({ id }) => id === copy.resultId)?.content).to.equal('look done')
    expect([fork.agent, fork.model, fork.owner]).to.deep.equal([agent.name, 'other-model', chat.owner])
    expect((await chatRow(mill, fork)).settings).to.deep.equal((await chatRow(mill, chat)).settings)
    const last = (await chat.messages()).at(-1)
    expect(fork.forkedFrom).to.deep.equal({ chatId: chat.id, position: last?.position })
    expect((await mill.chats.find(fork.id)).forkedFrom).to.deep.equal(fork.forkedFrom)
    expect(chat.forkedFrom).to.equal(null)

    // Both go on by themselves, and the provider sees one history.
    await chat.ask('More')
    await fork.ask('More')
    expect(sentTo(3)).to.equal(sentTo(2)).and.include('call_of_the_provider')
    expect([(await chat.page({ limit: 1 })).messages[0]?.content, runs]).to.deep.equal(['Old', ['look']])
    expect((await fork.page({ limit: 1 })).messages[0]?.content).to.equal('New')
    expect(told).to.deep.equal(['answered', 'answered', 'answered'])
  })

  it('has no usage, queue, wish, cancel or claim, and is not told of turns that ended (E54)', async () => {
    const { mill, chat, told } = await setUp([text('Hello')])
    await chat.ask('Hi')
    await chat.queue('Later')
    const fork = await mill.chats.fork(chat.id)
    const row = await chatRow(mill, fork)
    expect([row.wantedAt, row.claimedBy, row.claimToken, row.cancelTurn, row.failure]).to.deep.equal([
      null,
      null,
      0,
      null,
      null,
    ])
    expect([await usageRows(mill, fork), await fork.queuedMessages(), await fork.isComplete()]).to.deep.equal([
      [],
      [],
      true,
    ])
    expect((await fork.complete())?.content).to.equal('Hello')
    expect(told).to.deep.equal(['answered'])
    expect(await chat.queuedMessages()).to.have.length(1)
  })

  it('ends at a position or a message, with the whole of its round (E54)', async () => {
    const { mill, chat } = await setUp([
      toolCalls([call('look', freshId()), call('look', freshId(), { note: 'b' })]),
      text('Seen'),
      text('Bye'),
      text('Again'),
    ])
    await chat.ask('Look')
    await chat.ask('Bye')
    const [asked, round, firstResult, , seen] = await chat.messages()
    expect(await roles(await mill.chats.fork(chat, { at: asked?.position ?? -1 }))).to.equal('user')
    for (const at of [round?.id, firstResult?.id, firstResult?.position]) {
      expect(await roles(await mill.chats.fork(chat, { at: at ?? '' }))).to.equal('user assistant tool tool')
    }
    const fork = await mill.chats.fork(chat, { at: seen?.id ?? '' })
    expect(await roles(fork)).to.equal('user assistant tool tool assistant')
    const owing = await mill.chats.fork(chat, { at: asked?.id ?? '' })
    expect(await owing.isComplete()).to.equal(false)
    expect((await owing.complete())?.content).to.equal('Again')
    for (const at of ['no such id', -1, 99]) {
      const before = await mill.models.Chat.count()
      const error = await errorFrom(() => mill.chats.fork(chat, { at }))
      expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes(chat.id)
      expect(await mill.models.Chat.count()).to.equal(before)
    }
    expect(await errorFrom(() => mill.chats.fork('no such chat'))).to.be.instanceOf(ChatNotFoundError)
  })

  it('allows nothing for the rest of the chat (E54)', async () => {
    const replies = [toolCalls([call('wipe', freshId())]), text('Wiped'), toolCalls([call('wipe', freshId())])]
    const { mill, chat, runs } = await setUp(replies)
    await chat.ask('Wipe')
    await chat.approve(await lastCall(chat), { remember: true, wake: false })
    await chat.complete()
    expect(runs).to.deep.equal(['wipe'])
    const fork = await mill.chats.fork(chat)
    expect((await lastCall(fork)).approval).to.equal('approved')
    await fork.ask('Wipe again')
    expect([await fork.awaitingApproval(), runs]).to.deep.equal([true, ['wipe']])
  })

  it('stops before an open round, of which some calls may be answered (E54)', async () => {
    const replies = [text('Hello'), toolCalls([call('look', freshId()), call('wipe', freshId())])]
    const { mill, chat, runs } = await setUp(replies)
    await chat.ask('Hi')
    await chat.ask('Look and wipe')
    expect(await roles(chat)).to.equal('user assistant user assistant tool')
    const [, , question, round, result] = await chat.messages()
    for (const at of [undefined, round?.id, result?.position]) {
      const fork = await mill.chats.fork(chat, { at })
      expect(await roles(fork)).to.equal('user assistant user')
      expect(fork.forkedFrom?.position).to.equal(question?.position)
      expect([await fork.waiting(), await fork.isComplete()]).to.deep.equal([false, false])
    }
    expect(await chat.awaitingApproval()).to.equal(true)
    expect(runs).to.deep.equal(['look'])
  })

  it('takes summaries along whose messages it has, and leaves out those that say more (E54)', async () => {
    const { mill, chat } = await setUp([text('One'), text('Two'), text('Short'), text('Three'), text('Four')])
    await chat.ask('First: tell me everything about the number one, please, at length')
    const one = (await chat.messages()).at(-1)
    await chat.ask('Second')
    await chat.compact({ keep: 2 })
    const whole = await mill.chats.fork(chat, {
      at: (await chat.messages()).findLast((m) => m.content === 'Two')?.id ?? '',
    })
    await whole.ask('Third')
    const sent = JSON.stringify(bench.model.requests.at(-1)?.body.messages)
    expect(sent).to.include('Short').and.include('Second').and.not.include('First')
    const early = await mill.chats.fork(chat, { at: 0 })
    expect((await early.messages()).filter(({ summaryThrough }) => summaryThrough !== null)).to.deep.equal([])
    expect(one?.content).to.equal('One')
  })

  it('can be made while a process runs the old chat, of what is stored, and outlives it (E54)', async () => {
    const answer = gate(text('Late'))
    const { mill, chat } = await setUp([text('Hello'), answer, text('Forked')])
    await chat.ask('Hi')
    const running = chat.ask('More')
    await answer.reached
    const fork = await mill.chats.fork(chat)
    expect(await roles(fork)).to.equal('user assistant user')
    answer.release()
    expect((await running)?.content).to.equal('Late')
    await chat.delete()
    expect((await fork.complete())?.content).to.equal('Forked')
    expect(fork.forkedFrom?.chatId).to.equal(chat.id)
  })

  it('can be part of a transaction, and copies hundreds of messages (E54)', async () => {
    const { mill, chat } = await setUp([])
    for (let at = 0; at < 5; at++) {
      const many = Array.from({ length: 50 }, (_, n) => ({ role: 'user' as const, content: `${at}.${n}` }))
      for (const message of many) await chat.addMessage(message)
    }
    const undone = await errorFrom(() => forkAndThrow(mill, chat))
    expect(undone).to.have.property('message', 'undone')
    const forks = () => mill.models.Chat.count({ where: { forkedFrom: chat.id } })
    expect(await forks()).to.equal(0)
    const fork = await mill.transaction((transaction) => mill.chats.fork(chat, { transaction }))
    expect(await forks()).to.equal(1)
    expect(await said(fork)).to.deep.equal(await said(chat))
  })

  async function forkAndThrow(mill: Threadmill, chat: Chat): Promise<void> {
    await mill.transaction(async (transaction) => {
      await mill.chats.fork(chat, { transaction })
      throw new Error('undone')
    })
  }
})
