import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import type { Chat } from '../../../src/index.ts'
import { gate, text, toolCalls } from '../../../src/testing/index.ts'
import { newPage } from '../../support/page.ts'
import { until } from '../../support/until.ts'
import { overlapsOf } from '../support/load.ts'
import { isAtRest, requestOf, rowOf, transcriptOf, usagesOf } from '../support/rows.ts'
import { kill, statements } from '../support/workers.ts'
import { type Case, playUnderFaults } from './support/cases.ts'
import { diesAt, type Fault, freezesAt, frozenNow } from './support/faults.ts'
import { expectRest, type Ground, WAIT_MS } from './support/ground.ts'

const { linksResult, fences, leavesQueue, insertsMessage, notesDelivery, begins, commits, any, settles } = statements

const together: Case = {
  bug: 'B56',
  right: 'two messages that are posted together are each answered, in order, by one request at a time',
  under: ['flush'],
  atLength: ['away', 'sessions', 'slow', 'killed', 'frozen'],
  async play(ground, strike, fault) {
    const model = await ground.model(({ messages }) => text(`answer to ${messages.at(-1)?.content}`, { delayMs: 500 }))
    const chat = await ground.chat()
    const here = await (await ground.bench.connect()).chats.find(chat.id)
    await ground.startRunner()
    if (!fault.losesClaim) await ground.startSpare()
    const asked = chat.askLater('m1', { enqueue: true })
    await wait(10)
    await Promise.all([asked, here.askLater('m2', { enqueue: true })])
    await model.waitForRequests(1)
    const end = await strike()
    await end()
    await expectRest(ground, chat)
    const users = model.requests.map(({ messages }) => messages.flatMap((m) => (m.role === 'user' ? [m.content] : [])))
    const said = await transcriptOf(chat)
    // As they were stored: of two that are on their way at once the second can come first.
    const [first, second] = said.flatMap((line) => (line.startsWith('U ') ? [line.slice(2)] : []))
    expect([first, second]).to.have.members(['m1', 'm2'])
    expect(users.at(-1)).to.eql([first, second])
    // A process that stands still has its request open while its successor asks.
    if (fault.splits !== true) expect(overlapsOf(model.requests)).to.eql([])
    expect(said.at(-1)).to.equal(`A answer to ${second}`)
    // No answer is of a request that lacked a message before it.
    const unheard = said.filter((line, at) => line === `A answer to ${first}` && said.indexOf(`U ${second}`) < at)
    expect(unheard).to.eql([])
    if (!fault.losesClaim) expect(model.requests).to.have.length(said.filter((line) => line.startsWith('A')).length)
  },
}

/** Up to the moment at which `s2` has been read to join the turn, and is not in the transcript yet. */
async function steered(ground: Ground, fault: Fault) {
  const model = await ground.model(({ messages }) =>
    messages.at(-1)?.content === 'question'
      ? toolCalls([{ name: 'rate', arguments: {} }])
      : text(`answer to ${messages.at(-1)?.content}`),
  )
  const chat = await ground.chat('clerk')
  ground.desk.hold('rate')
  // Not inside the transaction: on SQLite nobody else could write then.
  await ground.startRunner(fault.end ?? { freezeAt: [linksResult, commits, begins] })
  await chat.askLater('question', { enqueue: true })
  await ground.desk.visit('rate')
  const queued = await chat.queue('s2')
  ground.desk.release('rate')
  return { model, chat, queued }
}

async function expectSteered(ground: Ground, { model, chat, queued }: Awaited<ReturnType<typeof steered>>) {
  await expectRest(ground, chat)
  const all = ['U question', 'A[rate]', 'T(rate) succeeded', 'U s2', 'A answer to s2']
  expect(await transcriptOf(chat)).to.eql(all)
  expect(await chat.queuedMessages()).to.eql([])
  expect((await chat.receipt(queued))?.status).to.equal('delivered')
  expect(ground.desk.of('rate')).to.have.length(1)
  expect(model.requests).to.have.length(2)
}

const cancelledSteering: Case = {
  bug: 'B58',
  right: 'a steering message that was read when the turn is cancelled is there once, and answered',
  under: ['flush'],
  atLength: ['sessions', 'killed', 'frozen'],
  async play(ground, strike, fault) {
    const turn = await steered(ground, fault)
    await frozenNow(ground)
    await turn.chat.cancel()
    const end = await strike()
    ground.runner.signal('SIGCONT')
    await end()
    await expectSteered(ground, turn)
  },
}

const steering = [linksResult, fences] as const
const killedSteering: Case = {
  bug: 'B58',
  right: 'a steering message that was read is there once, and answered',
  under: [
    diesAt('before it is stored', [...steering, insertsMessage]),
    diesAt('once it has been committed', [...steering, commits, any]),
  ],
  atLength: [
    diesAt('before its receipt is written', [...steering, notesDelivery]),
    diesAt('before it is committed', [...steering, commits]),
    freezesAt('before it leaves the queue', [...steering, leavesQueue]),
  ],
  async play(ground, strike, fault) {
    const turn = await steered(ground, fault)
    const end = await strike()
    // Whatever Redis knew of it goes as well.
    await ground.jobs.redis.flushall()
    await end()
    await expectSteered(ground, turn)
  },
}

const eight = 'one two three four five six seven eight'

/** The text that a page shows that is loaded now and stays until the turn's end. */
async function load(chat: Chat): Promise<string> {
  const page = newPage()
  for await (const event of chat.events({ after: '0' })) {
    page.show(event)
    if (event.type === 'run.cancelled') break
  }
  return [...page.texts.values()].join('')
}

const cancelledAnswer: Case = {
  bug: 'B60',
  right:
    'a cancel ends its own turn within seconds, keeps what was shown and none of the late chunks, and the next message is answered in full',
  under: ['sessions'],
  atLength: ['disconnected', 'away', 'slow'],
  async play(ground, strike, fault) {
    const held = gate(text(eight, { chunks: 'words' }))
    const model = await ground.model((_request, at) => (at === 0 ? held : text('All of the next answer.')))
    const chat = await ground.chat()
    await ground.startRunner()
    await chat.askLater('Count', { enqueue: true })
    await held.reached
    let shown = ''
    const reading = (async () => {
      for await (const event of chat.events({ after: '0' })) {
        if (event.type === 'text.delta') shown += event.text
        if (shown.trim() === 'one two three') return
      }
    })()
    for (const _ of [1, 2, 3]) await held.step()
    await reading
    const end = await strike()
    const begun = performance.now()
    await chat.cancel()
    await until('the turn is settled', async () => (await rowOf(ground.mill, chat)).cancelTurn === null, WAIT_MS)
    expect(await chat.running()).to.equal(false)
    // Two seconds by the report; the look for cancels may have met the fault, and the machine is busy.
    expect(performance.now() - begun).to.be.lessThan(4_000)
    await end()
    held.release()
    const settled = await rowOf(ground.mill, chat)
    await chat.cancel()
    const again = await rowOf(ground.mill, chat)
    expect([again.cancelTurn, again.wantedSeq]).to.eql([null, settled.wantedSeq])
    expect(await transcriptOf(chat)).to.eql(['U Count', `A ${shown}`])
    // What Redis kept of the stream is gone with it.
    if (fault.name !== 'Redis is away') expect(await load(chat)).to.equal(shown)
    await chat.askLater('next', { enqueue: true })
    await until('the next message is answered', () => isAtRest(chat), WAIT_MS)
    expect((await transcriptOf(chat)).slice(2)).to.eql(['U next', 'A All of the next answer.'])
    expect((await chat.messages()).at(-1)?.finishReason).to.equal('stop')
    expect(model.requests).to.have.length(2)
    expect((await usagesOf(ground.mill, chat)).map(({ status }) => status)).to.eql(['cancelled', 'succeeded'])
  },
}

const unseenCancel: Case = {
  bug: 'B60',
  right: 'a cancel that a dead worker never saw ends its own turn, and the next message is answered in full',
  under: ['away'],
  atLength: ['flush'],
  async play(ground, strike) {
    const held = gate(text(eight, { chunks: 'words' }))
    const model = await ground.model((_request, at) => (at === 0 ? held : text('All of the next answer.')))
    const chat = await ground.chat()
    const first = await ground.startRunner()
    await chat.askLater('Count', { enqueue: true })
    await held.reached
    for (const _ of [1, 2, 3]) await held.step()
    first.signal('SIGSTOP')
    await chat.cancel()
    await kill(first)
    const end = await strike()
    await chat.askLater('next', { enqueue: true })
    await end()
    await ground.startRunner()
    await expectRest(ground, chat)
    expect(await transcriptOf(chat)).to.eql(['U Count', 'U next', 'A All of the next answer.'])
    expect(model.requests).to.have.length(2)
    expect((await rowOf(ground.mill, chat)).cancelTurn).to.equal(null)
  },
}

const halfSettled: Case = {
  bug: 'B60',
  right: 'a cancel that is being settled ends its own turn once, and the next message is answered in full',
  under: [diesAt('before it keeps the text that was shown', [settles, insertsMessage])],
  atLength: [
    diesAt('before it commits the end of the turn', [settles, commits]),
    freezesAt('before the end of the turn', [settles]),
  ],
  async play(ground, strike, fault) {
    const held = gate(text(eight, { chunks: 'words' }))
    const model = await ground.model((_request, at) => (at === 0 ? held : text('All of the next answer.')))
    const chat = await ground.chat()
    await ground.startRunner(fault.end)
    await chat.askLater('Count', { enqueue: true })
    await held.reached
    for (const _ of [1, 2, 3]) await held.step()
    await chat.cancel()
    const end = await strike()
    await end()
    held.release()
    await until('the turn is settled', async () => (await rowOf(ground.mill, chat)).cancelTurn === null, WAIT_MS)
    await chat.askLater('next', { enqueue: true })
    await until('the next message is answered', () => isAtRest(chat), WAIT_MS)
    const [question, ...rest] = await transcriptOf(chat)
    expect(question).to.equal('U Count')
    expect(rest.slice(-2)).to.eql(['U next', 'A All of the next answer.'])
    // The text is its worker's alone until it is stored: either all that was shown is kept, or the worker died with it.
    for (const kept of rest.slice(0, -2)) expect(kept.trim()).to.equal('A one two three')
    expect(rest.length).to.be.at.most(3)
    expect(model.requests.map((request) => requestOf(request).at(-1))).to.eql(['U Count', 'U next'])
  },
}

const idleCancel: Case = {
  bug: 'B60',
  right: 'a cancel when nothing runs does nothing to the next message',
  under: ['away'],
  atLength: ['sessions'],
  async play(ground, strike) {
    const model = await ground.model(({ messages }) => text(`answer to ${messages.at(-1)?.content}`))
    const chat = await ground.chat()
    await ground.startRunner()
    await chat.askLater('first', { enqueue: true })
    await expectRest(ground, chat)
    const before = await rowOf(ground.mill, chat)
    const end = await strike()
    await chat.cancel()
    expect((await rowOf(ground.mill, chat)).get()).to.eql(before.get())
    await end()
    await chat.askLater('next', { enqueue: true })
    await expectRest(ground, chat)
    expect(await transcriptOf(chat)).to.eql(['U first', 'A answer to first', 'U next', 'A answer to next'])
    expect(model.requests).to.have.length(2)
  },
}

playUnderFaults('A message or a cancel', [
  together,
  cancelledSteering,
  killedSteering,
  cancelledAnswer,
  unseenCancel,
  halfSettled,
  idleCancel,
])
