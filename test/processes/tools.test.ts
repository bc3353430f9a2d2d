import { expect } from 'chai'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/clerk.ts'
import { useDesk } from './support/desk.ts'
import { expectWhole, isAtRest, requestOf, rowOf, transcriptOf } from './support/rows.ts'
import { type DeathAt, kill, statements, useWorkers } from './support/workers.ts'

const LIMIT_MS = 120_000
const WAIT_MS = 40_000
const { startsCall, linksResult, insertsMessage, fences, commits, any } = statements

const calls = (...names: string[]) => toolCalls(names.map((name) => ({ name, id: `call_${name}`, arguments: {} })))

onEachDatabase('A worker killed at a tool', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()
  const desk = useDesk()
  const worker = (dieAt?: DeathAt) =>
    workers.start({
      app: 'clerk',
      options: { ...bench.options(), counts: { complete: 2, runTools: 2 } },
      desk: desk().url,
      ...(dieAt === undefined ? {} : { dieAt }),
    })
  const errands = () => desk().visits.map(({ errand }) => errand)

  it('leaves the other calls of its round to the next one, which repeats none that was answered (S4)', async () => {
    const model = await bench.script([calls('rate', 'tax', 'fee'), text('done')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    await chat.askLater('hi', { enqueue: true })
    await (await worker([startsCall, linksResult, commits, startsCall])).ended
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[rate, tax, fee]', 'T(rate) succeeded'])
    expect(errands()).to.eql(['rate'])
    await worker()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(errands()).to.eql(['rate', 'tax', 'fee'])
    expect(model.requests).to.have.length(2)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('between two calls of a queued round loses neither call, and the chat is sent whole (B02)', async () => {
    const model = await bench.script([calls('rate', 'tax'), text('done')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'queued clerk' })
    await chat.askLater('hi', { enqueue: true })
    await (await worker([startsCall, linksResult, commits, startsCall])).ended
    const before = (await chat.messages()).map(({ id }) => id)
    await worker()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(errands()).to.eql(['rate', 'tax'])
    expect(model.requests).to.have.length(2)
    const [rate, tax] = model.requests[1]?.messages[1]?.tool_calls?.map(({ id }) => id) ?? []
    expect(requestOf(model.requests[1])).to.eql(['U hi', `A[${rate}, ${tax}]`, `T(${rate})`, `T(${tax})`])
    expect((await chat.messages()).slice(0, 3).map(({ id }) => id)).to.eql(before)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('right after the answer was stored leaves its calls to be run, and the model is not asked first (S6)', async () => {
    const model = await bench.script([calls('tax'), text('done')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    await chat.askLater('hi', { enqueue: true })
    await (await worker([startsCall])).ended
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[tax]'])
    expect(errands()).to.eql([])
    desk().hold('tax')
    await worker()
    await desk().visit('tax')
    expect(model.requests).to.have.length(1)
    desk().release('tax')
    await until('the chat is answered', () => chat.isComplete(), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[tax]', 'T(tax) succeeded', 'A done'])
    expect(model.requests).to.have.length(2)
    expect(errands()).to.eql(['tax'])
  }).timeout(LIMIT_MS)

  it('anywhere around the storing of a result never leaves a result without its link (S7)', async () => {
    await bench.script([calls('tax'), text('done')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    await chat.askLater('hi', { enqueue: true })
    const begun = [startsCall, commits]
    const deaths: { dieAt: DeathAt; results: number }[] = [
      { dieAt: [...begun, fences], results: 0 },
      { dieAt: [...begun, insertsMessage], results: 0 },
      { dieAt: [...begun, linksResult], results: 0 },
      { dieAt: [...begun, linksResult, commits], results: 0 },
      { dieAt: [...begun, linksResult, commits, any], results: 1 },
    ]
    for (const { dieAt, results } of deaths) {
      expect(await (await worker(dieAt)).ended).to.equal(null)
      const messages = await chat.messages()
      const stored = messages.filter(({ role }) => role === 'tool').map(({ id }) => id)
      const linked = messages.flatMap(({ toolCalls }) => toolCalls.flatMap(({ resultId }) => resultId ?? []))
      expect(stored).to.have.length(results)
      expect(linked).to.eql(stored)
    }
    await worker()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[tax]', 'T(tax) succeeded', 'A done'])
    expect(errands()).to.have.length(5)
    expect(new Set(desk().visits.map(({ key }) => key)).size).to.equal(1)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('before a newer message came leaves its open call to be closed, not run (S8)', async () => {
    const done = gate(text('done'))
    const model = await bench.script([calls('rate', 'tax'), done])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    await chat.askLater('hi', { enqueue: true })
    await (await worker([startsCall, linksResult, commits, startsCall])).ended
    await until('the claim has lapsed', async () => !(await chat.running()))
    await chat.addMessage({ role: 'user', content: 'never mind' })
    await worker()
    await done.reached
    expect(await transcriptOf(chat), 'stored before the request').to.include('T(tax) interrupted')
    done.release()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(errands()).to.eql(['rate'])
    const [rate, tax] = model.requests[1]?.messages[1]?.tool_calls?.map(({ id }) => id) ?? []
    expect(requestOf(model.requests[1])).to.eql([
      'U hi',
      `A[${rate}, ${tax}]`,
      `T(${rate})`,
      `T(${tax})`,
      'U never mind',
    ])
    expect(await transcriptOf(chat)).to.have.members([
      'U hi',
      'A[rate, tax]',
      'T(rate) succeeded',
      'T(tax) interrupted',
      'U never mind',
      'A done',
    ])
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('leaves the call running until the claim lapses, and not a moment longer (S14)', async () => {
    await bench.script([calls('tax'), text('done')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    desk().hold('tax')
    await chat.askLater('hi', { enqueue: true })
    const first = await worker()
    await desk().visit('tax')
    const call = async () => {
      const row = await mill.models.ToolCall.findOne({ where: { chatId: chat.id } })
      if (row === null) throw new Error('The call is gone')
      return row
    }
    await kill(first)
    expect((await call()).running()).to.equal(true)
    await until('the call is not running', async () => !(await call()).running())
    const lapsed = (await call()).claimedUntil?.getTime() ?? Number.NaN
    expect(Date.now()).to.be.at.least(lapsed)
    expect((await call()).startedAt).to.be.instanceOf(Date)
    await worker()
    const again = await desk().visit('tax', 2)
    expect((await call()).claimedBy).to.equal((await rowOf(mill, chat)).claimedBy)
    again.answer('7 %')
    await until('the chat is answered', () => chat.isComplete(), WAIT_MS)
    expect((await call()).running()).to.equal(false)
  }).timeout(LIMIT_MS)

  it('is followed by another that finishes the turn without any caller, with two model calls in all', async () => {
    const model = await bench.script([calls('rate'), text('done')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    desk().hold('rate')
    const both = [await worker(), await worker()]
    await chat.askLater('hi', { enqueue: true })
    const { pid } = await desk().visit('rate')
    await Promise.all(both.filter((process) => process.pid === pid).map(kill))
    const again = await desk().visit('rate', 2)
    expect(again.pid).to.not.equal(pid)
    again.answer('1.1')
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[rate]', 'T(rate) succeeded', 'A done'])
    expect(model.requests).to.have.length(2)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)
})

onEachDatabase('A worker killed after its tool has charged a card', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()
  const desk = useDesk()
  const worker = () => workers.start({ app: 'clerk', options: bench.options(), desk: desk().url })
  const pay = () => toolCalls([{ name: 'charge', arguments: { eur: 5 } }])
  /** What a payment server that de-duplicates by key has booked. */
  const booked = () =>
    new Set(
      desk()
        .of('pay')
        .map(({ key }) => key),
    ).size

  it('is followed by one that charges again under the same key, so that one charge is booked (S5, B80)', async () => {
    await bench.script([pay(), text('paid')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'cashier' })
    desk().hold('paid')
    await chat.askLater('charge 5', { enqueue: true })
    const first = await worker()
    await desk().visit('paid')
    await kill(first)
    desk().release('paid')
    await worker()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(desk().of('pay')).to.have.length(2)
    expect(booked()).to.equal(1)
    const [call] = (await chat.messages())[1]?.toolCalls ?? []
    expect(desk().of('pay')[0]?.key).to.equal(call?.id)
    expect(await transcriptOf(chat)).to.eql(['U charge 5', 'A[charge]', 'T(charge) succeeded', 'A paid'])
  }).timeout(LIMIT_MS)

  it('is followed by one that does not charge when the tool says so; the outcome is told as unknown (B80)', async () => {
    const model = await bench.script([pay(), text('I do not know')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'careful cashier' })
    desk().hold('paid')
    await chat.askLater('charge 5', { enqueue: true })
    const first = await worker()
    await desk().visit('paid')
    await kill(first)
    await worker()
    await until('the chat is answered', () => chat.isComplete(), WAIT_MS)
    expect(desk().of('pay')).to.have.length(1)
    expect(await transcriptOf(chat)).to.eql(['U charge 5', 'A[charge]', 'T(charge) interrupted', 'A I do not know'])
    expect((await chat.messages())[2]?.content).to.match(/unknown/)
    expect(model.requests).to.have.length(2)
  }).timeout(LIMIT_MS)
})
