import { expect } from 'chai'
import { CancelledError, defineAgent, type StopReason, type Tool, type ToolContext } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { change, chatRow, lastCall, lastCalls, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A tool at work', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** A tool that waits until its signal is aborted, and tells why it was. */
  function waiting(options: Parameters<typeof recording>[2] = {}) {
    const begun = deferred<ToolContext>()
    const stopped = deferred<StopReason>()
    const runs: string[] = []
    const tool = recording('wait', runs, options, (context) => {
      begun.resolve(context)
      if (runs.length > 1) return 'done at the second time'
      return new Promise((_resolve, reject) => {
        context.signal.addEventListener('abort', () => {
          stopped.resolve(context.signal.reason as StopReason)
          reject(new Error('stopped in the middle'))
        })
      })
    })
    return { tool, runs, begun: begun.promise, reason: stopped.promise }
  }

  /** A chat that runs in workers, and where it can be watched from. */
  async function working(tools: readonly Tool[], options: Parameters<typeof bench.connect>[0] = {}) {
    const id = freshId()
    await bench.script([toolCalls([call('wait', id)]), text('Went on.')])
    const agent = defineAgent({ name: freshName(), tools })
    const watching = await bench.connect({ agents: [agent] })
    const chat = await watching.chats.create({ agent })
    await chat.askLater('Work', { enqueue: true })
    const mill = await bench.connect({ agents: [agent], ...options })
    const pool = mill.startWorkers()
    return { id, agent, watching, chat, mill, pool }
  }

  it('is told "stopped" when the turn is cancelled, and its call is closed as interrupted', async () => {
    const { tool, begun, reason, runs } = waiting()
    const { id, chat } = await working([tool])
    await begun
    await chat.cancel()
    expect(await reason).to.equal('stopped')
    await until('the call is closed', async () => (await lastCall(chat)).resultId !== null)
    expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
    await until('the end', async () => !(await chat.running()))
    expect([runs.length, bench.model.requests.length, await chat.failure()]).to.deep.equal([1, 1, null])
  })

  it('may still end well after a stop: its result is kept', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wait', id)])])
    const begun = deferred<void>()
    const heeding = recording('wait', [], {}, async ({ signal }) => {
      begun.resolve()
      await until('the stop', () => signal.aborted)
      return 'half of it'
    })
    const agent = defineAgent({ name: freshName(), tools: [heeding] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const ended = errorFrom(() => chat.ask('Work'))
    await begun.promise
    await chat.cancel()
    expect(await ended).to.be.instanceOf(CancelledError)
    expect((await resultsById(chat))[id]).to.deep.equal({ content: 'half of it', outcome: 'succeeded' })
  })

  it('is told "shutdown" at the end of the grace; its call stays open for another process (S13)', async () => {
    const { tool, begun, reason, runs } = waiting()
    const { id, agent, chat, pool, watching } = await working([tool], { shutdownGraceMs: 50 })
    const first = await begun
    await pool.close()
    expect(await reason).to.equal('shutdown')
    expect((await lastCall(chat)).resultId).to.equal(null)
    const row = await chatRow(watching, chat)
    expect([row.claimedBy, row.failure, row.cancelTurn]).to.deep.equal([null, null, null])
    expect(row.wantedAt).to.be.instanceOf(Date)

    const next = await bench.connect({ agents: [agent] })
    await next.startWorkers().ready()
    await until('another process goes on', () => chat.isComplete())
    expect(runs).to.have.length(2)
    expect((await resultsById(chat))[id]).to.deep.equal({ content: 'done at the second time', outcome: 'succeeded' })
    expect(first.idempotencyKey).to.equal((await lastCall(chat)).id)
  })

  it('holds its process up no longer than the grace, also when it goes on after a stop (E165)', async () => {
    const begun = deferred<AbortSignal>()
    const deaf = recording('wait', [], {}, ({ signal }) => {
      begun.resolve(signal)
      return new Promise(() => {})
    })
    const { id, agent, chat, pool, watching } = await working([deaf], { shutdownGraceMs: 50 })
    const signal = await begun.promise
    await chat.cancel()
    await until('the stop', () => signal.aborted)
    await pool.close()
    expect((await lastCall(chat)).resultId).to.equal(null)
    expect((await chatRow(watching, chat)).claimedBy).to.equal(null)

    const next = await bench.connect({ agents: [agent] })
    await next.startWorkers().ready()
    await until('another process carries the stop out', async () => (await lastCall(chat)).resultId !== null)
    expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
  })

  it('has the grace to end: then its result is stored before the process ends (S13)', async () => {
    const begun = deferred<void>()
    const end = deferred<string>()
    const slow = recording('wait', [], {}, () => {
      begun.resolve()
      return end.promise
    })
    const { id, chat, pool } = await working([slow], { shutdownGraceMs: 60_000 })
    await begun.promise
    const closed = pool.close()
    end.resolve('in time')
    await closed
    expect((await resultsById(chat))[id]?.content).to.equal('in time')
    expect(bench.model.requests).to.have.length(1)
    expect(await chat.running()).to.equal(false)
  })

  it('is told "claim-lost" when another process took the chat; nothing of it is written (S10)', async () => {
    const { tool, begun, reason } = waiting()
    const { chat, watching, mill } = await working([tool], { claimTtlMs: 6_000, claimRenewMs: 200 })
    await begun
    const thief = '00000000-0000-4000-8000-00000000cafe'
    const lapses = new Date(Date.now() + 60_000)
    await change(watching.models.Chat, chat.id, { claimed_by: thief, claimed_until: lapses, claim_token: 9 })
    expect(await reason).to.equal('claim-lost')
    await mill.close()
    const row = await chatRow(watching, chat)
    expect([row.claimedBy, row.claimToken, row.failure]).to.deep.equal([thief, 9, null])
    expect(await lastCall(chat)).to.deep.include({ resultId: null, name: 'wait' })
    expect((await lastCall(chat)).startedAt).to.not.equal(null)
    expect(bench.model.requests).to.have.length(1)
  })

  it('is told "timeout" at its limit; the model hears of it and the turn goes on', async () => {
    const { tool, reason } = waiting({ timeoutMs: 50 })
    const { id, chat } = await working([tool])
    expect(await reason).to.equal('timeout')
    await until('the answer', () => chat.isComplete())
    const result = (await resultsById(chat))[id]
    expect(result?.outcome).to.equal('interrupted')
    expect(result?.content).to.contain('50 ms')
    expect(await chat.failure()).to.equal(null)
  })

  it('does not hold its turn up past its limit, even if it ignores its signal', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wait', id)]), text('Went on.')])
    const end = deferred<string>()
    const deaf = recording('wait', [], { timeoutMs: 50 }, () => end.promise)
    const agent = defineAgent({ name: freshName(), tools: [deaf] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect((await chat.ask('Work'))?.content).to.equal('Went on.')
    const before = await chat.messages()
    end.resolve('too late')
    await chat.complete()
    expect(await chat.messages()).to.deep.equal(before)
    expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
  })

  describe('beside others of its round', () => {
    /** A round of six calls whose ends the test decides. */
    async function round(concurrency: number | boolean | undefined) {
      const ids = Array.from({ length: 6 }, () => freshId())
      await bench.script([toolCalls(ids.map((id, at) => call('part', id, { note: String(at) }))), text('All six.')])
      const ends = ids.map(() => deferred<string>())
      const begun: number[] = []
      let running = 0
      let most = 0
      const part = recording('part', [], {}, async (_context, note) => {
        begun.push(Number(note))
        most = Math.max(most, ++running)
        try {
          return await ends[Number(note)]?.promise
        } finally {
          running--
        }
      })
      const agent = defineAgent({ name: freshName(), concurrency, tools: [part] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      const asking = chat.ask('Six parts')
      const end = (at: number) => ends[at]?.resolve(`part ${at}`)
      return { ids, chat, asking, begun, most: () => most, running: () => running, end }
    }

    it('runs alone by default, in the order of the answer', async () => {
      const { asking, begun, most, end } = await round(undefined)
      for (const at of [5, 4, 3, 2, 1, 0]) end(at)
      await asking
      expect([most(), begun]).to.deep.equal([1, [0, 1, 2, 3, 4, 5]])
    })

    it('runs with as many as the limit allows, each result its own, stored as it ends (M26, M33)', async () => {
      const { ids, chat, asking, begun, most, running, end } = await round(3)
      await until('three have begun', () => begun.length === 3)
      const stored = async (count: number) =>
        (await chat.messages()).filter(({ role }) => role === 'tool').length === count
      end(2)
      await until('the next takes its place', () => begun.length === 4)
      await until('the first result is stored', () => stored(1))
      for (const at of [3, 1]) {
        end(at)
        await until('another takes its place', () => begun.length === at + (at === 3 ? 2 : 5))
      }
      expect(running()).to.be.at.most(3)
      for (const at of [5, 4, 0]) end(at)
      expect((await asking)?.content).to.equal('All six.')
      expect(most()).to.equal(3)
      // Those that start together may do so in any order.
      expect([begun.slice(0, 3).sort(), begun.slice(3)]).to.deep.equal([
        [0, 1, 2],
        [3, 4, 5],
      ])
      const results = await resultsById(chat)
      expect(ids.map((id) => results[id]?.content)).to.deep.equal(ids.map((_, at) => `part ${at}`))
      const contents = (await chat.messages()).filter(({ role }) => role === 'tool').map(({ content }) => content)
      expect(contents.slice(0, 3)).to.deep.equal(['part 2', 'part 3', 'part 1'])
      const sent = bench.model.requests[1]?.messages.filter(({ role }) => role === 'tool') ?? []
      expect(sent.map((message) => message.tool_call_id)).to.deep.equal(ids)
      expect(bench.model.requests).to.have.length(2)
    })

    it('is waited for when the turn is cancelled; those that had not begun are closed', async () => {
      const { ids, chat, asking, begun, end } = await round(2)
      const ended = errorFrom(() => asking)
      await until('two have begun', () => begun.length === 2)
      await chat.cancel()
      end(0)
      end(1)
      expect(await ended).to.be.instanceOf(CancelledError)
      expect(begun.sort()).to.deep.equal([0, 1])
      const results = await resultsById(chat)
      const outcomes = ids.map((id) => results[id]?.outcome)
      expect(outcomes).to.deep.equal(['succeeded', 'succeeded', ...Array(4).fill('interrupted')])
      expect(
        (await lastCalls(chat)).every(({ claimedBy, startedAt }) => claimedBy === null && startedAt === null),
      ).to.equal(true)
    })
  })

  it('tells viewers how far it is, until it has its result', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wait', id)]), text('Done.')])
    let report: ToolContext['progress'] = () => {}
    const tool = recording('wait', [], {}, ({ progress }) => {
      report = progress
      progress({ message: 'halfway', value: 1, total: 2 })
      return 'done'
    })
    const agent = defineAgent({ name: freshName(), tools: [tool] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Work')
    report({ message: 'too late' })
    await chat.complete()
    const told: unknown[] = []
    let finished = 0
    for await (const event of chat.events({ after: '0' })) {
      if (event.type === 'tool.progress') told.push([event.toolCallId, event.message, event.value, event.total])
      if (event.type === 'run.finished' && ++finished === 2) break
    }
    expect(told).to.deep.equal([[id, 'halfway', 1, 2]])
  })
})
