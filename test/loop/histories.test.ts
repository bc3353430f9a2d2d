import { expect } from 'chai'
import fc from 'fast-check'
import { history } from './histories/history.ts'
import { play } from './histories/play.ts'
import { chatId, type Stage } from './histories/stage.ts'

const runs = process.env.THREADMILL_FULL === '1' ? 10_000 : 2_000

describe('Any history of a chat', () => {
  it('comes to an end at which nothing is left, lost or doubled, by moves that its rows allow', async function () {
    this.timeout(60_000)
    await fc.assert(
      fc.asyncProperty(history, (drawn) => play(drawn)),
      { numRuns: runs },
    )
  })

  it('shows a loop that loses a result', async () => {
    const found = await fc.check(
      fc.asyncProperty(history, (drawn) => play(drawn, loseResults)),
      { numRuns: runs },
    )
    expect(found.failed).to.equal(true)
  })
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
