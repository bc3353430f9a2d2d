import { expect } from 'chai'
import { type Chat, defineAgent, type Threadmill } from '../../src/index.ts'
import { httpError, type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { chatRow, makeDue } from './support/rows.ts'
import { call, freshName, recording } from './support/tools.ts'

const down = () => httpError(500, 'upstream down')

onEachDatabase('A turn that failed in a way that may pass', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  async function working(replies: readonly Reply[], attempts: number) {
    await bench.script(replies)
    const agent = defineAgent({ name: freshName(), retries: 0, attempts, tools: [recording('read', [])] })
    const mill = await bench.connect({ agents: [agent] })
    await mill.startWorkers().ready()
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Name a river', { enqueue: true })
    return { mill, chat }
  }

  /** How far off the next try is, in ms, once request number `requests` has failed. */
  async function putOff(mill: Threadmill, chat: Chat, requests: number): Promise<number> {
    const row = await until(`run ${requests} has failed`, async () => {
      const seen = await chatRow(mill, chat)
      return bench.model.requests.length === requests && seen.claimedBy === null && seen.wantedAt !== null && seen
    })
    return (row.wantedAt?.getTime() ?? 0) - Date.now()
  }

  it('is tried again by a worker, after a delay that grows, until it is answered', async () => {
    const { mill, chat } = await working([down(), down(), text('Danube')], 5)
    expect(await putOff(mill, chat, 1)).to.be.within(1, 5_000)
    expect(await chat.failure()).to.equal(null)
    await makeDue(mill, chat)
    expect(await putOff(mill, chat, 2)).to.be.within(10_000, 30_000)
    expect((await chatRow(mill, chat)).attempts).to.equal(2)
    await makeDue(mill, chat)
    await until('the answer', () => chat.isComplete())
    const row = await until('the end', async () => {
      const seen = await chatRow(mill, chat)
      return seen.claimedBy === null && seen
    })
    expect([row.attempts, row.wantedAt, row.failure]).to.deep.equal([0, null, null])
    expect(bench.model.requests).to.have.length(3)
  })

  it('is not tried before its time, whoever sweeps', async () => {
    const { mill, chat } = await working([down()], 5)
    await putOff(mill, chat, 1)
    let sweeps = 0
    const watching = await bench.connect({
      observe: { onStatement: (sql) => /ORDER BY wanted_at/.test(sql) && sweeps++ },
    })
    await watching.startWorkers().ready()
    await until('the sweeper has looked several times', () => sweeps >= 3)
    expect(bench.model.requests).to.have.length(1)
  })

  /** Runs the turn until its tries are used up. */
  async function givenUp(replies: readonly Reply[] = []) {
    const made = await working([down(), down(), ...replies], 2)
    await putOff(made.mill, made.chat, 1)
    await makeDue(made.mill, made.chat)
    await until('the turn is given up', () => made.chat.failure())
    return made
  }

  it('is given up after its last try, with a failure that can be read, and stays so', async () => {
    const { mill, chat } = await givenUp()
    const failure = await chat.failure()
    expect(failure).to.deep.include({ code: 'provider.server_error', turn: 1 })
    expect(failure?.message).to.contain('upstream down')
    expect(Number.isNaN(Date.parse(failure?.at ?? ''))).to.equal(false)
    const row = await chatRow(mill, chat)
    expect([row.wantedAt, row.claimedBy, await chat.isComplete()]).to.deep.equal([null, null, false])
    expect(bench.model.requests).to.have.length(2)
    let last: unknown
    for await (const event of chat.events({ after: '0' })) {
      last = event
      if (event.type === 'run.failed' && event.retryInMs === null) break
    }
    expect(last).to.deep.include({ type: 'run.failed', failure })
  })

  it('is tried anew by complete(), which lifts the failure', async () => {
    const { chat } = await givenUp([text('Danube')])
    expect((await chat.complete())?.content).to.equal('Danube')
    expect(await chat.failure()).to.equal(null)
  })

  it('is tried anew by enqueue(), with all its tries', async () => {
    const { mill, chat } = await givenUp([down(), text('Danube')])
    await mill.jobs.complete.enqueue(chat.id)
    expect(await chat.failure()).to.equal(null)
    await putOff(mill, chat, 3)
    await makeDue(mill, chat)
    await until('the answer', () => chat.isComplete())
    expect(bench.model.requests).to.have.length(4)
  })

  it('is left behind by a new message, which lifts the failure', async () => {
    const { chat } = await givenUp([text('Rhine')])
    await chat.askLater('Another one')
    expect(await chat.failure()).to.equal(null)
    expect((await chat.complete())?.content).to.equal('Rhine')
    expect(bench.model.requests.at(-1)?.messages.map(({ content }) => content)).to.deep.equal([
      'Name a river',
      'Another one',
    ])
  })

  it('is given up at once where no retry can help', async () => {
    const { mill, chat } = await working([httpError(401, 'bad key')], 5)
    await until('the turn is given up', () => chat.failure())
    expect(await chat.failure()).to.deep.include({ code: 'provider.authentication' })
    expect((await chatRow(mill, chat)).wantedAt).to.equal(null)
    expect(bench.model.requests).to.have.length(1)
  })

  it('counts its tries anew once a message was committed', async () => {
    const { mill, chat } = await working([down(), toolCalls([call('read')]), down(), text('Danube')], 2)
    await putOff(mill, chat, 1)
    await makeDue(mill, chat)
    expect(await putOff(mill, chat, 3)).to.be.within(1, 5_000)
    expect(await chat.failure()).to.equal(null)
    await makeDue(mill, chat)
    await until('the answer', () => chat.isComplete())
  })
})
