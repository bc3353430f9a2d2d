import { expect } from 'chai'
import * as z from 'zod'
import { CancelledError, type Chat, defineAgent, defineTool, type Threadmill } from '../../src/index.ts'
import { gate, type ModelServer, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'

onEachDatabase('The queue of a chat', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let ran: string[] = []
  /** What another process does while a tool runs, by the tool's `step`. */
  let during: Record<string, () => Promise<unknown>> = {}
  const work = defineTool({
    name: 'work',
    description: 'Does one step.',
    parameters: z.object({ step: z.string() }),
    execute: async ({ step }) => {
      ran.push(step)
      await during[step]?.()
      return `did ${step}`
    },
  })
  const guarded = defineTool({
    name: 'guarded',
    description: 'Needs a decision.',
    parameters: z.object({}),
    requiresApproval: true,
    execute: () => 'guarded result',
  })
  const agent = defineAgent({ name: 'clerk', tools: [work, guarded] })
  const works = (...steps: string[]) => toolCalls(steps.map((step) => ({ name: 'work', arguments: { step } })))

  beforeEach(() => {
    ran = []
    during = {}
  })

  /** One chat as the process that runs it and the one that serves users see it. */
  async function both(): Promise<{ run: Chat; web: Chat; mill: Threadmill }> {
    const mill = await bench.connect({ agents: [agent] })
    const run = await mill.chats.create({ agent })
    const web = await (await bench.connect({ agents: [agent] })).chats.find(run.id)
    return { run, web, mill }
  }

  /** What a request asked: the roles, and the text of users. */
  const asked = (model: ModelServer, at: number) =>
    (model.requests[at]?.messages ?? []).map(({ role, content }) => (role === 'user' ? content : role))
  const transcript = async (chat: Chat) =>
    (await chat.messages()).map(({ role, content }) => (role === 'user' ? content : role))

  it('becomes a user message of an idle chat and is answered (S48)', async () => {
    await bench.script(text('answer'))
    const { run, web } = await both()
    for (const steer of [true, false]) {
      const before = bench.model.requests.length
      await web.queue(`steer: ${steer}`, { steer, wake: false })
      expect(await run.isComplete(), 'a queue is work').to.equal(false)
      expect((await run.complete())?.content).to.equal('answer')
      expect(bench.model.requests).to.have.length(before + 1)
      expect(asked(bench.model, before).at(-1)).to.equal(`steer: ${steer}`)
    }
    expect(await transcript(web)).to.eql(['steer: true', 'assistant', 'steer: false', 'assistant'])
    expect(await web.queuedMessages()).to.eql([])
    expect(await run.isComplete()).to.equal(true)
  })

  it('wakes a worker by itself (S48)', async () => {
    await bench.script(text('answer'))
    const { web, mill } = await both()
    await mill.startWorkers().ready()
    await web.queue('question')
    await until('it is answered', async () => (await web.messages()).length === 2)
    expect(await transcript(web)).to.eql(['question', 'assistant'])
  })

  it('lets a steering message in after all results of the round and before the next request (S49)', async () => {
    await bench.script([works('one', 'two', 'three'), text('answer')])
    const { run, web } = await both()
    during.one = () => web.queue('steer')
    await run.ask('question')
    expect(ran).to.eql(['one', 'two', 'three'])
    const expected = ['question', 'assistant', 'tool', 'tool', 'tool', 'steer']
    expect(asked(bench.model, 1)).to.eql(expected)
    expect(await transcript(web)).to.eql([...expected, 'assistant'])
    expect(bench.model.requests).to.have.length(2)
    expect((await web.reload()) && (await run.isComplete())).to.equal(true)
  })

  it('keeps a message that does not steer for a turn of its own after the final answer (S50)', async () => {
    await bench.script([works('one'), works('two'), text('answer'), text('answer to later')])
    const { run, web, mill } = await both()
    during.one = () => web.queue('later', { steer: false })
    expect((await run.ask('question'))?.content).to.equal('answer to later')
    for (const at of [1, 2]) expect(asked(bench.model, at), `request ${at + 1}`).not.to.include('later')
    expect(asked(bench.model, 3).at(-1)).to.equal('later')
    const messages = await web.messages()
    expect(messages.at(-3)?.content).to.equal('answer')
    expect(messages.at(-2)?.content).to.equal('later')
    expect((await mill.models.Chat.findByPk(run.id))?.turn).to.equal(2)
  })

  it('takes steering messages at the next step and the others in their order at the turn’s end (S51)', async () => {
    await bench.script([works('one'), works('two'), text('answer'), text('last')])
    const { run, web } = await both()
    during.one = async () => {
      await web.queue('q1', { steer: false })
      await web.queue('q2')
      await web.queue('q3', { steer: false })
    }
    await run.ask('question')
    expect(asked(bench.model, 1)).to.eql(['question', 'assistant', 'tool', 'q2'])
    expect(asked(bench.model, 2)).not.to.include('q1')
    expect(asked(bench.model, 3).slice(-3)).to.eql(['assistant', 'q1', 'q3'])
    expect(bench.model.requests).to.have.length(4)
    expect(await web.queuedMessages()).to.eql([])
  })

  it('goes before what askLater adds, which asks no model (S52)', async () => {
    await bench.script(text('unreached'))
    const { web } = await both()
    await web.queue('q1', { wake: false })
    await web.queue('q2', { steer: false, wake: false })
    expect(await web.askLater('x')).to.equal(web)
    expect(await transcript(web)).to.eql(['q1', 'q2', 'x'])
    expect(await web.queuedMessages()).to.eql([])
    expect(bench.model.requests).to.have.length(0)
  })

  it('loses nothing when two processes ask later at the same time (S52)', async () => {
    await bench.script(text('unreached'))
    const { run, web } = await both()
    for (let at = 0; at < 5; at++) await web.queue(`q${at}`, { wake: false })
    await Promise.all([run.askLater('x'), web.askLater('y'), run.askLater('z')])
    const users = await transcript(web)
    expect(users.slice(0, 5)).to.eql(['q0', 'q1', 'q2', 'q3', 'q4'])
    expect(users.slice(5)).to.have.members(['x', 'y', 'z'])
  })

  it('stays while the chat is parked, and is taken after the approved call (S56)', async () => {
    await bench.script([toolCalls([{ name: 'guarded', arguments: {} }]), text('answer')])
    const { run, web } = await both()
    await run.ask('question')
    await web.queue('steer')
    expect(await run.complete()).to.include({ role: 'assistant' })
    expect(await run.awaitingApproval()).to.equal(true)
    expect(await web.queuedMessages()).to.have.length(1)
    expect(bench.model.requests).to.have.length(1)
    const [call] = await web.pendingApprovals()
    if (call === undefined) throw new Error('Nothing awaits approval')
    await web.approve(call)
    expect((await run.complete())?.content).to.equal('answer')
    expect(await transcript(web)).to.eql(['question', 'assistant', 'tool', 'steer', 'assistant'])
    expect(bench.model.requests).to.have.length(2)
  })

  it('leaves a parked chat at rest: no job goes round for what can’t be taken (S56)', async () => {
    await bench.script([toolCalls([{ name: 'guarded', arguments: {} }]), text('answer')])
    const { run, web, mill } = await both()
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await until('it is parked', () => web.awaitingApproval())
    await web.queue('steer')
    const row = async () => mill.models.Chat.findByPk(run.id)
    await until('the ring for it was heard', async () => (await row())?.wantedAt === null)
    const token = (await row())?.claimToken
    const probe = await mill.chats.create({ agent })
    await mill.jobs.complete.enqueue(probe)
    await until('jobs and sweeps go on', async () => {
      const seen = await mill.models.Chat.findByPk(probe.id)
      return (seen?.claimToken ?? 0) > 0 && seen?.wantedAt === null
    })
    expect((await row())?.claimToken).to.equal(token)
    expect(await web.queuedMessages()).to.have.length(1)
  })

  it('is left alone by a cancel, and starts the next turn by itself (S57)', async () => {
    const first = gate(text('first answer'))
    await bench.script([first, text('second answer')])
    const { run, web, mill } = await both()
    const running = errorFrom(() => run.ask('question'))
    await first.reached
    await web.queue('q1', { steer: false })
    await web.queue('q2')
    await web.cancel()
    expect(await running).to.be.instanceOf(CancelledError)
    first.release()
    expect((await web.queuedMessages()).map(({ content }) => content)).to.eql(['q1', 'q2'])
    expect(await transcript(web)).to.eql(['question'])
    expect(await web.cancelled()).to.equal(false)

    await mill.startWorkers().ready()
    await until('the next turn is answered', async () => (await web.messages()).at(-1)?.content === 'second answer')
    expect(await transcript(web)).to.eql(['question', 'q1', 'q2', 'assistant'])
    expect(await web.queuedMessages()).to.eql([])
  })

  it('lists the oldest first, with what each was queued with (S59)', async () => {
    const { run, web } = await both()
    await web.queue('first', { steer: false, wake: false, owner: { user: 7 } })
    await run.queue('second', { wake: false })
    const third = await web.queue('third', { wake: false, owner: 'somebody' })
    const listed = (await run.queuedMessages()).map(({ content, steer, owner }) => ({ content, steer, owner }))
    expect(listed).to.eql([
      { content: 'first', steer: false, owner: { user: 7 } },
      { content: 'second', steer: true, owner: null },
      { content: 'third', steer: true, owner: 'somebody' },
    ])
    expect((await run.queuedMessages())[2]?.id).to.equal(third.id)
  })

  it('keeps a loop of steps going until it is answered (S60)', async () => {
    await bench.script([works('one'), text('answer'), text('answer to the late one')])
    const { run, web } = await both()
    await run.askLater('question')
    let steps = 0
    while (!(await run.isComplete()) && !(await run.waiting())) {
      expect(await run.step()).not.to.equal(null)
      steps++
      if (steps === 2) await web.queue('late', { steer: false, wake: false })
    }
    expect((await web.messages()).at(-1)?.content).to.equal('answer to the late one')
    expect(steps).to.equal(4)
    expect(await run.step(), 'nothing is left').to.equal(null)
  })
})
