import { expect } from 'chai'
import fc from 'fast-check'
import { history } from './histories/history.ts'
import { play } from './histories/play.ts'
import { chatId, type Stage } from './histories/stage.ts'

const isFull = process.env.THREADMILL_FULL === '1'
/**
 * 10,000 in the full run. A fifth of them is done in seconds, so that it is part of every run; what they are made of is small and
 * drawn anew each time, and the planted faults below are found within the first few hundred.
 */
const runs = isFull ? 10_000 : 2_000
/**
 * What 10,000 may take, of a processor's time: the clock on the wall counts what else the machine does. On one that has nothing else to
 * do it is a third of this; a processor that is shared counts for less.
 */
const LIMIT_S = 150

describe('Any history of a chat', function () {
  this.timeout(300_000)

  it('comes to an end at which nothing is left, lost or doubled, by moves that its rows allow', async () => {
    const before = process.cpuUsage()
    await fc.assert(
      fc.asyncProperty(history, (drawn) => play(drawn)),
      { numRuns: runs },
    )
    const { user, system } = process.cpuUsage(before)
    if (isFull) expect((user + system) / 1_000_000).to.be.below(LIMIT_S)
  })

  for (const [what, plant, sign] of [
    ['a result', loseResults, /result/],
    ['a queued message', loseQueued, /users said/],
    ['a denial', overlookDenials, /denied/],
  ] as const) {
    it(`shows a loop that loses ${what}`, async () => {
      const found = await fc.check(
        fc.asyncProperty(history, (drawn) => play(drawn, plant)),
        { numRuns: runs },
      )
      expect(found.failed).to.equal(true)
      expect(String(found.errorInstance)).to.match(sign)
    })
  }
})

/** The call is answered, and its result is nowhere. */
function loseResults({ ports, tables }: Stage): void {
  const { commitToolResult } = ports.rows
  ports.rows.commitToolResult = async (key, result) => {
    const stored = await commitToolResult(key, result)
    const messages = tables.messages(chatId)
    if (stored)
      messages.splice(
        messages.findIndex(({ id }) => id === result.message.id),
        1,
      )
    return stored
  }
}

/** What people queue leaves the queue, and is not said. */
function loseQueued({ ports, tables }: Stage): void {
  const { takeQueued } = ports.rows
  ports.rows.takeQueued = async (key, take) => {
    const taken = await takeQueued(key, take)
    if (taken) tables.messages(chatId).splice(-take.messages.length)
    return taken
  }
}

/** A call begins whatever was decided after the run had looked. */
function overlookDenials({ ports, tables }: Stage): void {
  const { startToolCall } = ports.rows
  ports.rows.startToolCall = (key, call) => {
    const { approval } = tables.toolCalls(chatId).find(({ id }) => id === call.id) ?? call
    return startToolCall(key, { ...call, approval })
  }
}
