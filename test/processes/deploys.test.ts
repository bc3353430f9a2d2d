import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import type { Chat, Threadmill } from '../../src/index.ts'
import { type LoggedRequest, type ReplyFunction, text, toolCalls } from '../../src/testing/index.ts'
import { busyness } from '../support/busy-machine.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents as newAgents, tools as newTools } from './apps/release-new.ts'
import { useDesk } from './support/desk.ts'
import { useJobs } from './support/jobs.ts'
import { allAtRest, questionOf, report } from './support/load.ts'
import { expectWhole, rowOf } from './support/rows.ts'
import { textOf, type Viewer, watch } from './support/viewer.ts'
import { useWorkers, type WorkerProcess } from './support/workers.ts'

const LIMIT_MS = 240_000
/** No chat of an agent that some worker has waits longer for its first request, in ms. */
const WAIT_MS = 20_000

interface Plan {
  readonly workers: number
  /** Workers that are replaced: all of them, and more. */
  readonly replaced: number
  readonly everyMs: number
  /** Chats asked for each worker that is replaced. */
  readonly asked: number
}

const isFull = process.env.THREADMILL_FULL === '1'
/** A minute of it. */
const long: Plan = { workers: 4, replaced: 12, everyMs: 5_000, asked: 12 }
const short: Plan = { workers: 4, replaced: 5, everyMs: 2_500, asked: 8 }
/** One file, one writer: fewer processes. */
const small: Plan = { workers: 2, replaced: 3, everyMs: 2_500, asked: 8 }

/** Calls what it is offered: first a look-up, then, of every third chat, what needs a decision; and then answers. */
const model: ReplyFunction = (request) => {
  const offered = offeredTo(request)
  const rounds = request.messages.filter(({ role }) => role === 'tool').length
  const number = Number(questionOf(request).split(' ')[1])
  const call = (...names: string[]) => {
    const name = names.find((one) => offered.includes(one))
    return toolCalls([{ name: name ?? names[0] ?? '', arguments: {} }], { delayMs: 100 })
  }
  if (rounds === 0) return call('find', 'look_up')
  if (rounds === 1 && asksForMoney(request, number)) return call('pay_back', 'refund')
  return text(answerTo(request), { delayMs: 50, chunks: 5, chunkDelayMs: 20 })
}

const asksForMoney = (request: LoggedRequest, number: number) =>
  number % 3 === 0 && offeredTo(request).some((name) => name === 'pay_back' || name === 'refund')
const answerTo = (request: LoggedRequest) => `This is the answer to ${questionOf(request)}`

function offeredTo(request: LoggedRequest): string[] {
  const { tools = [] } = request.body as { tools?: { function: { name: string } }[] }
  return tools.map(({ function: { name } }) => name)
}

onEachDatabase('A rolling deploy', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 60_000, sweepEveryMs: 1_000, shutdownGraceMs: 25_000 })
  const workers = useWorkers()
  const desk = useDesk()
  const jobs = useJobs(() => bench.redis.url)
  const start = (app: string) =>
    workers.start({
      app,
      options: { ...bench.options(), counts: { complete: 8, runTools: 0 } },
      desk: desk().url,
    })

  const plan = kind.name === 'SQLite' ? small : isFull ? long : short

  it('of changed instructions and tools and a new agent fails, loses and doubles no turn (E145)', async () => {
    const server = await bench.script(model)
    const mill = await bench.connect({ agents: newAgents, tools: newTools })
    const asked = new Map<Chat, number>()
    const viewers: Viewer[] = []
    const ask = async (agent: string) => {
      const chat = await mill.chats.create({ agent })
      if (asked.size % 6 === 0) viewers.push(watch(chat))
      asked.set(chat, Date.now())
      await chat.askLater(`chat ${asked.size - 1}`, { enqueue: true })
    }
    const deciding = decide(mill)
    const pool: WorkerProcess[] = await Promise.all(Array.from({ length: plan.workers }, () => start('release-old')))
    for (let replaced = 0; replaced < plan.replaced; replaced++) {
      const begun = performance.now()
      pool.push(await start('release-new'))
      const oldest = pool.shift()
      oldest?.signal('SIGTERM')
      for (let at = 0; at < plan.asked; at++) await ask(at % 4 === 3 ? 'advisor' : 'shop')
      expect(await oldest?.ended, 'a worker that was told to end').to.equal(0)
      await until('the next is due', () => performance.now() - begun > plan.everyMs, 60_000)
    }
    const chats = [...asked.keys()]
    await allAtRest(chats, 90_000)
    await deciding.stop()

    const first = new Map<string, number>()
    for (const request of server.requests) {
      const question = questionOf(request)
      if (!first.has(question)) first.set(question, request.startedAt)
    }
    const waits = chats.map((chat, at) => (first.get(`chat ${at}`) ?? Number.NaN) - (asked.get(chat) ?? Number.NaN))
    const visits = desk().visits
    report(
      `${chats.length} turns and ${visits.length} tools, ${plan.replaced} workers replaced; ` +
        `a chat waited ${Math.max(...waits)} ms at most for its first request`,
    )
    expect(Math.max(...waits)).to.be.lessThan(WAIT_MS * busyness())
    expect(await jobs().failed()).to.equal(0)
    let rounds = 0
    for (const [at, chat] of chats.entries()) {
      const messages = await chat.messages()
      const calls = messages.flatMap(({ toolCalls }) => toolCalls)
      rounds += calls.length
      expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).to.eql([`chat ${at}`])
      expect(messages.at(-1)?.content).to.equal(`This is the answer to chat ${at}`)
      expect(messages.filter(({ role }) => role === 'tool').map(({ outcome }) => outcome)).to.eql(
        calls.map(() => 'succeeded'),
      )
      expect(visits.filter(({ chatId }) => chatId === chat.id).map(({ errand }) => errand)).to.eql(
        calls.map(({ name }) => name),
      )
      await expectWhole(mill, chat)
    }
    expect(new Set(visits.map(({ key }) => key)).size, 'each call ran once').to.equal(visits.length)
    // A request for each round and for each answer: none was aborted, none was sent twice.
    expect(server.requests).to.have.length(rounds + chats.length)
    const names = new Set(visits.map(({ errand }) => errand))
    expect([...names]).to.include.members(['look_up', 'find', 'pay_back'])
    for (const viewer of viewers) {
      await until('the viewer saw the end', () => viewer.events.some(({ type }) => type === 'run.finished'))
      await viewer.end()
      const shown = [...new Set(viewer.events.map(({ claimToken }) => claimToken))].map((run) =>
        textOf(viewer.events, run),
      )
      expect(shown.filter((words) => words !== '')).to.have.length(1)
      expect(shown.join('')).to.match(/^This is the answer to chat \d+$/)
    }
  }).timeout(LIMIT_MS)

  it('leaves a chat whose agent or tool a worker lacks to one that has it, as it was (E146)', async () => {
    const server = await bench.script(model)
    const mill = await bench.connect({ agents: newAgents, tools: newTools })
    const [money, advised] = [await mill.chats.create({ agent: 'shop' }), await mill.chats.create({ agent: 'advisor' })]
    const old = await start('release-old')
    await money.askLater('chat 0', { enqueue: true })
    await until('the refund waits for a decision', () => money.awaitingApproval(), 30_000)
    old.signal('SIGTERM')
    expect(await old.ended).to.equal(0)

    const hasty = await start('release-hasty')
    for (const call of await money.pendingApprovals()) await money.approve(call, { wake: false })
    const before = await money.messages()
    const sent = server.requests.length
    await mill.jobs.complete.enqueue(money.id)
    await advised.askLater('chat 1', { enqueue: true })
    const putOff = async (chat: Chat) => (await rowOf(mill, chat)).putOff > 0
    await until('both are put off', async () => (await putOff(money)) && (await putOff(advised)), 30_000)
    expect(await money.messages()).to.eql(before)
    expect((await rowOf(mill, money)).failure).to.equal(null)
    expect(server.requests).to.have.length(sent)

    const begun = performance.now()
    await start('release-new')
    await allAtRest([money, advised], 60_000)
    report(`done ${(performance.now() - begun).toFixed(0)} ms after a worker that has both was started`)
    const errands = (chat: Chat) =>
      desk()
        .visits.filter(({ chatId }) => chatId === chat.id)
        .map(({ errand }) => errand)
    expect(errands(money)).to.eql(['look_up', 'refund'])
    expect(errands(advised)).to.eql(['find'])
    expect(await jobs().failed()).to.equal(0)
    for (const chat of [money, advised]) await expectWhole(mill, chat)
    hasty.signal('SIGTERM')
    expect(await hasty.ended).to.equal(0)
  }).timeout(LIMIT_MS)
})

/** Approves whatever waits for a decision, until it is stopped. */
function decide(mill: Threadmill): { stop(): Promise<void> } {
  let stopped = false
  const deciding = (async () => {
    while (!stopped) {
      for (const { chatId, toolCall } of (await mill.approvals.list()).approvals) {
        await (await mill.chats.find(chatId)).approve(toolCall)
      }
      await wait(100)
    }
  })()
  return {
    stop() {
      stopped = true
      return deciding
    },
  }
}
