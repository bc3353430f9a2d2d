import { expect } from 'chai'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents as clerks } from './apps/clerk.ts'
import { agents } from './apps/load.ts'
import { useDesk } from './support/desk.ts'
import { useJobs } from './support/jobs.ts'
import { allAtRest, askAll, expectAnswered, loadModel, makeChats, overlapsOf, report } from './support/load.ts'
import { expectWhole, isAtRest, rowOf, transcriptOf, usagesOf } from './support/rows.ts'
import { textOf, watch } from './support/viewer.ts'
import { useWorkers } from './support/workers.ts'

const LIMIT_MS = 120_000
const WAIT_MS = 40_000

onEachDatabase('A worker that gets SIGTERM', (kind) => {
  // Far longer than any test: what is taken up again was given back, not left to lapse.
  const bench = useBench(kind, { claimTtlMs: 60_000 })
  const workers = useWorkers()
  const desk = useDesk()
  const jobs = useJobs(() => bench.redis.url)
  const worker = (shutdownGraceMs: number) =>
    workers.start({ app: 'clerk', options: { ...bench.options(), shutdownGraceMs }, desk: desk().url })

  it('during a tool that ends in time stores its result, gives the chat back, and exits with 0 (S13)', async () => {
    const model = await bench.script([toolCalls([{ name: 'tax', arguments: {} }]), text('done')])
    const mill = await bench.connect({ agents: clerks })
    const chat = await mill.chats.create({ agent: 'clerk' })
    desk().hold('tax')
    const first = await worker(60_000)
    await chat.askLater('hi', { enqueue: true })
    await desk().visit('tax')
    first.signal('SIGTERM')
    desk().release('tax')
    expect(await first.ended).to.equal(0)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[tax]', 'T(tax) succeeded'])
    const { claimedBy, wantedAt } = await rowOf(mill, chat)
    expect(claimedBy).to.equal(null)
    expect(wantedAt).to.be.instanceOf(Date)
    expect(model.requests).to.have.length(1)
    await worker(60_000)
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(desk().visits).to.have.length(1)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('during a tool that does not end aborts it, writes no result, and another one goes on at once (S13)', async () => {
    await bench.script([toolCalls([{ name: 'tax', arguments: {} }]), text('done')])
    const mill = await bench.connect({ agents: clerks })
    const chat = await mill.chats.create({ agent: 'clerk' })
    desk().hold('tax')
    const first = await worker(500)
    await chat.askLater('hi', { enqueue: true })
    await desk().visit('tax')
    first.signal('SIGTERM')
    expect(await first.ended).to.equal(0)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[tax]'])
    const { claimedBy, wantedAt } = await rowOf(mill, chat)
    expect(claimedBy).to.equal(null)
    expect(wantedAt).to.be.instanceOf(Date)
    desk().release('tax')
    await worker(500)
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[tax]', 'T(tax) succeeded', 'A done'])
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('near the end of an answer finishes it, takes nothing new, and exits with 0 (B46)', async () => {
    const held = gate(text('whole'))
    const model = await bench.script([held, text('second')])
    const mill = await bench.connect()
    const [chat, next] = [await mill.chats.create(), await mill.chats.create()]
    const first = await worker(60_000)
    await chat.askLater('hi', { enqueue: true })
    await held.reached
    first.signal('SIGTERM')
    await until('it takes no more jobs', async () => {
      const job = await jobs().ring('00000000-0000-7000-8000-000000000000')
      return (await job.getState()) === 'waiting'
    })
    await next.askLater('hi', { enqueue: true })
    held.release()
    expect(await first.ended).to.equal(0)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A whole'])
    expect(await transcriptOf(next)).to.eql(['U hi'])
    expect(model.requests).to.have.length(1)
    await worker(60_000)
    await until('the other chat is given back', () => isAtRest(next), WAIT_MS)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('far from the end of an answer aborts it, and another one starts anew within seconds (B46)', async () => {
    const held = gate(text('half of it'))
    const model = await bench.script([held, text('all of it')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const viewer = watch(chat)
    const first = await worker(1_000)
    await chat.askLater('hi', { enqueue: true })
    const asked = await held.reached
    await held.step()
    await held.step()
    await until('something was shown', () => viewer.events.some(({ type }) => type === 'text.delta'))
    await worker(1_000)
    first.signal('SIGTERM')
    expect(await first.ended).to.equal(0)
    const left = performance.now()
    expect(await model.waitForEnd(asked)).to.equal('aborted')
    await model.waitForRequests(2)
    expect(performance.now() - left).to.be.lessThan(10_000)
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A all of it'])
    expect((await usagesOf(mill, chat)).map(({ status }) => status)).to.eql(['cancelled', 'succeeded'])
    await until('the viewer saw the end', () => viewer.events.some(({ type }) => type === 'run.finished'))
    await viewer.end()
    // Nothing of the first attempt comes behind the start of the second run.
    const runs = viewer.events.flatMap(({ type, claimToken }) => (type === 'run.started' ? [claimToken] : []))
    expect(runs).to.have.length(2)
    expect(textOf(viewer.events, runs[0])).to.not.equal('')
    expect(textOf(viewer.events, runs[1])).to.equal('all of it')
    const second = viewer.events.findIndex((event) => event.type === 'run.started' && event.claimToken === runs[1])
    expect(viewer.events.slice(second).every(({ claimToken }) => claimToken === runs[1])).to.equal(true)
    // The viewer is told to drop what the first attempt showed.
    const shown = viewer.events.find((event) => event.type === 'text.delta')
    const restarts = viewer.events.filter((event) => event.type === 'attempt.restarted')
    expect(restarts.map(({ replaces }) => replaces)).to.eql([shown?.messageId])
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)
})

onEachDatabase('A worker that is closed in the middle of many turns', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 60_000, shutdownGraceMs: 20_000 })
  const workers = useWorkers()

  it('exits within its grace, and no turn has failed or was doubled', async () => {
    const model = await bench.script(loadModel({ rounds: 2, latencyMs: 150 }))
    const mill = await bench.connect({ agents })
    const chats = await makeChats(mill, 40)
    const start = () =>
      workers.start({ app: 'load', options: { ...bench.options(), counts: { complete: 20, runTools: 0 } } })
    const [first] = await Promise.all([start(), start()])
    await askAll(chats, 0, 40)
    await model.waitForRequests(30)
    const begun = performance.now()
    first.signal('SIGTERM')
    expect(await first.ended).to.equal(0)
    const took = performance.now() - begun
    expect(took).to.be.lessThan(20_000)
    await allAtRest(chats, 90_000)
    report(`closed in ${took.toFixed(0)} ms`)
    expect(model.requests).to.have.length(3 * 40)
    expect(overlapsOf(model.requests)).to.eql([])
    await expectAnswered(mill, chats, 2)
  }).timeout(LIMIT_MS)
})
