import { expect } from 'chai'
import { defineAgent, defineTool } from '../../../src/index.ts'
import { gate, text, toolCalls } from '../../../src/testing/index.ts'
import { onEachDatabase, type TestDatabase } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { until } from '../../support/until.ts'
import { environmentOf, runCli } from '../run-cli.ts'

const refund = defineTool({
  name: 'refund',
  description: 'Refunds.',
  parameters: { type: 'object', properties: {} },
  requiresApproval: true,
  execute: () => 'done',
})
const support = defineAgent({ name: 'support', tools: [refund] })
const absent = '0199d2a4-5c1e-7000-8000-000000000000'

onEachDatabase('threadmill status', (kind) => {
  const bench = useBench(kind)
  const status = async (...argv: string[]) => {
    const { code, out, err } = await runCli(['status', ...argv], { env: environmentOf(bench.options()) })
    return { code, out, err, json: () => JSON.parse(out) }
  }

  it('counts chats and rings, and names the workers that are connected', async () => {
    await bench.script(text('hello'))
    const mill = await bench.connect({ agents: [support] })
    await mill.models.Chat.destroy({ where: {} })
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    const before = (await status('--json')).json()
    expect(before.chats).to.include({ due: 1, idle: 0 })
    expect(before.oldestDueMs).to.be.within(0, 60_000)
    expect(before.migrations).to.deep.equal({ pending: [] })
    expect(before.queuesProblem).to.equal(null)
    expect(before.queues[0]).to.deep.equal({ queue: 'complete', waiting: 1, active: 0, delayed: 0, workers: [] })
    expect((await status(chat.id, '--json')).json().advice).to.include({ act: 'start-worker' })

    await mill.startWorkers({ complete: 1, runTools: 0 }).ready()
    await until('the chat is answered', () => chat.isComplete())
    await until('it was given back', async () => !(await chat.running()))
    const after = (await status('--json')).json()
    expect(after.chats).to.include({ due: 0, idle: 1 })
    expect(after.oldestDueMs).to.equal(null)
    expect(after.queues[0].workers).to.have.length(1)
    expect(after.queues[0].workers[0]).to.match(new RegExp(`:${process.pid}$`))
    const { code, out, err } = await status()
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    expect(out)
      .to.match(/^The tables are up to date\.$/m)
      .and.to.match(/^idle +1$/m)
      .and.to.match(/^complete +0 .*1: .+:\d+$/m)
  })

  it('names the process that runs a chat, and the claim', async () => {
    const held = gate(text('hello'))
    await bench.script(held)
    const mill = await bench.connect({ agents: [support], claimTtlMs: 30_000 })
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    mill.startWorkers({ complete: 1, runTools: 0 })
    await held.reached
    const seen = (await status(chat.id, '--json')).json()
    expect(seen).to.deep.include({ chatId: chat.id, state: 'running', turn: 1 })
    expect(seen.claim).to.include({ token: 1 })
    expect(seen.claim.lapsesInMs).to.be.within(1, 30_000)
    expect(seen.runner.process).to.match(new RegExp(`:${process.pid}$`))
    expect(Date.parse(seen.runner.since)).to.be.closeTo(Date.now(), 60_000)
    const { out } = await status(chat.id)
    expect(out)
      .to.match(/^state +running$/m)
      .and.to.match(/^run by +\S+:\d+, for /m)
      .and.to.match(/^to do +nothing: it runs/m)
    held.release()
    await until('the chat is answered', () => chat.isComplete())
  })

  it('says what to decide, and exits with 3 for it if that is wanted', async () => {
    await bench.script([toolCalls([{ id: 'call_x', name: 'refund', arguments: {} }]), text('done')])
    const mill = await bench.connect({ agents: [support] })
    const chat = await mill.chats.create({ agent: support })
    await chat.ask('Refund it')
    expect(await status(chat.id)).to.include({ code: 0 })
    const { code, out } = await status(chat.id, '--exit-code')
    expect(code).to.equal(3)
    expect(out)
      .to.match(/^state +parked$/m)
      .and.to.match(/^to do +approve or deny call_x$/m)
    await mill.models.Chat.update(
      { failure: { code: 'c', message: 'm', turn: 1, at: 'x' } },
      { where: { id: chat.id } },
    )
    expect(await status(chat.id, '--exit-code')).to.include({ code: 1 })
  })

  it('exits with 1 for a chat that does not exist', async () => {
    const { code, out, err } = await status(absent)
    expect({ code, out }).to.deep.equal({ code: 1, out: '' })
    expect(err).to.include('(chat.not_found)')
  })

  it('shows what the database says while Redis is away', async () => {
    const { code, out, json } = await status('--json', '--redis-url', 'redis://someone:s3cret@127.0.0.1:1')
    expect(code).to.equal(0)
    expect(json()).to.deep.include({ queues: null, migrations: { pending: [] } })
    expect(json().queuesProblem).to.include('127.0.0.1:1')
    expect(out).not.to.include('s3cret')
  })

  describe('on a database without tables', () => {
    let database: TestDatabase
    before(async () => {
      database = await kind.create()
    })
    after(() => database.drop())

    it('names the steps that it lacks', async () => {
      const { code, json } = await status('--json', '--database-url', database.url)
      expect(code).to.equal(0)
      expect(json()).to.include({ chats: null, oldestDueMs: null })
      expect(json().migrations.pending).to.include('0001-conversations')
      expect((await status('--database-url', database.url)).out).to.match(/0001-conversations.*: threadmill migrate$/m)
    })
  })
})
