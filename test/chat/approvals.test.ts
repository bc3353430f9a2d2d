import { expect } from 'chai'
import {
  ArgumentError,
  type Chat,
  defineAgent,
  PendingToolCallsError,
  ToolCallDecidedError,
  type ToolCallRecord,
  ToolCallRunningError,
} from '../../src/index.ts'
import { type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { change, chatRow, lastCall, lastCalls, resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A call that needs approval', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** A chat that waits for a decision about one call of `wipe`, and what another process sees of it. */
  async function parked(...later: Reply[]) {
    const id = freshId()
    await bench.script([toolCalls([call('wipe', id)]), ...later])
    const runs: string[] = []
    const agent = defineAgent({
      name: freshName(),
      tools: [recording('wipe', runs, { requiresApproval: true }), recording('read', runs)],
    })
    const here = await bench.connect({ agents: [agent] })
    const elsewhere = await bench.connect({ agents: [agent] })
    const chat = await here.chats.create({ agent })
    await chat.ask('Wipe it')
    return { id, runs, agent, here, elsewhere, chat, other: await elsewhere.chats.find(chat.id) }
  }

  it('waits, unrun, and is listed, seen from any process (S33)', async () => {
    const { id, runs, chat, other, here } = await parked()
    expect(runs).to.deep.equal([])
    for (const seen of [chat, other]) {
      expect(await seen.awaitingApproval()).to.equal(true)
      expect(await seen.waiting()).to.equal(true)
      expect(await seen.isComplete()).to.equal(false)
      expect(await seen.running()).to.equal(false)
      const pending = await seen.pendingApprovals()
      expect(pending.map(({ name, toolCallId, approval }) => ({ name, toolCallId, approval }))).to.deep.equal([
        { name: 'wipe', toolCallId: id, approval: 'pending' },
      ])
    }
    expect((await lastCall(chat)).approval).to.equal('pending')
    expect((await chatRow(here, chat)).parked).to.equal(true)
  })

  it('is asked about once, however often the chat is completed (S34)', async () => {
    const { id, chat, other } = await parked()
    const before = await chat.messages()
    const requested: string[] = []
    let waits = 0
    const stop = new AbortController()
    const reading = (async () => {
      for await (const event of chat.events({ after: '0', signal: stop.signal })) {
        if (event.type === 'approval.requested') requested.push(event.toolCall.toolCallId)
        if (event.type === 'run.waiting' && ++waits === 3) return
      }
    })()
    expect((await other.complete())?.role).to.equal('assistant')
    expect((await chat.complete())?.id).to.equal(before.at(-1)?.id)
    await reading
    stop.abort()
    expect(requested).to.deep.equal([id])
    expect(bench.model.requests).to.have.length(1)
    expect(await chat.messages()).to.deep.equal(before)
  })

  it('runs once it is approved, when another process completes the chat (S35)', async () => {
    const { id, runs, chat, other } = await parked(text('Wiped.'))
    await chat.approve(id, { wake: false })
    expect(runs).to.deep.equal([])
    expect(await chat.waiting()).to.equal(false)
    expect((await other.complete())?.content).to.equal('Wiped.')
    expect(runs).to.deep.equal(['wipe'])
    expect(await roles(chat)).to.equal('user assistant tool assistant')
    expect((await resultsById(chat))[id]).to.deep.equal({ content: 'wipe done', outcome: 'succeeded' })
  })

  it('is named by a record, its plain value, or an id (S35)', async () => {
    for (const name of [
      (record: ToolCallRecord) => record,
      (record: ToolCallRecord) => record.toLlm(),
      (record: ToolCallRecord) => record.id,
      (record: ToolCallRecord) => record.toolCallId,
    ]) {
      const { runs, chat, other } = await parked(text('Wiped.'))
      const [record] = await other.pendingApprovals()
      if (record === undefined) throw new Error('Nothing awaits approval')
      expect(await other.approve(name(record), { wake: false })).to.equal(other)
      expect((await lastCall(chat)).approval).to.equal('approved')
      expect((await chat.complete())?.content).to.equal('Wiped.')
      expect(runs).to.deep.equal(['wipe'])
    }
  })

  it('runs in a worker that the approval itself wakes (S35)', async () => {
    const { runs, chat, elsewhere } = await parked(text('Wiped.'))
    await elsewhere.startWorkers().ready()
    await chat.approve((await chat.pendingApprovals())[0] ?? '')
    await until('the worker answers', () => chat.isComplete())
    expect(runs).to.deep.equal(['wipe'])
    expect((await chat.messages()).at(-1)?.content).to.equal('Wiped.')
  })

  it('does not run once it is denied: the model gets a refusal under its id (S36, B52)', async () => {
    const { id, runs, chat, other } = await parked(text('Left alone.'))
    expect(await chat.deny(id, { wake: false })).to.equal(chat)
    expect((await other.complete())?.content).to.equal('Left alone.')
    expect(runs).to.deep.equal([])
    const content = '{"error":"The user denied the wipe tool call."}'
    expect((await resultsById(chat))[id]).to.deep.equal({ content, outcome: 'denied' })
    const sent = bench.model.requests[1]?.messages.at(-1)
    expect(sent).to.deep.include({ role: 'tool', tool_call_id: id, content })
    for await (const event of chat.events({ after: '0' })) {
      if (event.type !== 'tool.result') continue
      expect(event).to.deep.include({ toolCallId: id, outcome: 'denied' })
      break
    }
  })

  it('refuses new messages while it waits, and stores none (S42)', async () => {
    const { id, chat, other } = await parked()
    await other.queue('and then?', { wake: false })
    for (const verb of [() => chat.ask('hello?'), () => other.askLater('hello?')]) {
      const error = await errorFrom(verb)
      expect(error).to.be.instanceOf(PendingToolCallsError)
      expect((error as Error).message).to.contain(id)
    }
    expect(await roles(chat)).to.equal('user assistant')
    expect((await chat.queuedMessages()).map((queued) => queued.content)).to.deep.equal(['and then?'])
  })

  it('takes no decision about an unknown call or about one of another chat (S43)', async () => {
    const { id, chat, here, agent } = await parked()
    const stranger = await here.chats.create({ agent })
    const row = await lastCall(chat)
    for (const unknown of ['call_nobody', id, row.id]) {
      expect(await errorFrom(() => stranger.approve(unknown))).to.be.instanceOf(ArgumentError)
      expect(await errorFrom(() => stranger.deny(unknown))).to.be.instanceOf(ArgumentError)
    }
    expect(await errorFrom(() => chat.approve('call_nobody'))).to.be.instanceOf(ArgumentError)
    expect((await lastCall(chat)).approval).to.equal('pending')
  })

  it('leaves a call as it is once it is answered, whatever is decided then (S25)', async () => {
    const { id, chat, runs } = await parked(text('Wiped.'))
    await chat.approve(id)
    await chat.complete()
    const before = await chat.messages()
    await chat.deny(id)
    await chat.approve(id, { remember: true })
    expect(await chat.messages()).to.deep.equal(before)
    expect(await chat.isComplete()).to.equal(true)
    expect(runs).to.deep.equal(['wipe'])
  })

  it('lets the last of two decisions count until the call starts', async () => {
    const { id, chat, runs } = await parked(text('Wiped.'))
    await chat.deny(id)
    await chat.approve(id)
    await chat.complete()
    expect(runs).to.deep.equal(['wipe'])
    expect((await resultsById(chat))[id]?.outcome).to.equal('succeeded')
  })

  it('lists several calls in the order of the answer, however their ids sort (S44)', async () => {
    const ids = ['z', 'a', 'm'].map((prefix) => prefix + freshId())
    await bench.script([toolCalls(ids.map((id) => call('wipe', id)))])
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', [], { requiresApproval: true })] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Wipe three')
    for (const [at, row] of (await lastCalls(chat)).entries()) {
      await change(mill.models.ToolCall, row.id, {
        id: `${9 - at}${row.id.slice(1)}`,
        created_at: new Date(9_000 - at),
      })
    }
    expect((await chat.pendingApprovals()).map((pending) => pending.toolCallId)).to.deep.equal(ids)
  })

  describe('that is approved for the rest of the chat', () => {
    async function remembered() {
      const ids = [freshId(), freshId()]
      await bench.script([
        toolCalls([call('wipe', ids[0])]),
        text('Once.'),
        toolCalls([call('wipe', ids[1])]),
        text('Twice.'),
      ])
      const runs: string[] = []
      const tools = ['wipe', 'burn'].map((name) => recording(name, runs, { requiresApproval: true }))
      const agent = defineAgent({ name: freshName(), tools })
      const [here, there] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
      const chat = await here.chats.create({ agent })
      await chat.ask('Wipe it')
      await chat.approve(ids[0] ?? '', { remember: true })
      await chat.complete()
      return { runs, agent, here, there, chat, other: await there.chats.find(chat.id) }
    }
    const approvals = async (chat: Chat) =>
      (await chat.messages()).flatMap(({ toolCalls: calls }) => calls.map(({ approval }) => approval))

    it('runs without a pause in a later turn of another process (S38)', async () => {
      const { runs, chat, other } = await remembered()
      expect(runs).to.deep.equal(['wipe'])
      expect((await other.ask('Again'))?.content).to.equal('Twice.')
      expect(runs).to.deep.equal(['wipe', 'wipe'])
      expect(await approvals(chat)).to.deep.equal(['remembered', null])
    })

    it('still asks in another chat (S39)', async () => {
      const { runs, there, agent } = await remembered()
      await bench.script([])
      const stranger = await there.chats.create({ agent })
      await stranger.ask('Wipe it')
      expect(await stranger.awaitingApproval()).to.equal(true)
      expect(runs).to.deep.equal(['wipe'])
    })

    it('still asks about another tool (S40)', async () => {
      const { runs, agent, chat } = await remembered()
      await bench.script([toolCalls([call('burn')])])
      const third = await bench.connect({ agents: [agent] })
      const same = await third.chats.find(chat.id)
      await same.ask('Burn it')
      expect((await chat.pendingApprovals()).map(({ name }) => name)).to.deep.equal(['burn'])
      expect(runs).to.deep.equal(['wipe'])
    })
  })

  it('can not be denied while it runs; approving it then changes nothing (S23, S24)', async () => {
    const begun = deferred<void>()
    const end = deferred<string>()
    const id = freshId()
    await bench.script([toolCalls([call('wipe', id)]), text('Wiped.')])
    const agent = defineAgent({
      name: freshName(),
      tools: [
        recording('wipe', [], { requiresApproval: true }, () => {
          begun.resolve()
          return end.promise
        }),
      ],
    })
    const [here, there] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await here.chats.create({ agent })
    const other = await there.chats.find(chat.id)
    await chat.ask('Wipe it')
    await chat.approve(id, { wake: false })
    const done = chat.complete()
    await begun.promise
    expect((await there.models.ToolCall.findOne({ where: { chatId: chat.id } }))?.running()).to.equal(true)
    expect(await errorFrom(() => other.deny(id))).to.be.instanceOf(ToolCallRunningError)
    await other.approve(id, { remember: true })
    expect((await lastCall(other)).approval).to.equal('approved')
    end.resolve('the real result')
    expect((await done)?.content).to.equal('Wiped.')
    expect(bench.model.requests[1]?.messages.at(-1)?.content).to.equal('the real result')
  })

  for (const winner of ['approve', 'deny'] as const) {
    it(`is decided once by whoever is first, when both say so: ${winner} (S120)`, async () => {
      const { id, runs, chat, other } = await parked(text('Done.'))
      await chat[winner](id, { ifUndecided: true, wake: false })
      const { approval } = await lastCall(chat)
      for (const decide of [
        () => other.approve(id, { ifUndecided: true }),
        () => other.deny(id, { ifUndecided: true }),
      ]) {
        const error = await errorFrom(decide)
        expect(error).to.be.instanceOf(ToolCallDecidedError)
        expect(error).to.have.property('message').that.includes(chat.id).and.includes(approval)
      }
      expect((await lastCall(chat)).approval).to.equal(approval)
      await other.complete()
      expect(runs).to.deep.equal(winner === 'approve' ? ['wipe'] : [])
      expect(await errorFrom(() => chat.approve(id, { ifUndecided: true }))).to.be.instanceOf(ToolCallDecidedError)
    })
  }

  it('is decided by one of several at the same moment, and the others are told (S120)', async () => {
    const { id, chat, other } = await parked()
    const options = { ifUndecided: true, wake: false }
    const decided = await Promise.allSettled([
      chat.approve(id, options),
      other.deny(id, options),
      chat.deny(id, options),
      other.approve(id, options),
    ])
    const lost = decided.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    expect(lost).to.have.length(3)
    for (const error of lost) expect(error).to.be.instanceOf(ToolCallDecidedError)
  })

  it('has its result, or runs without anyone asked: a first decision comes too late (S120)', async () => {
    const begun = deferred<void>()
    const end = deferred<string>()
    const id = freshId()
    await bench.script([toolCalls([call('read', id)]), text('Read.')])
    const agent = defineAgent({
      name: freshName(),
      tools: [
        recording('read', [], {}, () => {
          begun.resolve()
          return end.promise
        }),
      ],
    })
    const chat = await (await bench.connect({ agents: [agent] })).chats.create({ agent })
    const asked = chat.ask('Read it')
    await begun.promise
    const options = { ifUndecided: true }
    expect(await errorFrom(() => chat.approve(id, options))).to.be.instanceOf(ToolCallDecidedError)
    expect(await errorFrom(() => chat.deny(id, options))).to.be.instanceOf(ToolCallRunningError)
    end.resolve('read')
    await asked
    expect(await errorFrom(() => chat.deny(id, options))).to.be.instanceOf(ToolCallDecidedError)
  })
})
