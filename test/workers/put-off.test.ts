import { expect } from 'chai'
import { defineAgent, MissingAgentError } from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'

const support = defineAgent({ name: 'support' })
const sales = defineAgent({ name: 'sales' })
const seconds = [1, 2, 4, 8, 16, ...Array.from({ length: 19 }, () => 30)]
const never = () => false

onEachDatabase('A worker without the chat’s agent', (kind) => {
  const bench = useBench(kind)
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })

  /** A chat of `support` that a web process wants run. */
  async function wanted() {
    const web = await bench.connect({ agents: [support] })
    // Those of earlier tests would be lifted too.
    await web.models.Chat.destroy({ where: {} })
    const chat = await web.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    const read = async () => {
      const record = await web.models.Chat.findByPk(chat.id)
      if (record === null) throw new Error('The chat is gone')
      return record.get({ plain: true })
    }
    const mark = (values: { putOff?: number; wantedAt?: Date }) =>
      web.models.Chat.update(values, { where: { id: chat.id } })
    /** As if the time of the wish had come. */
    const comeDue = () => mark({ wantedAt: new Date(Date.now() - 1_000) })
    return { chat, read, mark, comeDue }
  }

  it('does not take it, and puts it off for longer each time (R26)', async () => {
    await bench.script(text('never asked'))
    const { chat, read, comeDue } = await wanted()
    const worker = await bench.connect({ agents: [sales] })
    for (const [times, delay] of seconds.slice(0, 8).entries()) {
      const before = Date.now()
      expect(await worker.jobs.complete.perform(chat.id, never)).to.equal('put off')
      const row = await read()
      expect(row).to.include({ putOff: times + 1, claimToken: 0, attempts: 0, claimedBy: null })
      expect(row.failure).to.equal(null)
      const off = (row.wantedAt?.getTime() ?? 0) - before
      expect(off / 1_000, `the ${times + 1}. time`).to.be.within(delay * 0.75 - 0.1, delay * 1.25 + 10)
      expect(await worker.jobs.complete.perform(chat.id, never), 'before its time').to.equal('not wanted')
      await comeDue()
    }
    expect(bench.model.requests).to.have.length(0)
    expect(await chat.messages()).to.have.length(1)
  })

  it('fails it after ten minutes of that, and says what to do (R26)', async () => {
    await bench.script(text('never asked'))
    expect(seconds.reduce((sum, delay) => sum + delay)).to.be.within(590, 610)
    const { chat, read, comeDue } = await wanted()
    const worker = await bench.connect({ agents: [sales] })
    for (const _ of seconds) {
      expect(await worker.jobs.complete.perform(chat.id, never)).to.equal('put off')
      await comeDue()
    }
    const error = await errorFrom(() => worker.jobs.complete.perform(chat.id, never))
    expect(error).to.be.instanceOf(MissingAgentError)
    expect((error as Error).message).to.match(/"support".*connect\(\{ agents \}\)/)
    expect(await chat.failure()).to.include({ code: 'configuration.missing_agent', turn: 1 })
    expect(await read()).to.include({ wantedAt: null, putOff: 0, claimToken: 0 })
    expect(await worker.jobs.complete.perform(chat.id, never)).to.equal('not wanted')
    for await (const event of chat.events({ after: '0' })) {
      if (event.type !== 'run.failed') continue
      expect(event.failure.code).to.equal('configuration.missing_agent')
      break
    }
  })

  it('leaves it to one that has the agent, which is woken when it starts (R26)', async () => {
    await bench.script(text('hello'))
    const { chat, read, mark } = await wanted()
    const stranger = await bench.connect({ agents: [sales] })
    await stranger.startWorkers().ready()
    await until('it is put off twice', async () => (await read()).putOff >= 2)
    expect(bench.model.requests).to.have.length(0)
    await stranger.close()
    await mark({ putOff: 9, wantedAt: new Date(Date.now() + 600_000) })
    const colleague = await bench.connect({ agents: [support] })
    await colleague.startWorkers().ready()
    await until('it is answered', async () => (await chat.messages()).at(-1)?.content === 'hello')
    expect(bench.model.requests).to.have.length(1)
    expect(await chat.failure()).to.equal(null)
  })

  it('and the failure that this became is lifted by the start of one that has the agent (R26)', async () => {
    await bench.script(text('hello'))
    const { chat, read, mark } = await wanted()
    const stranger = await bench.connect({ agents: [sales] })
    await mark({ putOff: seconds.length })
    await stranger.startWorkers().ready()
    await until('it failed', async () => (await chat.failure()) !== null)
    await stranger.close()
    const colleague = await bench.connect({ agents: [support] })
    await colleague.startWorkers().ready()
    await until('it is answered', async () => (await chat.messages()).at(-1)?.content === 'hello')
    expect(await chat.failure()).to.equal(null)
    await until('it rests', async () => (await read()).wantedAt === null)
    expect(bench.model.requests).to.have.length(1)
  })
})
