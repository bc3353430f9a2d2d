import { Queue } from 'bullmq'
import { expect } from 'chai'
import { queueNames } from '../../config/queues.ts'
import { type Chat, type ChatEvent, defineAgent, PendingToolCallsError } from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

const ends = ['run.finished', 'run.waiting', 'run.cancelled', 'run.failed']

onEachDatabase('A round of tool calls', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000, sweepEveryMs: 60_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })

  /** What viewers are told from the beginning on, up to the end of the run of that number. */
  async function told(chat: Chat, runs: number): Promise<ChatEvent[]> {
    const events: ChatEvent[] = []
    for await (const event of chat.events({ after: '0' })) {
      events.push(event)
      if (events.filter(({ type }) => ends.includes(type)).length === runs) break
    }
    return events
  }

  it('that is open is neither asked about nor summarised: the error names its calls (M25)', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wipe', id)])])
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', [], { requiresApproval: true })] })
    const chat = await (await bench.connect({ agents: [agent] })).chats.create({ agent })
    await chat.ask('Wipe it')
    const before = await chat.messages()
    for (const verb of [() => chat.generate(), () => chat.compact()]) {
      const error = await errorFrom(verb)
      expect(error).to.be.instanceOf(PendingToolCallsError)
      expect((error as Error).message).to.contain(id)
    }
    expect(bench.model.requests).to.have.length(1)
    expect(await chat.messages()).to.deep.equal(before)
  })

  it('runs once where one wake-up is delivered to two workers at once (M28)', async () => {
    const ids = [freshId(), freshId()]
    await bench.script([toolCalls(ids.map((id) => call('read', id))), text('Done')])
    const runs: string[] = []
    const gate = deferred()
    const agent = defineAgent({ name: freshName(), tools: [recording('read', runs, {}, () => gate.promise)] })
    const [one, other] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await one.chats.create({ agent })
    await chat.askLater('Go', { enqueue: true })
    const connection = { host: '127.0.0.1', port: bench.redis.port }
    const queue = new Queue(queueNames.complete, { connection, prefix: 'threadmill' })
    queue.on('error', () => {})
    const jobs = async (state: 'waiting' | 'completed') =>
      (await queue.getJobs([state])).filter((job) => job.data.chatId === chat.id)
    try {
      const [rung] = await jobs('waiting')
      if (rung === undefined) throw new Error('Nothing was rung')
      await queue.add(rung.name, rung.data)
      for (const mill of [one, other]) await mill.startWorkers({ complete: 1, runTools: 0 }).ready()
      const [first] = await until('one of the jobs ends', async () => {
        const ended = await jobs('completed')
        return ended.length > 0 && runs.length > 0 && ended
      })
      expect([first?.returnvalue, bench.model.requests.length]).to.deep.equal(['claimed elsewhere', 1])
      gate.resolve('read')
      await until('the other one ends', async () => (await jobs('completed')).length === 2)
    } finally {
      gate.resolve('read')
      await queue.close()
    }
    expect([runs, bench.model.requests.length]).to.deep.equal([['read', 'read'], 2])
    expect(Object.keys(await resultsById(chat)).sort()).to.deep.equal(ids.toSorted())
    expect(await roles(chat)).to.equal('user assistant tool tool assistant')
  })

  it('ends its job to wait for a decision, which resumes it elsewhere; both are told once (M34, M37)', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wipe', id)]), text('Wiped.')])
    const runs: string[] = []
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', runs, { requiresApproval: true })] })
    const [one, other] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await one.chats.create({ agent })
    const workers = one.startWorkers()
    await workers.ready()
    await chat.askLater('Wipe it', { enqueue: true })
    await until('it waits', async () => (await chat.awaitingApproval()) && !(await chat.running()))
    await workers.close()
    expect(runs).to.deep.equal([])

    await other.startWorkers().ready()
    await (await other.chats.find(chat.id)).approve(id)
    await until('it is answered', () => chat.isComplete())
    const events = await told(await other.chats.find(chat.id), 2)

    const at = (type: string) => events.flatMap((event, index) => (event.type === type ? [index] : []))
    expect([at('approval.requested').length, at('approval.decided').length, at('tool.result').length]).to.deep.equal([
      1, 1, 1,
    ])
    expect(at('approval.requested')[0]).to.be.below(at('run.waiting')[0] ?? 0)
    expect(at('approval.decided')[0]).to.be.below(at('tool.result')[0] ?? 0)

    const tokens = [...new Set(events.filter(({ type }) => type === 'run.started').map((event) => event.claimToken))]
    expect(tokens).to.have.length(2)
    const spans = [at('run.started'), [at('run.waiting')[0], at('run.finished')[0]]]
    for (const run of [0, 1]) {
      const span = events.slice(spans[0]?.[run], (spans[1]?.[run] ?? 0) + 1).map(({ type }) => type)
      expect([span[0], span.filter((type) => ends.includes(type))]).to.deep.equal([
        'run.started',
        [run === 0 ? 'run.waiting' : 'run.finished'],
      ])
    }
    expect(events.at(-1)?.type).to.equal('run.finished')
    const places = events.map((event) => event.id.split('-').map(Number))
    const sorted = places.toSorted(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d)
    expect([places, new Set(events.map((event) => event.id)).size]).to.deep.equal([sorted, events.length])
  })

  it('ends its job to wait for an answer, which resumes it elsewhere; both are told once (M34)', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wipe', id)]), text('Wiped.')])
    const tool = recording('wipe', [], {}, ({ ask }) =>
      ask({ key: 'sure', message: 'Sure?', fields: [{ name: 'sure' }] }),
    )
    const agent = defineAgent({ name: freshName(), tools: [tool] })
    const [one, other] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await one.chats.create({ agent })
    const workers = one.startWorkers()
    await workers.ready()
    await chat.askLater('Wipe it', { enqueue: true })
    await until('it waits', async () => (await chat.awaitingInput()) && !(await chat.running()))
    await workers.close()
    await chat.complete()

    await other.startWorkers().ready()
    const same = await other.chats.find(chat.id)
    await same.answer((await same.pendingInputs())[0] ?? '', { sure: 'yes' })
    await until('it is answered', () => chat.isComplete())
    expect((await resultsById(chat))[id]?.content).to.equal('{"sure":"yes"}')
    const types = (await told(same, 3)).map(({ type }) => type)
    const order = ['input.requested', 'run.waiting', 'run.waiting', 'input.answered', 'tool.result', 'run.finished']
    expect(types.filter((type) => order.includes(type))).to.deep.equal(order)
  })

  it('goes on though somebody who looks on throws (M37)', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('read', id)]), text('Done')])
    const thrown = deferred()
    const agent = defineAgent({ name: freshName(), tools: [recording('read', [], {}, () => thrown.promise)] })
    const chat = await (await bench.connect({ agents: [agent] })).chats.create({ agent })
    const looking = errorFrom(async () => {
      for await (const event of chat.events({ after: '0' })) {
        if (event.type === 'tool_call.requested') throw new Error('The viewer broke')
      }
    }).finally(() => thrown.resolve('read'))
    expect((await chat.ask('Go'))?.content).to.equal('Done')
    expect(((await looking) as Error).message).to.equal('The viewer broke')
    expect((await told(chat, 1)).at(-1)?.type).to.equal('run.finished')
  })

  for (const [name, status] of [
    ['a rate limit', 429],
    ['a failure of the provider', 500],
  ] as const) {
    it(`is not repeated when the request behind it meets ${name} and is sent again (M40)`, async () => {
      const id = freshId()
      await bench.script([
        toolCalls([call('read', id)]),
        httpError(status, 'not now', { 'retry-after-ms': '1' }),
        text('Done'),
      ])
      const runs: string[] = []
      const agent = defineAgent({ name: freshName(), retries: 1, tools: [recording('read', runs)] })
      const chat = await (await bench.connect({ agents: [agent] })).chats.create({ agent })
      expect((await chat.ask('Go'))?.content).to.equal('Done')
      expect([runs, bench.model.requests.length]).to.deep.equal([['read'], 3])
      expect(bench.model.requests[2]?.messages).to.deep.equal(bench.model.requests[1]?.messages)
      expect(await roles(chat)).to.equal('user assistant tool assistant')
    })
  }

  it('beyond the limit of its turn ends the turn in a worker, which does not try again (M40)', async () => {
    await bench.script(() => toolCalls([call('read')]))
    const runs: string[] = []
    const agent = defineAgent({ name: freshName(), rounds: 1, tools: [recording('read', runs)] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await mill.startWorkers().ready()
    await chat.askLater('Go', { enqueue: true })
    await until('the turn fails', async () => (await chat.failure()) !== null && !(await chat.running()))
    expect((await chat.failure())?.code).to.equal('chat.tool_round_limit')
    const row = await mill.models.Chat.findByPk(chat.id, { rejectOnEmpty: true })
    expect([row.wantedAt, runs.length, bench.model.requests.length]).to.deep.equal([null, 1, 1])
  })
})
