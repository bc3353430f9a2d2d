import { expect } from 'chai'
import { createConnection } from 'mysql2/promise'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/clerk.ts'
import { useDesk } from './support/desk.ts'
import { useJobs } from './support/jobs.ts'
import { expectLate, expectWhole, isAtRest, rowOf, transcriptOf, untilLateClosed, usagesOf } from './support/rows.ts'
import { kill, useWorkers } from './support/workers.ts'

const LIMIT_MS = 120_000
const WAIT_MS = 40_000

onEachDatabase('A worker frozen past its claim', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()
  const desk = useDesk()
  const jobs = useJobs(() => bench.redis.url)
  const worker = () => workers.start({ app: 'clerk', options: bench.options(), desk: desk().url })

  it('writes nothing when it wakes: the answer is its successor’s, its own usage entry is kept (S9, B43)', async () => {
    const late = gate(text('from A'))
    const model = await bench.script([
      late,
      toolCalls([{ name: 'rate', arguments: {} }], { text: 'from B' }),
      text('from B, too'),
    ])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    desk().hold('rate')
    const frozen = await worker()
    await chat.askLater('hi', { enqueue: true })
    const asked = await late.reached
    frozen.signal('SIGSTOP')
    await worker()
    await desk().visit('rate')
    const held = await rowOf(mill, chat)
    // It wakes with the whole answer in its socket, while the other one holds the chat.
    late.release()
    expect(await model.waitForEnd(asked)).to.equal('answered')
    frozen.signal('SIGCONT')
    await untilLateClosed(mill, chat, WAIT_MS)
    await until('the frozen worker gave its job up', async () => (await jobs().active()).length === 1, WAIT_MS)
    const { claimedBy, claimToken } = await rowOf(mill, chat)
    expect({ claimedBy, claimToken }).to.eql({ claimedBy: held.claimedBy, claimToken: held.claimToken })
    expect(await chat.running()).to.equal(true)
    desk().release('rate')
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[rate]', 'T(rate) succeeded', 'A from B, too'])
    const [kept] = await usagesOf(mill, chat)
    expectLate(kept)
    expect(model.requests).to.have.length(3)
    expect(await jobs().failed()).to.equal(0)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  itOnRealRedis(
    'aborts its stream when it wakes, touches nothing of its successor, and fails no job (S10)',
    async () => {
      const late = gate(text('one two three'))
      const model = await bench.script([late, text('from B')])
      const mill = await bench.connect({ agents })
      const chat = await mill.chats.create()
      const frozen = await worker()
      await chat.askLater('hi', { enqueue: true })
      const asked = await late.reached
      await late.step()
      await late.step()
      frozen.signal('SIGSTOP')
      await worker()
      await until('the other one has answered', () => isAtRest(chat), WAIT_MS)
      const rows = await chat.messages()
      frozen.signal('SIGCONT')
      void late.step()
      expect(await model.waitForEnd(asked)).to.equal('aborted')
      await until('the jobs have ended', async () => (await jobs().active()).length === 0, WAIT_MS)
      expect(await jobs().failed()).to.equal(0)
      expect(await chat.messages()).to.eql(rows)
      expect(await transcriptOf(chat)).to.eql(['U hi', 'A from B'])
      expect(model.requests).to.have.length(2)
      await expectWhole(mill, chat)
    },
  ).timeout(LIMIT_MS)
})

onEachDatabase('A worker that holds its chat', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()
  const desk = useDesk()
  const jobs = useJobs(() => bench.redis.url)
  const worker = (options: { claimTtlMs?: number } = {}) =>
    workers.start({ app: 'clerk', options: { ...bench.options(), ...options }, desk: desk().url })

  it('is not joined by another one that gets its job, which ends and leaves the wish (S11)', async () => {
    const held = gate(text('the answer'))
    const model = await bench.script([held])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create()
    await worker()
    await chat.askLater('hi', { enqueue: true })
    await held.reached
    await worker()
    const [job] = await jobs().active()
    await jobs().redeliver()
    const ended = await until('the job was done again', async () => {
      const now = await jobs().job(job?.id ?? '')
      return now?.returnvalue === 'claimed elsewhere' ? now : null
    })
    expect(ended.failedReason).to.equal(undefined)
    expect((await rowOf(mill, chat)).wantedAt).to.be.instanceOf(Date)
    expect(await chat.running()).to.equal(true)
    held.release()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A the answer'])
    expect(model.requests).to.have.length(1)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  itOnRealRedis('goes on when Redis restarts, takes its lock again, and gives the one answer (S12)', async () => {
    const held = gate(text('the answer'))
    const model = await bench.script([held])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create()
    await Promise.all([worker(), worker()])
    await chat.askLater('hi', { enqueue: true })
    await held.reached
    const { claimedBy, claimToken } = await rowOf(mill, chat)
    await bench.redis.restart()
    const lock = `threadmill:claim:{${chat.id}}`
    await until('the lock is taken again', async () => (await jobs().redis.exists(lock)) === 1, WAIT_MS)
    const row = await rowOf(mill, chat)
    expect({ claimedBy: row.claimedBy, claimToken: row.claimToken }).to.eql({ claimedBy, claimToken })
    held.release()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A the answer'])
    expect(model.requests).to.have.length(1)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  itOnRealRedis('keeps it while a tool blocks its process for longer than the claim lives (B38)', async () => {
    const model = await bench.script([toolCalls([{ name: 'block', arguments: { ms: 6_000 } }]), text('done')])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create({ agent: 'clerk' })
    await Promise.all([worker({ claimTtlMs: 2_000 }), worker({ claimTtlMs: 2_000 })])
    await chat.askLater('hi', { enqueue: true })
    await desk().visit('block')
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[block]', 'T(block) succeeded', 'A done'])
    expect(desk().of('block')).to.have.length(1)
    expect((await rowOf(mill, chat)).claimToken).to.equal(1)
    expect(model.requests).to.have.length(2)
    expect(await jobs().failed()).to.equal(0)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('has a whole claim before it when it got the chat late, and keeps it (B41)', async () => {
    const [dead, held] = [gate(text('never sent')), gate(text('the answer'))]
    const model = await bench.script([dead, held])
    const mill = await bench.connect({ agents })
    const chat = await mill.chats.create()
    const first = await worker()
    await chat.askLater('hi', { enqueue: true })
    await dead.reached
    await worker()
    await kill(first)
    const asked = await held.reached
    const { claimedUntil, claimToken } = await rowOf(mill, chat)
    // Renewed or not: from the request on it has more than half of its time left.
    expect((claimedUntil?.getTime() ?? Number.NaN) - asked.startedAt).to.be.greaterThan(1_250)
    await until('the claim was renewed past its first end', async () => {
      const row = await rowOf(mill, chat)
      return (row.claimedUntil?.getTime() ?? 0) > (claimedUntil?.getTime() ?? Number.NaN) + 2_500
    })
    expect((await rowOf(mill, chat)).claimToken).to.equal(claimToken)
    held.release()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A the answer'])
    expect(model.requests).to.have.length(2)
  }).timeout(LIMIT_MS)
})

onEachDatabase('A worker that can’t renew the claim of one chat', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()

  it('stops that run alone: it lives on, its other chats end, and that one is answered later, once (B42)', async () => {
    const [lost, other] = [gate(text('lost')), gate(text('other'))]
    const model = await bench.script((request, at) => {
      if (request.messages[0]?.content === 'two') return other
      return at < 2 ? lost : text('later')
    })
    const mill = await bench.connect({ agents })
    const [one, two] = [await mill.chats.create(), await mill.chats.create()]
    const worker = await workers.start({ app: 'clerk', options: bench.options() })
    await one.askLater('one', { enqueue: true })
    await two.askLater('two', { enqueue: true })
    const asked = await lost.reached
    await other.reached
    const unlock = await spoilRenewal(bench.database.url, mill, one.id)
    expect(await model.waitForEnd(asked)).to.equal('aborted')
    await unlock()
    expect(await two.running()).to.equal(true)
    other.release()
    await until('both chats are given back', async () => (await isAtRest(one)) && (await isAtRest(two)), WAIT_MS)
    expect(await transcriptOf(one)).to.eql(['U one', 'A later'])
    expect(await transcriptOf(two)).to.eql(['U two', 'A other'])
    expect(model.requests).to.have.length(3)
    expect(worker.output()).to.not.match(/unhandled|Error/i)
    worker.signal('SIGTERM')
    expect(await worker.ended).to.equal(0)
    await expectWhole(mill, one)
    await expectWhole(mill, two)
  }).timeout(LIMIT_MS)
})

/** Locks the row of a chat, so that renewing it fails; SQLite has no locks of rows, so there the claim is ended. */
async function spoilRenewal(
  url: string,
  mill: Awaited<ReturnType<ReturnType<typeof useBench>['connect']>>,
  chatId: string,
): Promise<() => Promise<void>> {
  if (url.startsWith('sqlite:')) {
    await mill.models.Chat.update({ claimedUntil: new Date(Date.now() - 1) }, { where: { id: chatId } })
    return async () => {}
  }
  const connection = await createConnection(url)
  await connection.beginTransaction()
  await connection.query('SELECT id FROM threadmill_chats WHERE id = ? FOR UPDATE', [chatId])
  return async () => {
    await connection.rollback()
    await connection.end()
  }
}
