import { expect } from 'chai'
import { resolveSettings } from '../../config/settings.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/clerk.ts'
import { useDesk } from './support/desk.ts'
import { useJobs } from './support/jobs.ts'
import { expectWhole, isAtRest, requestOf, rowOf, transcriptOf, usagesOf } from './support/rows.ts'
import { type DeathAt, kill, statements, useWorkers } from './support/workers.ts'

const LIMIT_MS = 90_000
const WAIT_MS = 40_000

onEachDatabase('A worker killed during a model call', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()
  const jobs = useJobs(() => bench.redis.url)
  const worker = (options: { claimTtlMs?: number } = {}) =>
    workers.start({ app: 'clerk', options: { ...bench.options(), ...options } })

  it('leaves nothing but its usage entry, and another one gives the one answer (S1, B01)', async () => {
    const held = gate(text('Rhine'))
    const model = await bench.script([held, text('Danube')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create()
    const first = await worker()
    await chat.askLater('Name a river', { enqueue: true })
    await held.reached
    await kill(first)
    expect(await transcriptOf(chat)).to.eql(['U Name a river'])
    await worker()
    await until('the chat is answered and given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U Name a river', 'A Danube'])
    expect(model.requests.map(requestOf)).to.eql([['U Name a river'], ['U Name a river']])
    const [dead, live] = await usagesOf(mill, chat)
    expect(dead).to.include({
      status: 'failed',
      messageId: null,
      inputTokens: null,
      outputTokens: null,
      totalCost: null,
    })
    expect(live).to.include({ status: 'succeeded', messageId: (await chat.messages())[1]?.id })
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('keeps its chat until the claim lapses: no second request, then the sweeper rings (S2)', async () => {
    const held = gate(text('never sent'))
    const model = await bench.script([held, text('late')])
    const mill = await bench.connect({ agents, claimTtlMs: 8_000 })
    const chat = await mill.chats.create()
    const first = await worker({ claimTtlMs: 8_000 })
    await chat.askLater('hi', { enqueue: true })
    await held.reached
    await worker({ claimTtlMs: 8_000 })
    await kill(first)
    const latest = await chat.complete()
    expect(latest?.content).to.equal('hi')
    expect([await chat.running(), await chat.waiting()]).to.eql([true, true])
    expect(model.requests).to.have.length(1)
    // A job in its place ends as done, and the wish stays.
    const rung = await jobs().ring(chat.id)
    await until('the job has ended', async () => (await jobs().job(rung.id ?? ''))?.returnvalue === 'claimed elsewhere')
    expect((await rowOf(mill, chat)).wantedAt).to.be.instanceOf(Date)
    expect(model.requests).to.have.length(1)
    const lapses = (await rowOf(mill, chat)).claimedUntil?.getTime() ?? Number.NaN
    await until('the other worker has answered', () => chat.isComplete(), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A late'])
    expect(model.requests[1]?.startedAt).to.be.at.least(lapses)
    expect(model.requests).to.have.length(2)
  }).timeout(LIMIT_MS)

  it('is not running any more once its claim has lapsed, within 60 s, without anyone writing (S3)', async () => {
    const held = gate(text('never sent'))
    await bench.script([held, text('late')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create()
    const first = await worker()
    await chat.askLater('hi', { enqueue: true })
    await held.reached
    await kill(first)
    const before = (await rowOf(mill, chat)).get()
    await until('the claim has lapsed', async () => !(await chat.running()))
    expect((await rowOf(mill, chat)).get()).to.eql(before)
    expect(before.claimedBy).to.be.a('string')
    // The bound of a minute is that of the defaults: a claim lives no longer than this after its last renewal.
    const { claimTtlMs } = resolveSettings({}, {})
    expect(claimTtlMs).to.be.at.most(60_000)
    expect((await chat.complete())?.content).to.equal('late')
  }).timeout(LIMIT_MS)
})

onEachDatabase('A worker killed behind an answer with reasoning and a call', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()
  const desk = useDesk()

  it('leaves the reasoning to the next one, which sends it back beside the call and not as text (B26, S6)', async () => {
    const thoughts = { thinking: 'Need the rate first.' }
    const model = await bench.script([toolCalls([{ name: 'rate', arguments: {} }], thoughts), text('1.10')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    const worker = (dieAt?: DeathAt) =>
      workers.start({ app: 'clerk', options: bench.options(), desk: desk().url, ...(dieAt ? { dieAt } : {}) })
    await chat.askLater('hi', { enqueue: true })
    await (await worker([statements.startsCall])).ended
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[rate]'])
    await worker()
    await until('the chat is answered and given back', () => isAtRest(chat), WAIT_MS)
    const sent = model.requests[1]?.messages[1] as {
      reasoning_content?: string
      content?: unknown
      tool_calls?: unknown[]
    }
    expect(sent.reasoning_content).to.equal('Need the rate first.')
    expect(sent.content ?? '').to.equal('')
    expect(sent.tool_calls).to.have.length(1)
    const asking = (await chat.messages())[1]
    expect([asking?.content ?? '', asking?.thinkingText]).to.eql(['', 'Need the rate first.'])
    expect(model.requests).to.have.length(2)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)
})

onEachDatabase('A turn whose workers are killed again and again', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()

  it('is answered by the third one, once (B39)', async () => {
    const held = [gate(text('one')), gate(text('two'))] as const
    const model = await bench.script([...held, text('three')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create()
    await chat.askLater('hi', { enqueue: true })
    for (const at of held) {
      const worker = await workers.start({ app: 'clerk', options: bench.options() })
      await at.reached
      await kill(worker)
    }
    await workers.start({ app: 'clerk', options: bench.options() })
    await until('the chat is answered and given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A three'])
    expect(model.requests).to.have.length(3)
    expect((await usagesOf(mill, chat)).map(({ status }) => status)).to.eql(['failed', 'failed', 'succeeded'])
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('is given up after the set number of deaths, with a failure that can be read (B39, E124)', async () => {
    const held = [gate(text('one')), gate(text('two'))] as const
    const model = await bench.script([...held, text('three')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'mortal' })
    await chat.askLater('hi', { enqueue: true })
    for (const at of held) {
      const worker = await workers.start({ app: 'clerk', options: bench.options() })
      await at.reached
      await kill(worker)
    }
    await workers.start({ app: 'clerk', options: bench.options() })
    const failure = await until('the chat has failed', () => chat.failure(), WAIT_MS)
    expect(failure.code).to.equal('chat.quarantined')
    expect(failure.message).to.match(/^2 processes died/)
    expect(model.requests).to.have.length(2)
    expect((await rowOf(mill, chat)).wantedAt).to.equal(null)
    expect((await chat.complete())?.content).to.equal('three')
  }).timeout(LIMIT_MS)
})
