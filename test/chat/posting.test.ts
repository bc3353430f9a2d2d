import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import {
  type Chat,
  ChatRunningError,
  type ConnectOptions,
  defineAgent,
  diskStore,
  PendingToolCallsError,
} from '../../src/index.ts'
import { gate, type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { allRows } from '../support/all-rows.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { chatRow } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A message that is posted', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let during: Record<string, () => Promise<unknown>> = {}

  /** A chat as the process that runs it and the one that serves users see it; the tool `work` does what its note says. */
  async function both(replies: readonly Reply[], options: ConnectOptions = {}) {
    await bench.script(replies)
    during = {}
    const runs: string[] = []
    const work = recording('work', runs, {}, async (_, note) => during[note ?? '']?.())
    const agent = defineAgent({
      name: freshName(),
      retries: 0,
      tools: [work, recording('wipe', runs, { requiresApproval: true })],
    })
    const mill = await bench.connect({ agents: [agent], ...options })
    const run = await mill.chats.create({ agent })
    const web = await (await bench.connect({ agents: [agent], ...options })).chats.find(run.id)
    return { mill, agent, run, web, runs }
  }
  const works = (note: string) => toolCalls([call('work', freshId(), { note })])
  const spoken = async (chat: Chat) =>
    (await chat.messages()).map(({ role, content }) => (role === 'user' ? content : role))
  const asked = (at: number) =>
    (bench.model.requests[at]?.messages ?? []).flatMap(({ role, content }) => (role === 'user' ? [content] : []))
  const atRest = (chat: Chat) =>
    until('all is answered', async () => (await chat.isComplete()) && !(await chat.running()))

  it('to an idle chat is delivered behind what waits in the queue, and answered by a worker (E72)', async () => {
    const { mill, web } = await both([text('answer')])
    const queued = await web.queue('first', { wake: false })
    const receipt = await web.post('second')
    const [, second] = await web.messages()
    const delivered = { status: 'delivered', messageId: second?.id, at: second?.createdAt }
    expect(receipt).to.deep.equal({ id: second?.id, ...delivered })
    expect(await web.receipt(receipt)).to.deep.equal(receipt)
    expect((await web.receipt(queued))?.status).to.equal('delivered')
    await mill.startWorkers().ready()
    await atRest(web)
    expect(await spoken(web)).to.deep.equal(['first', 'second', 'assistant'])
  })

  it('counts a chat that is only wanted as idle, and wants it only if it is to (E72)', async () => {
    const { mill, run, web } = await both([text('answer')])
    expect((await web.post('staged', { wake: false })).status).to.equal('delivered')
    expect((await chatRow(mill, run)).wantedAt).to.equal(null)
    expect((await web.post('wanted')).status).to.equal('delivered')
    expect((await chatRow(mill, run)).wantedAt).not.to.equal(null)
    for (const whileRunning of ['steer', 'interrupt', 'reject'] as const) {
      expect((await web.post(whileRunning, { whileRunning })).status, whileRunning).to.equal('delivered')
    }
    await mill.startWorkers().ready()
    await atRest(web)
    expect(await spoken(web)).to.deep.equal(['staged', 'wanted', 'steer', 'interrupt', 'reject', 'assistant'])
    expect(bench.model.requests).to.have.length(1)
  })

  it('beside others at once is answered, once, in one process or several (E72)', async () => {
    const { mill, run, web } = await both([])
    await bench.script(() => text('answer', { delayMs: 5 }))
    const worker = await bench.connect({ agents: [defineAgent({ name: run.agent ?? '' })] })
    await worker.startWorkers().ready()
    const contents = Array.from({ length: 12 }, (_, at) => `message ${at}`)
    const receipts = await Promise.all(contents.map((content, at) => (at % 2 === 0 ? run : web).post(content)))
    await atRest(web)
    const messages = await web.messages()
    const users = messages.filter(({ role }) => role === 'user')
    expect(users.map(({ content }) => content)).to.have.members(contents)
    expect(messages.at(-1)?.role).to.equal('assistant')
    for (const [at, { id }] of receipts.entries()) {
      const messageId = users.find(({ content }) => content === contents[at])?.id
      expect(await web.receipt(id)).to.deep.include({ status: 'delivered', messageId })
    }
    expect((await chatRow(mill, run)).wantedAt).to.equal(null)
  })

  it('while a process runs the chat waits for the next turn, or joins the running one (E73)', async () => {
    const { mill, run, web } = await both([works('post'), works('none'), text('answer'), text('next answer')])
    const told: string[] = []
    web.afterQueue(({ content, owner }) => void told.push(`${content} of ${owner}`))
    during.post = async () => {
      const later = await web.post('later', { owner: 'anna' })
      const [row] = await web.queuedMessages()
      const waiting = { status: 'waiting', queuedAt: row?.createdAt, steer: false }
      expect(later).to.deep.equal({ id: row?.id, ...waiting })
      expect(await web.post('now', { whileRunning: 'steer' })).to.deep.include({ status: 'waiting', steer: true })
    }
    await run.ask('question')
    expect(await spoken(web)).to.deep.equal(
      'question,assistant,tool,now,assistant,tool,assistant,later,assistant'.split(','),
    )
    expect(asked(2)).to.deep.equal(['question', 'now'])
    expect(asked(3)).to.deep.equal(['question', 'now', 'later'])
    expect(told).to.deep.equal(['later of anna', 'now of null'])
    expect((await chatRow(mill, run)).turn).to.equal(2)
    const events = []
    for await (const event of web.events({ after: '0' })) {
      if (event.type === 'queued' || event.type === 'dequeued') events.push(event)
      if (event.type === 'run.finished') break
    }
    expect(events.map(({ type }) => type)).to.deep.equal(['queued', 'queued', 'dequeued', 'dequeued'])
  })

  it('while an answer streams is not let in behind the question, or refused (E73, E74)', async () => {
    const first = gate(text('answer'))
    const { run, web } = await both([first, text('next answer')])
    const running = run.ask('question')
    await first.reached
    expect((await web.post('queued')).status).to.equal('waiting')
    expect((await web.post('steers', { whileRunning: 'steer' })).status).to.equal('waiting')
    const refused = await errorFrom(() => web.post('refused', { whileRunning: 'reject' }))
    expect(refused).to.be.instanceOf(ChatRunningError)
    first.release()
    expect((await running)?.content).to.equal('next answer')
    expect(await spoken(web)).to.deep.equal(['question', 'assistant', 'queued', 'steers', 'assistant'])
    expect(asked(1)).to.deep.equal(['question', 'queued', 'steers'])
  })

  it('while the chat waits for a decision waits for the end of the round (E73)', async () => {
    const { run, web, runs } = await both([toolCalls([call('wipe', freshId())]), text('answer'), text('next answer')])
    await run.ask('question')
    const later = await web.post('later')
    const steering = await web.post('steers', { whileRunning: 'steer' })
    await run.complete()
    expect([later.status, steering.status, await web.awaitingApproval()]).to.deep.equal(['waiting', 'waiting', true])
    expect(await web.queuedMessages()).to.have.length(2)
    const [open] = await web.pendingApprovals()
    await web.approve(open ?? '')
    await run.complete()
    expect(await spoken(web)).to.deep.equal('question,assistant,tool,steers,assistant,later,assistant'.split(','))
    expect(runs).to.deep.equal(['wipe'])
  })

  it('is refused by reject while the chat runs or has open calls, and nothing is written (E74)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'threadmill-posting-'))
    try {
      const store = diskStore(folder)
      const replies = [works('post'), toolCalls([call('wipe', freshId())]), text('answer')]
      const { mill, run, web } = await both(replies, { attachments: { store } })
      const kept = async () => (await readdir(folder, { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name))
      const attempt = async () => {
        const before = await allRows(mill)
        web.withTemperature(0.5)
        const file = { data: Buffer.from('notes'), filename: 'notes.txt' }
        const error = await errorFrom(() => web.post('refused', { whileRunning: 'reject', attachments: file }))
        expect(await allRows(mill)).to.deep.equal(before)
        expect(await kept()).to.deep.equal([])
        return error
      }
      let whileRunning: unknown
      during.post = async () => {
        whileRunning = await attempt()
      }
      await run.ask('question')
      expect(whileRunning).to.be.instanceOf(ChatRunningError)
      const parked = await attempt()
      expect(parked).to.be.instanceOf(PendingToolCallsError).and.have.property('message').that.includes('wipe')
      expect(await spoken(web)).not.to.include('refused')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  it('brings its files along, into the transcript and through the queue (E72, E73)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'threadmill-posting-'))
    try {
      const { run, web } = await both([works('post'), text('answer'), text('next')], {
        attachments: { store: diskStore(folder) },
      })
      const file = (name: string) => ({ data: Buffer.from(name), filename: name })
      during.post = () => web.post(null, { attachments: file('queued.txt') })
      await web.post('question', { attachments: [file('staged.txt')], wake: false })
      await run.complete()
      const users = (await web.messages()).filter(({ role }) => role === 'user')
      expect(users.map(({ attachments }) => attachments?.map(({ filename }) => filename))).to.deep.equal([
        ['staged.txt'],
        ['queued.txt'],
      ])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  it('in a transaction counts once that is committed, its interruption too (E79)', async () => {
    const first = gate(text('one two three', { chunks: 'words' }))
    const { mill, run, web } = await both([first, text('answer')])
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await first.reached
    const other = await bench.connect({ agents: [defineAgent({ name: run.agent ?? '' })] })
    const same = await other.chats.find(run.id)
    const back = await errorFrom(() =>
      other.transaction(async (transaction) => {
        await same.post('rolled back', { whileRunning: 'interrupt', transaction })
        throw new ChatRunningError('enough')
      }),
    )
    expect(back).to.have.property('message', 'enough')
    expect([await web.queuedMessages(), await web.cancelled()]).to.deep.equal([[], false])

    const receipt = await other.transaction(async (transaction) => {
      const posted = await same.post('committed', { whileRunning: 'interrupt', transaction })
      expect(posted.status).to.equal('waiting')
      return posted
    })
    await until('it is answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    first.release()
    await atRest(web)
    expect(await spoken(web)).to.deep.equal(['question', 'committed', 'assistant'])
    expect(await web.receipt(receipt)).to.deep.include({ status: 'delivered' })
  })
})
