import { expect } from 'chai'
import { Redis } from 'ioredis'
import * as z from 'zod'
import { type Chat, defineAgent, defineTool, type Threadmill } from '../../src/index.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

onEachDatabase('Tools with workers of their own', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })

  /** A process whose agent notes where its tools ran. */
  async function connected(
    name: string,
    ran: string[],
  ): Promise<{ mill: Threadmill; agent: ReturnType<typeof agentOf> }> {
    const agent = agentOf(name, ran)
    return { mill: await bench.connect({ agents: [agent] }), agent }
  }

  function agentOf(name: string, ran: string[]) {
    const work = defineTool({
      name: 'work',
      description: 'Does one step.',
      parameters: z.object({ step: z.string() }),
      execute: ({ step }) => {
        ran.push(`${step} in ${name}`)
        return `did ${step}`
      },
    })
    const guarded = defineTool({
      name: 'guarded',
      description: 'Needs a decision.',
      parameters: z.object({}),
      requiresApproval: true,
      execute: () => {
        ran.push(`guarded in ${name}`)
        return 'guarded result'
      },
    })
    return defineAgent({ name: 'clerk', tools: [work, guarded], toolExecution: 'queue' })
  }

  const works = (...steps: string[]) => toolCalls(steps.map((step) => ({ name: 'work', arguments: { step } })))
  const answered = (chat: Chat) => until('the turn is answered', () => chat.isComplete(), 30_000)
  const roles = async (chat: Chat) => (await chat.messages()).map(({ role }) => role)

  it('runs rounds only in a process with runTools workers, and the turn goes on by itself', async () => {
    await bench.script([works('one', 'two'), works('three'), text('answer')])
    const ran: string[] = []
    const asking = await connected('the asking process', ran)
    const doing = await connected('the doing process', ran)
    await asking.mill.startWorkers({ complete: 2, runTools: 0 }).ready()
    await doing.mill.startWorkers({ complete: 0, runTools: 2 }).ready()
    const chat = await asking.mill.chats.create({ agent: 'clerk' })
    await chat.askLater('question', { enqueue: true })
    await answered(chat)
    expect(ran).to.eql(['one', 'two', 'three'].map((step) => `${step} in the doing process`))
    expect(await roles(chat)).to.eql(['user', 'assistant', 'tool', 'tool', 'assistant', 'tool', 'assistant'])
    expect(bench.model.requests).to.have.length(3)
  })

  it('leaves a round alone while there are only complete workers, and asks no model', async () => {
    await bench.script([works('one'), text('answer')])
    const ran: string[] = []
    const asking = await connected('the asking process', ran)
    await asking.mill.startWorkers({ complete: 2, runTools: 0 }).ready()
    const chat = await asking.mill.chats.create({ agent: 'clerk' })
    await chat.askLater('question', { enqueue: true })
    const row = async () => asking.mill.models.Chat.findByPk(chat.id)
    await until('it is handed over', async () => {
      const seen = await row()
      return seen?.wantedQueue === 'runTools' && !(await chat.running())
    })
    // Rung for by hand, by the sweeper, and by others: none of it is for these workers to do.
    const probe = await asking.mill.chats.create({ agent: 'clerk' })
    await asking.mill.jobs.complete.enqueue(chat.id)
    await until('the ring was heard', async () => (await row())?.wantedQueue === 'runTools')
    await asking.mill.jobs.complete.enqueue(probe.id)
    await until('later jobs are done', async () => {
      const seen = await asking.mill.models.Chat.findByPk(probe.id)
      return (seen?.claimToken ?? 0) > 0 && seen?.wantedAt === null
    })
    expect(ran).to.eql([])
    expect(bench.model.requests).to.have.length(1)
    expect((await row())?.wantedAt).to.be.instanceOf(Date)

    const doing = await connected('the doing process', ran)
    await doing.mill.startWorkers({ complete: 0, runTools: 1 }).ready()
    await answered(chat)
    expect(ran).to.eql(['one in the doing process'])
  })

  it('leaves the model to complete workers where there are only runTools workers', async () => {
    await bench.script([works('one'), text('answer')])
    const ran: string[] = []
    const doing = await connected('the doing process', ran)
    await doing.mill.startWorkers({ complete: 0, runTools: 2 }).ready()
    const chat = await doing.mill.chats.create({ agent: 'clerk' })
    await chat.askLater('question', { enqueue: true })
    await doing.mill.jobs.runTools.enqueue(chat.id)
    const row = async () => doing.mill.models.Chat.findByPk(chat.id)
    await until('it is handed over', async () => (await row())?.wantedQueue === 'complete')
    expect(bench.model.requests).to.have.length(0)
    const asking = await connected('the asking process', ran)
    await asking.mill.startWorkers({ complete: 1, runTools: 0 }).ready()
    await answered(chat)
    expect(ran).to.eql(['one in the doing process'])
  })

  it('goes on after a FLUSHALL between the answer and its round, and between the round and the answer', async () => {
    const first = gate(works('one'))
    const second = gate(text('answer'))
    await bench.script([first, second])
    const ran: string[] = []
    const asking = await connected('the asking process', ran)
    await asking.mill.startWorkers({ complete: 2, runTools: 0 }).ready()
    const chat = await asking.mill.chats.create({ agent: 'clerk' })
    await chat.askLater('question', { enqueue: true })
    await first.reached
    first.release()
    const row = async () => asking.mill.models.Chat.findByPk(chat.id)
    await until('the round waits for its workers', async () => {
      return (await row())?.wantedQueue === 'runTools' && !(await chat.running())
    })
    const redis = new Redis(bench.redis.url)
    try {
      await redis.flushall()
      const doing = await connected('the doing process', ran)
      await doing.mill.startWorkers({ complete: 0, runTools: 2 }).ready()
      await second.reached
      await redis.flushall()
      second.release()
      await answered(chat)
    } finally {
      redis.disconnect()
    }
    expect(ran).to.eql(['one in the doing process'])
    expect(await roles(chat)).to.eql(['user', 'assistant', 'tool', 'assistant'])
    expect(bench.model.requests).to.have.length(2)
  })

  it('goes on when the round is over and Redis was flushed before its ring was heard', async () => {
    await bench.script([works('one'), text('answer')])
    const ran: string[] = []
    const asking = await connected('the asking process', ran)
    const doing = await connected('the doing process', ran)
    const first = asking.mill.startWorkers({ complete: 1, runTools: 0 })
    await first.ready()
    const chat = await asking.mill.chats.create({ agent: 'clerk' })
    await chat.askLater('question', { enqueue: true })
    const row = async () => doing.mill.models.Chat.findByPk(chat.id)
    await until('the round waits', async () => (await row())?.wantedQueue === 'runTools' && !(await chat.running()))
    await first.close()
    await doing.mill.startWorkers({ complete: 0, runTools: 1 }).ready()
    await until('the round is done', async () => (await row())?.wantedQueue === 'complete' && ran.length === 1)
    const redis = new Redis(bench.redis.url)
    await redis.flushall()
    redis.disconnect()
    const other = await connected('another process', ran)
    await other.mill.startWorkers({ complete: 1, runTools: 0 }).ready()
    await answered(chat)
    expect(ran).to.eql(['one in the doing process'])
    expect(bench.model.requests).to.have.length(2)
  })

  it('runs an approved call in the runTools workers too', async () => {
    await bench.script([toolCalls([{ name: 'guarded', arguments: {} }]), text('answer')])
    const ran: string[] = []
    const asking = await connected('the asking process', ran)
    const doing = await connected('the doing process', ran)
    await asking.mill.startWorkers({ complete: 1, runTools: 0 }).ready()
    await doing.mill.startWorkers({ complete: 0, runTools: 1 }).ready()
    const chat = await asking.mill.chats.create({ agent: 'clerk' })
    await chat.askLater('question', { enqueue: true })
    await until('it waits for a decision', () => chat.awaitingApproval())
    const [call] = await chat.pendingApprovals()
    if (call === undefined) throw new Error('Nothing awaits approval')
    await chat.approve(call)
    await answered(chat)
    expect(ran).to.eql(['guarded in the doing process'])
  })

  it('runs tools in place for a caller who completes by hand', async () => {
    await bench.script([works('one'), text('answer')])
    const ran: string[] = []
    const asking = await connected('the calling process', ran)
    const chat = await asking.mill.chats.create({ agent: 'clerk' })
    expect((await chat.ask('question'))?.content).to.equal('answer')
    expect(ran).to.eql(['one in the calling process'])
  })
})
