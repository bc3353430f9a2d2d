import { Queue } from 'bullmq'
import { expect } from 'chai'
import { queueNames } from '../../config/queues.ts'
import { type Chat, defineAgent, type Threadmill } from '../../src/index.ts'
import { httpError, text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const agent = defineAgent({ name: 'clerk', retries: 0 })

onEachDatabase('A job that ended and is kept', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000, sweepEveryMs: 60_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let queue: Queue

  beforeEach(() => {
    const { port } = bench.redis
    queue = new Queue(queueNames.complete, { connection: { host: '127.0.0.1', port }, prefix: 'threadmill' })
    queue.on('error', () => {})
  })
  afterEach(() => queue.close())

  /** Jobs of a chat that ended so, as the queue keeps them. */
  const kept = async (state: 'completed' | 'failed', chat: Chat) =>
    (await queue.getJobs([state])).filter((job) => job.data.chatId === chat.id)

  async function running(): Promise<{ mill: Threadmill; chat: Chat }> {
    const mill = await bench.connect({ agents: [agent] })
    await mill.startWorkers({ complete: 5, runTools: 0 }).ready()
    return { mill, chat: await mill.chats.create({ agent }) }
  }

  it('does not keep the next message from being answered, without the sweeper (B36)', async () => {
    await bench.script(({ messages }) => text(`answer to ${messages.at(-1)?.content}`))
    const { chat } = await running()
    for (const turn of [1, 2, 3]) {
      await chat.askLater(`message ${turn}`, { enqueue: true })
      await until('it is answered', async () => (await chat.messages()).at(-1)?.content === `answer to message ${turn}`)
      await until('its job has ended and is kept', async () => (await kept('completed', chat)).length >= turn)
    }
    expect(bench.model.requests).to.have.length(3)
  })

  it('does not do so after it failed either (B36)', async () => {
    await bench.script([httpError(401, 'no such key'), text('answer')])
    const { chat } = await running()
    await chat.askLater('message 1', { enqueue: true })
    await until('the turn failed', async () => (await chat.failure()) !== null)
    await until('its job has failed and is kept', async () => (await kept('failed', chat)).length === 1)
    await chat.askLater('message 2', { enqueue: true })
    await until('the next is answered', async () => (await chat.messages()).at(-1)?.content === 'answer')
    expect(await chat.failure()).to.equal(null)
    expect(bench.model.requests).to.have.length(2)
  })

  it('does not do so for a message queued the moment the run ends (B36)', async function () {
    this.timeout(60_000)
    await bench.script(text('answer'))
    const { chat } = await running()
    for (let turn = 1; turn <= 8; turn++) {
      await chat.askLater(`message ${turn}`, { enqueue: true })
      await until('it is answered', async () => (await chat.messages()).length === 4 * turn - 2)
      // The run may be past its last look, in its release, or over, its job still active.
      await chat.queue(`and ${turn}`)
      await until('this one too', async () => (await chat.messages()).length === 4 * turn)
      await until('the run is over', async () => !(await chat.running()))
    }
  })

  it('hears a ring for each of many chats at once (B36)', async () => {
    await bench.script(text('answer'))
    const { mill } = await running()
    const chats = await Promise.all(Array.from({ length: 10 }, () => mill.chats.create({ agent })))
    for (const round of [1, 2]) {
      await Promise.all(chats.map((chat) => chat.askLater(`message ${round}`, { enqueue: true })))
      await until('all are answered', async () => {
        const counts = await Promise.all(chats.map(async (chat) => (await chat.messages()).length))
        return counts.every((count) => count === 2 * round)
      })
      await until('all are over', async () => {
        const running = await Promise.all(chats.map((chat) => chat.running()))
        return !running.includes(true)
      })
    }
  })
})
