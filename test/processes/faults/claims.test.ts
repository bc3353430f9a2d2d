import { expect } from 'chai'
import { gate, text } from '../../../src/testing/index.ts'
import { until } from '../../support/until.ts'
import { questionOf } from '../support/load.ts'
import { expectLate, isAtRest, rowOf, transcriptOf, untilLateClosed, usagesOf } from '../support/rows.ts'
import { kill, statements } from '../support/workers.ts'
import { type Case, playUnderFaults } from './support/cases.ts'
import { freezesAt, frozenNow } from './support/faults.ts'
import { claimLapsed, expectRest, TTL_MS, WAIT_MS } from './support/ground.ts'

const { fences, insertsMessage, commits } = statements

const wonLate: Case = {
  bug: 'B41',
  right: 'a claim that was won late has more than half of its time left, and is kept',
  under: ['flush'],
  atLength: ['away', 'slow', 'sessions'],
  async play(ground, strike) {
    const [dead, held] = [gate(text('never sent')), gate(text('the answer'))]
    const model = await ground.model((_request, at) => (at === 0 ? dead : held))
    const chat = await ground.chat()
    const first = await ground.startSpare()
    await chat.askLater('hi', { enqueue: true })
    await dead.reached
    await ground.startRunner()
    await kill(first)
    // It has the lock in Redis still, and the claim in the database, which both have to lapse.
    const end = await strike()
    await end()
    const asked = await held.reached
    const { claimedUntil, claimToken } = await rowOf(ground.mill, chat)
    expect((claimedUntil?.getTime() ?? Number.NaN) - asked.startedAt).to.be.greaterThan(TTL_MS / 2)
    await (await strike())()
    await until(
      'the claim was renewed past its first end',
      async () =>
        ((await rowOf(ground.mill, chat)).claimedUntil?.getTime() ?? 0) > (claimedUntil?.getTime() ?? 0) + TTL_MS,
      WAIT_MS,
    )
    expect((await rowOf(ground.mill, chat)).claimToken).to.equal(claimToken)
    held.release()
    await expectRest(ground, chat)
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A the answer'])
    expect(model.requests).to.have.length(2)
  },
}

const failedRenewal: Case = {
  bug: 'B42',
  right: 'the process lives on, and each of its chats is answered once',
  under: ['silent', 'locked'],
  atLength: ['away', 'sessions'],
  async play(ground, strike, fault) {
    const held = gate(text('late'))
    const model = await ground.model((_request, at) => (at < 2 ? held : text('later')))
    const [two, one] = [await ground.chat(), await ground.chat()]
    const worker = await ground.startRunner()
    await one.askLater('one', { enqueue: true })
    await two.askLater('two', { enqueue: true })
    await model.waitForRequests(2)
    const end = await strike()
    await end()
    held.release()
    for (const [chat, question] of [[one, 'one'] as const, [two, 'two'] as const]) {
      await expectRest(ground, chat)
      const [asked, answer, ...more] = await transcriptOf(chat)
      expect([asked, more]).to.eql([`U ${question}`, []])
      expect(answer).to.be.oneOf(['A late', 'A later'])
    }
    expect(model.requests.map(questionOf).slice(0, 2)).to.have.members(['one', 'two'])
    if (!fault.losesClaim) expect(model.requests).to.have.length(2)
    expect(worker.output()).to.not.match(/unhandled|Error/i)
    worker.signal('SIGTERM')
    expect(await worker.ended, 'the process lived').to.equal(0)
  },
}

/** The owner stands still while it waits for the model, and its successor answers. */
const pausedOwner: Case = {
  bug: 'B43',
  right: 'a paused owner that wakes up writes nothing but what its request cost',
  under: ['sessions'],
  atLength: ['flush', 'away'],
  async play(ground, strike) {
    const late = gate(text('from A'))
    const model = await ground.model((_request, at) => (at === 0 ? late : text('from B')))
    const chat = await ground.chat()
    const owner = await ground.startRunner()
    await chat.askLater('hi', { enqueue: true })
    const asked = await late.reached
    owner.signal('SIGSTOP')
    const { claimToken } = await rowOf(ground.mill, chat)
    await claimLapsed(ground, chat, claimToken)
    await ground.startSpare()
    await until('its successor has answered', () => isAtRest(chat), WAIT_MS)
    const rows = await chat.messages()
    const end = await strike()
    late.release()
    expect(await model.waitForEnd(asked)).to.equal('answered')
    owner.signal('SIGCONT')
    await untilLateClosed(ground.mill, chat, WAIT_MS)
    await end()
    expect(await transcriptOf(chat)).to.eql(['U hi', 'A from B'])
    expect(await chat.messages()).to.eql(rows)
    const [kept] = await usagesOf(ground.mill, chat)
    expectLate(kept)
    expect((await rowOf(ground.mill, chat)).claimToken).to.equal(claimToken + 1)
    expect(model.requests).to.have.length(2)
    await expectRest(ground, chat)
    await chat.askLater('again', { enqueue: true })
    await expectRest(ground, chat)
    expect((await transcriptOf(chat)).slice(2)).to.eql(['U again', 'A from B'])
  },
}

/** The owner has the answer and is on its way to storing it. */
const lateWrite: Case = {
  bug: 'B43',
  right: 'an answer that is being stored is there once, its owner’s or its successor’s',
  under: [
    freezesAt('before it proves its claim', [fences]),
    freezesAt('in the middle of the transaction', [fences, insertsMessage]),
  ],
  atLength: [freezesAt('before it commits', [fences, insertsMessage, commits]), 'silent'],
  async play(ground, strike, fault) {
    const held = gate(text('from A'))
    const model = await ground.model((_request, at) => (at === 0 ? held : text('from B')))
    const chat = await ground.chat()
    await ground.startRunner(fault.end)
    await chat.askLater('hi', { enqueue: true })
    await held.reached
    if (fault.end !== undefined) held.release()
    const end = await strike()
    // With a silent network the answer comes now, and what stores it is held back on its way.
    held.release()
    if (fault.end !== undefined) await frozenNow(ground)
    await end()
    await expectRest(ground, chat)
    const [asked, answer, ...more] = await transcriptOf(chat)
    expect([asked, more]).to.eql(['U hi', []])
    // Whose it is depends on whether the row was locked when the claim lapsed: a proof that was given holds till the commit.
    expect(answer).to.be.oneOf(['A from A', 'A from B'])
    expect(model.requests.length).to.be.at.most(2)
    const entries = await usagesOf(ground.mill, chat)
    expect(entries).to.have.length(model.requests.length)
    expect(entries.filter(({ messageId }) => messageId !== null)).to.have.length(1)
  },
}

playUnderFaults('A claim', [wonLate, failedRenewal, pausedOwner, lateWrite])
