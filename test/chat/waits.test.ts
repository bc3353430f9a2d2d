import { expect } from 'chai'
import { Redis } from 'ioredis'
import * as z from 'zod'
import {
  ArgumentError,
  ArgumentsChangedError,
  CancelledError,
  type Chat,
  type ConnectOptions,
  defineAgent,
  defineTool,
  InputDeclinedError,
  ReadOnlyModelError,
  type Tool,
  type ToolDefinition,
} from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { lastCall, lastCalls, resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

/** The suite's own server. */
async function wipe(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.flushall()
  redis.disconnect()
}

const parameters = z.object({ order: z.string().optional(), cents: z.int().optional() })
type Definition = ToolDefinition<typeof parameters>
const toolOf = (execute: Definition['execute'], options: Partial<Definition> = {}): Tool =>
  defineTool({ name: 'refund', description: 'Refunds.', parameters, execute, ...options })

onEachDatabase('A call that waits', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000, sweepEveryMs: 100 })

  async function setUp(tools: readonly Tool[], replies: Parameters<typeof bench.script>[0], more: ConnectOptions = {}) {
    await bench.script(replies)
    const agent = defineAgent({ name: freshName(), tools, retries: 0 })
    const options = { agents: [agent], ...more }
    const mill = await bench.connect(options)
    return { mill, options, agent, chat: await mill.chats.create({ agent, owner: agent.name }) }
  }
  const other = async (options: ConnectOptions, chat: Chat) => (await bench.connect(options)).chats.find(chat.id)
  const asking = (seen: unknown[]) =>
    toolOf(async (_args, { ask, idempotencyKey }) => {
      seen.push(idempotencyKey)
      const { cents } = await ask({ message: 'How much?', fields: [{ name: 'cents', type: 'integer' }] })
      const { sure } = await ask({
        message: 'Really?',
        fields: [
          { name: 'sure', type: 'boolean', default: false },
          { name: 'note', required: false },
        ],
      })
      return { cents, sure }
    })

  describe('for an answer', () => {
    it('goes on with it in another process, its question and its answer being rows (S97, S98, E40)', async () => {
      const id = freshId()
      const seen: unknown[] = []
      const { chat, options, mill } = await setUp([asking(seen)], [toolCalls([call('refund', id)]), text('Refunded.')])
      await chat.ask('Refund me')
      expect(await roles(chat)).to.equal('user assistant')
      expect([
        await chat.awaitingInput(),
        await chat.waiting(),
        await chat.awaitingApproval(),
        await chat.isComplete(),
      ]).to.deep.equal([true, true, false, false])
      expect((await lastCall(chat)).startedAt).to.equal(null)

      const web = await other(options, chat)
      const [question] = await web.pendingInputs()
      expect([question?.message, question?.fields[0]?.name, question?.toolCall.paused()]).to.deep.equal([
        'How much?',
        'cents',
        true,
      ])
      for (const bad of [{}, { cents: '7' }, { cents: 1.5 }, { cents: 7, more: 1 }, 7, null]) {
        expect(await errorFrom(() => web.answer(question?.id ?? '', bad as never))).to.be.instanceOf(ArgumentError)
      }
      for (const unknown of ['', 'nobody', `${id}:ask-9`]) {
        expect(await errorFrom(() => web.answer(unknown, { cents: 7 }))).to.be.instanceOf(ArgumentError)
      }
      await web.answer(question?.id ?? '', { cents: 7 }, { by: 'ann' })
      await web.answer(question?.id ?? '', { cents: 9 }, { by: 'bob' })
      await chat.complete()
      const [second] = await web.pendingInputs()
      expect(second?.message).to.equal('Really?')
      expect(await chat.awaitingInput()).to.equal(true)
      await web.answer(second ?? '', {})
      expect((await chat.complete())?.content).to.equal('Refunded.')
      expect((await resultsById(chat))[id]?.content).to.equal('{"cents":7,"sure":false}')
      expect((await lastCall(chat)).mcpState).to.equal(null)
      expect(seen).to.have.length(3)
      expect(new Set(seen).size).to.equal(1)
      const decisions = await chat.decisions()
      expect(decisions.map(({ action, decidedBy, value }) => [action, decidedBy, value])).to.deep.equal([
        ['answered', 'ann', { cents: 7 }],
        ['answered', null, { sure: false }],
      ])
      const [first] = decisions
      expect(await errorFrom(async () => first?.update({ decidedBy: 'eve' }))).to.be.instanceOf(ReadOnlyModelError)
      expect(await mill.models.Decision.count({ where: { chatId: chat.id } })).to.equal(2)
    })

    it('is told when it is declined, and may make something of that', async () => {
      const [id, next] = [freshId(), freshId()]
      const caught: unknown[] = []
      const tools = [
        toolOf(async (_args, { ask }) => {
          try {
            return await ask({ key: 'why', message: 'Why?', fields: [{ name: 'why' }] })
          } catch (error) {
            if (error instanceof InputDeclinedError) caught.push(error)
            throw error
          }
        }),
      ]
      const { chat } = await setUp(tools, [toolCalls([call('refund', id), call('refund', next)]), text('Then not.')])
      await chat.ask('Refund me')
      const questions = await chat.pendingInputs()
      expect(questions).to.have.length(2)
      await chat.decline(questions[0] ?? '')
      await chat.complete()
      expect(await chat.awaitingInput()).to.equal(true)
      await chat.answer(questions[1] ?? '', { why: 'broken' })
      expect((await chat.complete())?.content).to.equal('Then not.')
      const results = await resultsById(chat)
      expect(results[id]?.content).to.match(/declined to answer: Why\?/)
      expect(results[next]?.content).to.equal('{"why":"broken"}')
      expect(caught).to.have.length(1)
    })

    it('survives an error of the same run, and a wiped Redis, and wakes a worker (S73)', async () => {
      const id = freshId()
      const { chat, mill } = await setUp(
        [asking([])],
        [toolCalls([call('refund', id)]), httpError(400, 'no'), text('Done.')],
      )
      await chat.askLater('Go', { enqueue: true })
      await mill.startWorkers({ complete: 2 }).ready()
      await until('it asks', () => chat.awaitingInput())
      await wipe(bench.redis.url)
      const [question] = await chat.pendingInputs()
      await chat.answer(question ?? '', { cents: 1 })
      await until('it asks again', async () => (await chat.pendingInputs())[0]?.message === 'Really?')
      const [second] = await chat.pendingInputs()
      await chat.answer(second ?? '', { sure: true })
      await until('the turn failed', async () => (await chat.failure()) !== null)
      expect(await roles(chat)).to.equal('user assistant tool')
      // The run that failed gives its row back before its lock in Redis: who comes in between is turned away.
      await until('it is answered', async () => {
        await chat.complete()
        return chat.isComplete()
      })
      expect(await roles(chat)).to.equal('user assistant tool assistant')
    })

    it('is waited for still where its sibling ends the run with an error (S73)', async () => {
      const [id, bad] = [freshId(), freshId()]
      const seen: unknown[] = []
      const mine = new Error('disk full')
      const broken = recording('broken', [], {}, () => {
        throw mine
      })
      const { chat, options } = await setUp(
        [asking(seen), broken],
        [toolCalls([call('refund', id), call('broken', bad)]), httpError(400, 'no'), text('Refunded.')],
      )
      expect(await errorFrom(() => chat.ask('Refund me'))).to.equal(mine)
      const paused = (await lastCalls(chat))[0]
      expect([paused?.toolCallId, paused?.resultId, Object.keys(paused?.mcpState ?? {})]).to.deep.equal([
        id,
        null,
        ['requests'],
      ])
      expect(await roles(chat)).to.equal('user assistant tool')
      expect(await chat.awaitingInput()).to.equal(true)
      const web = await other(options, chat)
      await web.answer((await web.pendingInputs())[0] ?? '', { cents: 7 })
      await web.complete()
      await web.answer((await web.pendingInputs())[0] ?? '', {})
      expect(await errorFrom(() => web.complete())).to.have.property('code', 'provider.bad_request')
      expect((await resultsById(chat))[id]?.content).to.equal('{"cents":7,"sure":false}')
      expect((await web.complete())?.content).to.equal('Refunded.')
      expect(seen).to.have.length(3)
    })

    it('that does not come in time is declined, or its default, and the turn goes on by itself', async () => {
      const tools = [
        toolOf(async (_args, { ask }) => {
          const fields = [{ name: 'cents', type: 'integer' as const, default: 5 }]
          const first = await ask({ message: 'How much?', fields, expiresMs: 300, onExpired: 'default' })
          const second = await ask({ message: 'Sure?', fields: [{ name: 'sure' }], expiresMs: 300 }).catch(
            () => 'declined',
          )
          return { first, second }
        }),
      ]
      const id = freshId()
      const { chat, mill } = await setUp(tools, [toolCalls([call('refund', id)]), text('Done.')])
      await chat.askLater('Go', { enqueue: true })
      await mill.startWorkers({ complete: 2 }).ready()
      await until('the turn is answered', () => chat.isComplete())
      expect((await resultsById(chat))[id]?.content).to.equal('{"first":{"cents":5},"second":"declined"}')
      expect((await chat.decisions()).map(({ action }) => action)).to.deep.equal(['expired', 'expired'])
    })
  })

  describe('for a task', () => {
    const tasks = (states: unknown[], looked: unknown[] = [], cancelled: unknown[] = [], pollMs = 50) =>
      toolOf((_args, { task }) => task({ id: 'job-1', data: { at: 0 }, pollMs, message: 'begun' }), {
        resume: (task, { task: again }) => {
          looked.push(task.data)
          const state = states.shift()
          return state === undefined
            ? again({ id: task.id, data: { at: looked.length }, pollMs, message: 'at work' })
            : state
        },
        cancelTask: (task) => void cancelled.push(task.id),
      })

    it('looks at it once each time it is completed, without waiting, and goes on with its result (S99)', async () => {
      const id = freshId()
      const states: unknown[] = []
      const looked: unknown[] = []
      const { chat, options } = await setUp(
        [tasks(states, looked, [], 60_000)],
        [toolCalls([call('refund', id)]), text('Done.')],
      )
      await chat.ask('Go')
      expect([await chat.awaitingTasks(), await chat.waiting(), await chat.awaitingInput()]).to.deep.equal([
        true,
        true,
        false,
      ])
      const [task] = await chat.pendingTasks()
      expect([task?.id, task?.data, task?.message, task?.pollMs]).to.deep.equal(['job-1', { at: 0 }, 'begun', 60_000])
      const worker = await other(options, chat)
      await worker.complete()
      expect(looked).to.deep.equal([{ at: 0 }])
      expect((await chat.pendingTasks())[0]?.data).to.deep.equal({ at: 1 })
      expect([await chat.awaitingTasks(), bench.model.requests.length]).to.deep.equal([true, 1])
      states.push({ paid: true })
      expect((await worker.complete())?.content).to.equal('Done.')
      expect(looked).to.deep.equal([{ at: 0 }, { at: 1 }])
      expect((await resultsById(chat))[id]?.content).to.equal('{"paid":true}')
    })

    it('holds no worker: it is looked at at its own pace, by whichever is there, also when Redis was wiped', async () => {
      const looked: unknown[] = []
      const { chat, mill } = await setUp([tasks([], looked)], [toolCalls([call('refund', freshId())]), text('Done.')])
      await chat.askLater('Go', { enqueue: true })
      await mill.startWorkers({ complete: 1 }).ready()
      await until('it was looked at twice', () => looked.length >= 2)
      await until('nobody holds the chat', async () => !(await chat.running()))
      await wipe(bench.redis.url)
      const before = looked.length
      await until('it is looked at again', () => looked.length > before)
      expect((await chat.messages()).length).to.equal(2)
      // A look counts as an attempt while it is under way, and not once it has ended.
      await until('it is parked as it was', async () => {
        const row = await mill.models.Chat.findByPk(chat.id)
        return row?.claimedBy === null && row.attempts === 0 && row.failure === null && row.parked
      })
      await chat.cancel()
      await until('the turn is over', async () => !(await chat.awaitingTasks()))
    })

    it('is cancelled with its turn: the task is ended, its call closed (S66)', async () => {
      const id = freshId()
      const cancelled: unknown[] = []
      const { chat, options } = await setUp(
        [tasks([], [], cancelled, 60_000)],
        [toolCalls([call('refund', id)]), text('Next.')],
      )
      await chat.ask('Go')
      await chat.cancel()
      const worker = await other(options, chat)
      expect(await errorFrom(() => worker.complete())).to.be.instanceOf(CancelledError)
      expect(cancelled).to.deep.equal(['job-1'])
      expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
      expect((await lastCall(chat)).mcpState).to.equal(null)
      expect((await chat.ask('And now?'))?.content).to.equal('Next.')
    })

    it('ends with an error where it takes too long, or its tool can not look at it', async () => {
      const [slow, blind] = [freshId(), freshId()]
      const tools = [
        toolOf((_args, { task }) => task({ id: 'j', pollMs: 20, expiresMs: 30 }), {
          resume: (_task, { task }) => task({ id: 'j', pollMs: 20 }),
        }),
        defineTool({
          name: 'blind',
          description: 'x',
          parameters,
          onError: 'report',
          execute: (_args, { task }) => task({ id: 'j', pollMs: 20 }),
        }),
      ]
      const { chat, mill } = await setUp(tools, [
        toolCalls([call('refund', slow), call('blind', blind)]),
        text('Done.'),
      ])
      await chat.askLater('Go', { enqueue: true })
      await mill.startWorkers({ complete: 1 }).ready()
      await until('the turn is answered', () => chat.isComplete())
      const results = await resultsById(chat)
      expect(results[slow]?.content).to.match(/not finished in time/)
      expect(results[blind]?.content).to.match(/no resume/)
    })
  })

  describe('for a decision', () => {
    const guarded = (ran: unknown[], options: Partial<Definition> = {}) =>
      toolOf((args) => void ran.push(args), { requiresApproval: true, ...options })

    it('keeps who decided, when and why, in the transaction that decides; the model is told why not (E41)', async () => {
      const id = freshId()
      const { chat, mill } = await setUp([guarded([])], [toolCalls([call('refund', id)]), text('I see.')])
      await chat.ask('Go')
      const rolledBack = await errorFrom(() =>
        mill.transaction(async (transaction) => {
          await chat.deny(id, { by: 'ann', reason: 'too much', transaction })
          throw new RangeError('no')
        }),
      )
      expect(rolledBack).to.be.instanceOf(RangeError)
      expect([await chat.decisions(), (await lastCall(chat)).approval]).to.deep.equal([[], 'pending'])
      await chat.deny(id, { by: 'ann', reason: 'It is too much.' })
      await chat.complete()
      expect((await resultsById(chat))[id]?.content).to.equal(
        '{"error":"The user denied the refund tool call. Reason: It is too much."}',
      )
      const [decision] = await chat.decisions()
      expect([decision?.action, decision?.decidedBy, decision?.reason]).to.deep.equal([
        'denied',
        'ann',
        'It is too much.',
      ])
      expect((await lastCall(chat)).decidedBy).to.equal('ann')
      for (const bad of [{ by: '' }, { by: 7 }, { reason: 7 }, { by: 'x'.repeat(256) }]) {
        expect(await errorFrom(() => chat.approve(id, bad as never))).to.be.instanceOf(ArgumentError)
      }
    })

    it('runs with the arguments that an approver put in place of the model’s, which is told (E42)', async () => {
      const id = freshId()
      const ran: unknown[] = []
      const { chat } = await setUp([guarded(ran)], [toolCalls([call('refund', id, { cents: 900 })]), text('Done.')])
      await chat.ask('Go')
      for (const bad of [{ cents: 'x' }, { what: 1 }, 7, null, []]) {
        expect(await errorFrom(() => chat.approve(id, { arguments: bad as never }))).to.be.instanceOf(ArgumentError)
      }
      await chat.approve(id, { arguments: { cents: 100 }, by: 'ann' })
      await chat.complete()
      expect(ran).to.deep.equal([{ cents: 100 }])
      const row = await lastCall(chat)
      expect([row.arguments, row.editedArguments]).to.deep.equal([{ cents: 900 }, { cents: 100 }])
      const sent = bench.model.requests[1]?.messages.at(-1)?.content
      expect(sent).to.match(/^\n\nA person changed the arguments of this call to: \{"cents":100\}$/)
      expect((await chat.decisions())[0]?.value).to.deep.equal({ cents: 100 })
    })

    it('is bound to the arguments that were shown, where the decider says so (E42)', async () => {
      const id = freshId()
      const { chat } = await setUp(
        [guarded([])],
        [toolCalls([call('refund', id, { order: 'a', cents: 9 })]), text('Done.')],
      )
      await chat.ask('Go')
      const [record] = await chat.pendingApprovals()
      const shown = record?.argumentsHash() ?? ''
      expect(shown).to.match(/^[0-9a-f]{64}$/)
      await chat.approve(id, { arguments: { order: 'a', cents: 5 }, wake: false })
      expect(await errorFrom(() => chat.approve(id, { argumentsHash: shown }))).to.be.instanceOf(ArgumentsChangedError)
      expect(await errorFrom(() => chat.deny(id, { argumentsHash: shown }))).to.be.instanceOf(ArgumentsChangedError)
      expect((await lastCall(chat)).approval).to.equal('approved')
    })

    for (const onExpired of ['deny', 'approve'] as const) {
      it(`that nobody makes in time is to ${onExpired}, where its tool says so, by itself (E43)`, async () => {
        const id = freshId()
        const ran: unknown[] = []
        const { chat, mill } = await setUp(
          [guarded(ran, { approvalExpiresMs: 200, onExpired })],
          [toolCalls([call('refund', id)]), text('Done.')],
        )
        await chat.askLater('Go', { enqueue: true })
        await mill.startWorkers({ complete: 1 }).ready()
        await until('the turn is answered', () => chat.isComplete())
        expect(ran).to.have.length(onExpired === 'approve' ? 1 : 0)
        const row = await lastCall(chat)
        expect([row.approval, row.decisionReason]).to.deep.equal([
          onExpired === 'approve' ? 'approved' : 'denied',
          'nobody answered in time',
        ])
        expect((await chat.decisions()).map(({ action, decidedBy }) => [action, decidedBy])).to.deep.equal([
          ['expired', null],
        ])
      })
    }

    it('stands in an inbox over all chats, newest first, a page at a time (E44)', async () => {
      const { mill, agent } = await setUp([guarded([])], () => toolCalls([call('refund', freshId())]))
      const chats = []
      for (const owner of ['ann', 'bob', 'ann', 'ann']) {
        const chat = await mill.chats.create({ agent, owner: `${agent.name}-${owner}` })
        await chat.ask('Go')
        chats.unshift(chat.id)
      }
      const all = (await mill.approvals.list()).approvals.filter((one) => String(one.owner).startsWith(agent.name))
      expect(all.map(({ chatId }) => chatId)).to.deep.equal(chats)
      expect(all[0]?.toolCall.name).to.equal('refund')
      const owner = `${agent.name}-ann`
      const first = await mill.approvals.list({ owner, limit: 2 })
      const second = await mill.approvals.list({ owner, limit: 2, before: first.next ?? '' })
      const ids = [...first.approvals, ...second.approvals].map(({ chatId }) => chatId)
      expect(ids).to.deep.equal([chats[0], chats[1], chats[3]])
      expect(second.next).to.equal(null)
      await (await mill.chats.find(chats[0] ?? '')).deny(first.approvals[0]?.toolCall ?? '')
      expect((await mill.approvals.list({ owner })).approvals).to.have.length(2)
      for (const bad of [{ limit: 0 }, { limit: 201 }, { before: 'x' }, { owner: '' }, { state: 1 }]) {
        expect(await errorFrom(() => mill.approvals.list(bad as never))).to.be.instanceOf(ArgumentError)
      }
      if (kind.name === 'MariaDB') {
        const [plan] = (await mill.sequelize.query(
          "EXPLAIN SELECT id FROM threadmill_tool_calls t WHERE t.approval = 'pending' AND t.result_id IS NULL AND t.asked_at IS NOT NULL ORDER BY t.asked_at DESC, t.id DESC LIMIT 50",
        )) as unknown as [{ key: string; Extra: string }[]]
        expect(plan[0]?.key).to.match(/inbox/)
        expect(plan[0]?.Extra).to.not.match(/filesort/)
      }
    })

    it('and one for a question and one for a task may stand in one round; each goes on by itself', async () => {
      const [a, b, c] = [freshId(), freshId(), freshId()]
      const long = defineTool({
        name: 'long',
        description: 'x',
        parameters,
        execute: (_args, { task }) => task({ id: 'j', pollMs: 60_000 }),
        resume: () => 'over',
      })
      const asks = defineTool({
        name: 'asks',
        description: 'x',
        parameters,
        execute: (_args, { ask }) => ask({ message: '?', fields: [{ name: 'x' }] }),
      })
      const { chat } = await setUp(
        [guarded([]), long, asks, recording('read', [])],
        [toolCalls([call('refund', a), call('long', b), call('asks', c)]), text('Done.')],
      )
      await chat.ask('Go')
      expect([await chat.awaitingApproval(), await chat.awaitingTasks(), await chat.awaitingInput()]).to.deep.equal([
        true,
        true,
        true,
      ])
      await chat.approve(a)
      await chat.complete()
      expect([await chat.awaitingApproval(), await chat.awaitingTasks(), await chat.awaitingInput()]).to.deep.equal([
        false,
        false,
        true,
      ])
      const [question] = await chat.pendingInputs()
      await chat.answer(question ?? '', { x: 'y' })
      expect((await chat.complete())?.content).to.equal('Done.')
    })
  })
})
