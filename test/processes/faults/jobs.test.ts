import { expect } from 'chai'
import { gate, httpError, text, toolCalls } from '../../../src/testing/index.ts'
import { until } from '../../support/until.ts'
import { questionOf } from '../support/load.ts'
import { isAtRest, rowOf, transcriptOf, usagesOf } from '../support/rows.ts'
import { kill, statements } from '../support/workers.ts'
import { type Case, playUnderFaults } from './support/cases.ts'
import { diesAt, freezesAt } from './support/faults.ts'
import { expectRest, expectWithin, TTL_MS, WAIT_MS } from './support/ground.ts'

const { releases, any } = statements
/** The bound of the report. */
const ANSWER_MS = 5_000

const keptJob: Case = {
  bug: 'B36',
  right: 'a message after a job that ended well or badly, and is kept, is taken up within 5 s',
  under: ['flush', diesAt('after its run, before its job ends', [releases, any])],
  atLength: ['away', 'disconnected', 'sessions', freezesAt('after its run, before its job ends', [releases, any])],
  async play(ground, strike, fault) {
    const model = await ground.model((request) =>
      request.messages.at(-1)?.content === 'two' ? httpError(401, 'no such key') : text('answered'),
    )
    const chat = await ground.chat()
    await ground.startRunner(fault.end)
    await chat.askLater('one', { enqueue: true })
    await until('the first is answered', () => isAtRest(chat), WAIT_MS)
    // One that dies in between leaves its job behind as one that is worked on.
    const leaves = fault.end !== undefined
    if (!leaves)
      await until(
        'its job has ended',
        async () => !(await ground.jobs.active()).some(({ data }) => data.chatId === chat.id),
        WAIT_MS,
      )
    const end = await strike()
    await chat.askLater('two', { enqueue: true })
    await end()
    const posted = Date.now()
    await until('the second has failed', () => chat.failure(), WAIT_MS)
    expectWithin('the second request', ANSWER_MS, posted, model.requests[1]?.startedAt)
    const again = Date.now()
    await chat.askLater('three', { enqueue: true })
    await expectRest(ground, chat)
    expectWithin('the third request', ANSWER_MS, again, model.requests[2]?.startedAt)
    expect(await transcriptOf(chat)).to.eql(['U one', 'A answered', 'U two', 'U three', 'A answered'])
    expect(model.requests).to.have.length(3)
  },
}

const blocked: Case = {
  bug: 'B38',
  right: 'a tool that blocks its process for longer than the claim has its effect once',
  under: ['flush'],
  atLength: ['away', 'sessions', 'frozen'],
  async play(ground, strike, fault) {
    const ms = Math.round(TTL_MS * 2.6)
    const model = await ground.model(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? text('done') : toolCalls([{ name: 'block', arguments: { ms } }]),
    )
    const chat = await ground.chat('clerk')
    await ground.startRunner()
    await chat.askLater('hi', { enqueue: true })
    await ground.desk.visit('block')
    if (!fault.losesClaim) await ground.startSpare()
    const end = await strike()
    await end()
    await expectRest(ground, chat)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A[block]', 'T(block) succeeded', 'A done'])
    expect(model.requests).to.have.length(2)
    const visits = ground.desk.of('block')
    // The payment server would see one charge: whoever runs the call again has its key.
    expect(new Set(visits.map(({ key }) => key)).size).to.equal(1)
    if (fault.losesClaim) return
    expect(visits).to.have.length(1)
    expect((await rowOf(ground.mill, chat)).claimToken).to.equal(1)
    expect(await ground.jobs.failedOf(chat.id)).to.eql([])
  },
}

const rollouts: Case = {
  bug: 'B39',
  right: 'a turn whose workers are killed twice is answered by the third one, once',
  under: ['restart'],
  atLength: ['away'],
  async play(ground, strike) {
    const held = [gate(text('one')), gate(text('two'))] as const
    const model = await ground.model((_request, at) => held[at] ?? text('three'))
    const chat = await ground.chat()
    await chat.askLater('hi', { enqueue: true })
    for (const at of held) {
      const worker = await ground.startRunner()
      await at.reached
      await kill(worker)
      const end = await strike()
      await end()
    }
    await ground.startRunner()
    await expectRest(ground, chat)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A three'])
    expect(model.requests.map(questionOf)).to.eql(['hi', 'hi', 'hi'])
    expect((await usagesOf(ground.mill, chat)).map(({ status }) => status)).to.eql(['failed', 'failed', 'succeeded'])
    expect(await ground.jobs.failedOf(chat.id)).to.eql([])
  },
}

const deadly: Case = {
  bug: 'B39',
  right: 'a turn that kills its worker each time is given up after the set number, with a failure that can be read',
  under: [],
  atLength: ['flush'],
  async play(ground, strike) {
    const held = [gate(text('one')), gate(text('two'))] as const
    const model = await ground.model((_request, at) => held[at] ?? text('three'))
    const chat = await ground.chat('mortal')
    await chat.askLater('hi', { enqueue: true })
    for (const at of held) {
      const worker = await ground.startRunner()
      await at.reached
      await kill(worker)
      const end = await strike()
      await end()
    }
    await ground.startRunner()
    const failure = await until('the chat has failed', () => chat.failure(), WAIT_MS)
    expect(failure.code).to.equal('chat.quarantined')
    expect(model.requests).to.have.length(2)
    expect((await rowOf(ground.mill, chat)).wantedAt).to.equal(null)
    expect(await transcriptOf(chat)).to.eql(['U hi'])
  },
}

playUnderFaults('A job', [keptJob, blocked, rollouts, deadly])
