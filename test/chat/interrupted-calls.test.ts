import { expect } from 'chai'
import {
  type Chat,
  defineAgent,
  type OnInterrupted,
  ToolCallRunningError,
  type ToolDefinition,
} from '../../src/index.ts'
import { type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { abandon, change, chatRow, lastCall, lastCalls, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

type RequiresApproval = ToolDefinition<never>['requiresApproval']

onEachDatabase('A call whose process died while it ran', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** A chat with one open call, begun by a process that is gone and whose claim will lapse, and the workers that find it. */
  async function orphaned(
    onInterrupted: OnInterrupted,
    requiresApproval: RequiresApproval = false,
    { before = async (_chat: Chat, _id: string) => {}, replies = [] as readonly Reply[] } = {},
  ) {
    const id = freshId()
    await bench.script([toolCalls([call('charge', id, { note: '42' })]), text('Went on.'), ...replies])
    const runs: string[] = []
    const keys: string[] = []
    const charge = recording('charge', runs, { onInterrupted, requiresApproval }, ({ idempotencyKey }) => {
      keys.push(idempotencyKey)
      return 'charged'
    })
    const agent = defineAgent({ name: freshName(), tools: [charge] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Charge 42')
    await chat.generate()
    await before(chat, id)
    const row = await lastCall(chat)
    await abandon(mill, chat, [row])
    return { id, runs, keys, agent, mill, chat, row }
  }
  const answered = (chat: Chat) => until('the turn is answered', () => chat.isComplete(), 30_000)

  it('is left alone while the claim of the dead process is good (S2, S17)', async () => {
    const { mill, chat, row, runs } = await orphaned('retry')
    await abandon(mill, chat, [row], 60_000)
    await chat.complete()
    await chat.runTools()
    expect([runs, await chat.running(), await chat.waiting()]).to.deep.equal([[], true, true])
    expect((await mill.models.ToolCall.findByPk(row.id))?.running()).to.equal(true)
    expect(bench.model.requests).to.have.length(1)
  })

  it('ends with the claim of its chat, though its own reaches further: it can be denied, and run (S14)', async () => {
    for (const deny of [true, false]) {
      const { mill, chat, row, runs, id } = await orphaned('retry')
      await abandon(mill, chat, [row], 60_000)
      expect(await errorFrom(() => chat.deny(id))).to.be.instanceOf(ToolCallRunningError)
      await change(mill.models.Chat, chat.id, { claimed_until: new Date(Date.now() - 1_000) })
      if (deny) await chat.deny(id, { wake: false })
      expect((await chat.complete())?.content).to.equal('Went on.')
      expect([runs, (await resultsById(chat))[id]?.outcome]).to.deep.equal(
        deny ? [[], 'denied'] : [['charge'], 'succeeded'],
      )
    }
  })

  it('runs again with the same idempotency key, which is that of the row (S5, B80)', async () => {
    const { mill, chat, row, runs, keys, id } = await orphaned('retry')
    await mill.startWorkers().ready()
    await answered(chat)
    expect([runs, keys]).to.deep.equal([['charge'], [row.id]])
    expect((await resultsById(chat))[id]?.content).to.equal('charged')
    expect(await lastCall(chat)).to.deep.include({ startedAt: null, claimedBy: null, claimedUntil: null })
  })

  it('does not run again where it must not, and its result says that the outcome is unknown (B80)', async () => {
    const { mill, chat, runs, id } = await orphaned('fail')
    await mill.startWorkers().ready()
    await answered(chat)
    expect(runs).to.deep.equal([])
    const result = (await resultsById(chat))[id]
    expect(result?.outcome).to.equal('interrupted')
    expect(result?.content).to.match(/charge.*unknown/)
    expect((await chat.messages()).at(-1)?.content).to.equal('Went on.')
  })

  describe('and that asks a person', () => {
    async function asks(requiresApproval: RequiresApproval, options: Parameters<typeof orphaned>[2] = {}) {
      const made = await orphaned('ask', requiresApproval, options)
      await made.mill.startWorkers().ready()
      await until('the question', () => made.chat.awaitingApproval(), 30_000)
      expect(made.runs).to.deep.equal([])
      expect((await made.chat.pendingApprovals()).map(({ toolCallId }) => toolCallId)).to.deep.equal([made.id])
      expect(bench.model.requests).to.have.length(1)
      return made
    }

    it('waits though its tool needs no approval, and stays so however often the chat is completed', async () => {
      const { chat, runs } = await asks(false)
      const before = await chat.messages()
      await until('the workers are done', async () => !(await chat.running()))
      await chat.complete()
      expect([await chat.messages(), runs]).to.deep.equal([before, []])
    })

    it('waits though a function would let it run, and the function is not asked', async () => {
      let asked = 0
      const { chat } = await asks(() => {
        asked++
        return true
      })
      await until('the workers are done', async () => !(await chat.running()))
      await chat.complete()
      expect(asked).to.equal(0)
      expect(await chat.awaitingApproval()).to.equal(true)
    })

    it('waits though it was approved before', async () => {
      await asks(true, { before: async (chat, id) => void (await chat.approve(id, { wake: false })) })
    })

    it('waits though it was approved for the rest of the chat', async () => {
      await asks(true, { before: async (chat, id) => void (await chat.approve(id, { wake: false, remember: true })) })
    })

    it('runs once a person approves, with the same idempotency key', async () => {
      const { chat, id, runs, keys, row } = await asks(false)
      await chat.approve(id)
      await answered(chat)
      expect([runs, keys]).to.deep.equal([['charge'], [row.id]])
      expect((await resultsById(chat))[id]?.outcome).to.equal('succeeded')
    })

    it('gets a refusal once a person denies', async () => {
      const { chat, id, runs } = await asks(false)
      await chat.deny(id)
      await answered(chat)
      expect(runs).to.deep.equal([])
      expect((await resultsById(chat))[id]?.outcome).to.equal('denied')
    })

    it('asks again if the process that ran it after the approval died too', async () => {
      const { mill, chat, id, row, runs } = await asks(false)
      await until('the workers are done', async () => !(await chat.running()))
      await chat.approve(id, { wake: false })
      await abandon(mill, chat, [row])
      await until('the second question', async () => (await chat.awaitingApproval()) && !(await chat.running()), 30_000)
      expect(runs).to.deep.equal([])
    })
  })

  describe('and whose tool finds out what happened', () => {
    it('is asked with the arguments and the key, and its word is the result', async () => {
      const seen: unknown[] = []
      const { mill, chat, id, row, runs } = await orphaned((context) => {
        seen.push([context.arguments, context.idempotencyKey, context.chat.id, context.signal.aborted])
        return { action: 'result', result: { receipt: 7 } }
      })
      await mill.startWorkers().ready()
      await answered(chat)
      expect(seen).to.deep.equal([[{ note: '42' }, row.id, chat.id, false]])
      expect(runs).to.deep.equal([])
      expect((await resultsById(chat))[id]).to.deep.equal({ content: '{"receipt":7}', outcome: 'succeeded' })
    })

    it('lets it run again', async () => {
      const { mill, chat, runs } = await orphaned(async () => ({ action: 'retry' }))
      await mill.startWorkers().ready()
      await answered(chat)
      expect(runs).to.deep.equal(['charge'])
    })

    it('closes it in words of its own', async () => {
      const { mill, chat, id, runs } = await orphaned(() => ({ action: 'fail', message: 'the bank is closed' }))
      await mill.startWorkers().ready()
      await answered(chat)
      expect(runs).to.deep.equal([])
      expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
      expect((await resultsById(chat))[id]?.content).to.contain('the bank is closed')
    })

    it('leaves it to a person', async () => {
      const { mill, chat } = await orphaned(() => ({ action: 'ask' }))
      await mill.startWorkers().ready()
      await until('the question', () => chat.awaitingApproval(), 30_000)
    })

    it('ends the run with what it throws, and the call stays open', async () => {
      const { mill, chat, runs } = await orphaned(() => {
        throw new Error('the bank does not answer')
      })
      await mill.startWorkers().ready()
      const failure = await until('the failure', () => chat.failure(), 30_000)
      expect(failure.message).to.equal('the bank does not answer')
      expect(runs).to.deep.equal([])
      expect((await lastCall(chat)).resultId).to.equal(null)
    })
  })

  it('runs again alone: the sibling that has its result does not (S4, B02, M27)', async () => {
    const ids = [freshId(), freshId(), freshId()]
    await bench.script([toolCalls(['rate', 'tax', 'fee'].map((name, at) => call(name, ids[at]))), text('Summed up.')])
    const runs: string[] = []
    const agent = defineAgent({ name: freshName(), tools: ['rate', 'tax', 'fee'].map((name) => recording(name, runs)) })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Sum up')
    await chat.generate()
    await chat.addMessage({ role: 'tool', toolCallId: ids[0] ?? '', content: '3 percent' })
    const before = await chat.messages()
    // The second was begun, the third was not.
    await abandon(mill, chat, (await lastCalls(chat)).slice(1, 2))
    await mill.startWorkers().ready()
    await answered(chat)
    expect(runs).to.deep.equal(['tax', 'fee'])
    expect(bench.model.requests).to.have.length(2)
    expect(
      bench.model.requests[1]?.messages.slice(2).map((message) => [message.tool_call_id, message.content]),
    ).to.deep.equal([
      [ids[0], '3 percent'],
      [ids[1], 'tax done'],
      [ids[2], 'fee done'],
    ])
    const kept = await chat.messages()
    expect(before.every(({ id }) => kept.some((message) => message.id === id))).to.equal(true)
    await until('the end', async () => (await chatRow(mill, chat)).claimedBy === null)
    expect((await chatRow(mill, chat)).attempts).to.equal(0)
  })
})
