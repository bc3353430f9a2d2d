import { expect } from 'chai'
import { ArgumentError, type Chat, ChatNotFoundError, defineAgent, ReadOnlyModelError } from '../../src/index.ts'
import { gate, httpError, type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { chatRow } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('The receipt of a message', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let during = async (): Promise<unknown> => undefined
  let statements: string[] = []

  /** A chat as the process that runs it and the one that serves users see it; the tool `work` does what `during` says. */
  async function both(replies: readonly Reply[] = []) {
    await bench.script(replies)
    during = async () => undefined
    statements = []
    const work = recording('work', [], {}, async () => during())
    const agent = defineAgent({ name: freshName(), retries: 0, tools: [work] })
    const mill = await bench.connect({ agents: [agent], observe: { onStatement: (sql) => statements.push(sql) } })
    const run = await mill.chats.create({ agent })
    const web = await (await bench.connect({ agents: [agent] })).chats.find(run.id)
    return { mill, agent, run, web }
  }
  const works = () => toolCalls([call('work', freshId())])
  const statusOf = async (chat: Chat, message: { readonly id: string }) => (await chat.receipt(message))?.status
  const idOf = async (chat: Chat, content: string) =>
    (await chat.messages()).find((message) => message.content === content)?.id
  const inserts = () => statements.filter((sql) => /^INSERT INTO \S*receipts/.test(sql))

  it('says waiting in the queue and delivered in the transcript, in every process (E70)', async () => {
    const { run, web } = await both([text('answer')])
    const queued = await web.queue('steers', { wake: false })
    const later = await web.queue('does not', { steer: false, wake: false })
    const waiting = { status: 'waiting', queuedAt: queued.createdAt, steer: true }
    expect(await run.receipt(queued)).to.deep.equal({ id: queued.id, ...waiting })
    expect(await run.receipt(later.id)).to.deep.include({ id: later.id, status: 'waiting', steer: false })

    await run.complete()
    for (const [row, content] of [
      [queued, 'steers'],
      [later, 'does not'],
    ] as const) {
      const message = (await web.messages()).find((one) => one.content === content)
      const { id: messageId, createdAt: at } = message ?? {}
      expect(await web.receipt(row)).to.deep.equal({ id: row.id, status: 'delivered', messageId, at })
    }
  })

  it('costs one statement, however many messages leave the queue, and none for a turn without a queue (E70)', async () => {
    const { run, web } = await both([text('one'), text('two'), text('three')])
    await run.ask('nothing waits')
    expect(inserts()).to.deep.equal([])
    for (const content of ['a', 'b', 'c']) await web.queue(content, { wake: false })
    await run.complete()
    expect(inserts()).to.have.length(1)
    for (const content of ['d', 'e']) await web.queue(content, { wake: false })
    await run.askLater('drains the queue')
    expect(inserts()).to.have.length(2)
  })

  it('says delivered of what joined the running turn, and of what a question took along (E70)', async () => {
    const { run, web } = await both([works(), text('answer')])
    let steering = { id: '' }
    during = async () => {
      steering = await web.queue('joins')
      expect(await statusOf(run, steering)).to.equal('waiting')
    }
    await run.ask('question')
    expect(await web.receipt(steering)).to.deep.include({ status: 'delivered', messageId: await idOf(web, 'joins') })

    const drained = await web.queue('goes first', { wake: false })
    await web.askLater('drains')
    expect(await run.receipt(drained)).to.deep.include({
      status: 'delivered',
      messageId: await idOf(web, 'goes first'),
    })
  })

  it('says unqueued of a message that was taken back, once (E70)', async () => {
    const { mill, run, web } = await both()
    const queued = await web.queue('no, wait', { wake: false })
    expect(await run.unqueue(queued)).to.equal(true)
    const receipt = await web.receipt(queued)
    expect(receipt).to.deep.include({ id: queued.id, status: 'unqueued' })
    expect(receipt?.status === 'unqueued' && receipt.at).to.be.at.least(queued.createdAt)
    expect(await web.unqueue(queued)).to.equal(false)
    expect(await web.receipt(queued)).to.deep.equal(receipt)
    expect(await mill.models.Receipt.count({ where: { chatId: run.id } })).to.equal(1)
  })

  it('says delivered of a message that never waited, under its own id, and nothing of what is none (E70)', async () => {
    const { mill, run, web } = await both([text('answer')])
    await run.withInstructions('Be brief.').ask('question')
    const messages = await web.messages()
    const question = messages.find(({ role }) => role === 'user')
    const delivered = { status: 'delivered', messageId: question?.id, at: question?.createdAt }
    expect(await web.receipt(question?.id ?? '')).to.deep.equal({ id: question?.id, ...delivered })
    for (const { id, role } of messages) if (role !== 'user') expect(await web.receipt(id), role).to.equal(null)

    const other = await mill.chats.create()
    const queued = await other.queue('elsewhere', { wake: false })
    const gone = await other.queue('taken back', { wake: false })
    await other.unqueue(gone)
    await other.addMessage({ role: 'user', content: 'there' })
    const foreign = [queued.id, gone.id, (await other.messages())[0]?.id ?? '']
    for (const id of [...foreign, 'nobody', '', 'x'.repeat(9 * 1024 * 1024)]) {
      expect(await web.receipt(id), id.slice(0, 40)).to.equal(null)
    }
    for (const id of [null, undefined, 7, {}, { id: 7 }]) {
      expect(await errorFrom(() => web.receipt(id as never)), String(id)).to.be.instanceOf(ArgumentError)
    }
  })

  it('says failed while the turn before it is given up, and nothing takes it; a new try delivers it (E71)', async () => {
    const again = gate(text('answer'))
    const { mill, agent, run, web } = await both([works(), httpError(400, 'no'), again, text('next answer')])
    let queued = { id: '' }
    during = async () => {
      queued = await web.queue('next', { steer: false })
    }
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    const reason = await until('the turn is given up', () => web.failure())
    expect(reason.code).to.equal('provider.bad_request')
    expect(await web.receipt(queued)).to.deep.equal({ id: queued.id, status: 'failed', reason })
    expect((await chatRow(mill, run)).wantedAt).to.equal(null)

    const token = (await chatRow(mill, run)).claimToken
    const probe = await mill.chats.create({ agent })
    await mill.jobs.complete.enqueue(probe)
    await until('workers go on', async () => {
      const row = await chatRow(mill, probe)
      return row.claimToken > 0 && row.wantedAt === null && row.claimedBy === null
    })
    expect((await chatRow(mill, run)).claimToken, 'nobody took it').to.equal(token)
    expect(await statusOf(web, queued)).to.equal('failed')

    await mill.jobs.complete.enqueue(run)
    await again.reached
    expect(await statusOf(web, queued)).to.equal('waiting')
    again.release()
    await until('both are answered', () => web.isComplete())
    expect(await web.receipt(queued)).to.deep.include({ status: 'delivered', messageId: await idOf(web, 'next') })
    expect((await web.messages()).at(-1)?.content).to.equal('next answer')
  })

  it('says failed no longer once a message is queued after the failure: it lifts that, and both run (E71)', async () => {
    const again = gate(text('answer'))
    const { mill, run, web } = await both([works(), httpError(400, 'no'), again, text('next answer')])
    let before = { id: '' }
    during = async () => {
      before = await web.queue('before', { steer: false })
    }
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await until('the turn is given up', () => web.failure())
    expect(await statusOf(web, before)).to.equal('failed')
    const after = await web.queue('after', { steer: false })
    await again.reached
    expect([await statusOf(web, before), await statusOf(web, after)]).to.deep.equal(['waiting', 'waiting'])
    again.release()
    await until('all is answered', () => web.isComplete())
    expect([await statusOf(web, before), await statusOf(web, after)]).to.deep.equal(['delivered', 'delivered'])
    const users = (await web.messages()).filter(({ role }) => role === 'user').map(({ content }) => content)
    expect(users).to.deep.equal(['question', 'before', 'after'])
  })

  it('never says failed of a message that comes while the turn is being given up: it is tried once more (E71)', async () => {
    const { mill, run, web } = await both([httpError(400, 'no'), text('answer'), text('next answer')])
    let queued = { id: '' }
    beforeNext(mill, 'release', async () => {
      queued = await web.queue('just in time', { steer: false })
    })
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await until('both are answered', async () => queued.id !== '' && (await web.isComplete()))
    expect(await web.failure()).to.equal(null)
    expect(await statusOf(web, queued)).to.equal('delivered')
  })

  it('goes with the chat, is not copied by a fork, and keeps what an edit removes (E78)', async () => {
    const { mill, run, web } = await both([text('answer'), text('another')])
    await run.ask('question')
    const taken = await web.queue('taken', { wake: false })
    await run.complete()
    const waiting = await web.queue('waits', { wake: false })
    const delivered = await web.receipt(taken)

    const fork = await mill.chats.fork(run)
    expect(await fork.receipt(taken)).to.equal(null)
    expect(await mill.models.Receipt.count({ where: { chatId: fork.id } })).to.equal(0)

    await web.regenerate({ at: await idOf(web, 'question') })
    expect(await idOf(web, 'taken')).to.equal(undefined)
    expect(await web.receipt(taken), 'it was delivered').to.deep.equal(delivered)
    expect(await web.receipt(delivered?.status === 'delivered' ? delivered.messageId : '')).to.equal(null)
    expect(await statusOf(web, waiting), 'the queue stays').to.equal('waiting')

    await web.delete()
    expect(await mill.models.Receipt.count({ where: { chatId: run.id } })).to.equal(0)
    expect(await errorFrom(() => run.receipt(taken))).to.be.instanceOf(ChatNotFoundError)
  })

  it('is a row that applications read with its chat and its message, and can’t change (E70)', async () => {
    const { mill, run, web } = await both([text('answer')])
    const queued = await web.queue('hello', { wake: false })
    await run.complete()
    const { Receipt } = mill.models
    const record = await Receipt.findByPk(queued.id, { include: ['chat', 'message'], rejectOnEmpty: true })
    expect(record.get('chat')).to.include({ id: run.id })
    expect(record.get('message')).to.include({ id: record.messageId, content: 'hello' })
    expect([record.status, record.queuedAt]).to.deep.equal(['delivered', queued.createdAt])
    expect(await errorFrom(() => record.update({ status: 'unqueued' }))).to.be.instanceOf(ReadOnlyModelError)
    expect(await errorFrom(() => record.destroy())).to.be.instanceOf(ReadOnlyModelError)
  })
})
