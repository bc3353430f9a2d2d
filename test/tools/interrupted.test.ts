import { expect } from 'chai'
import * as z from 'zod'
import { ClaimLostError, ConfigurationError } from '../../src/errors.ts'
import { defineTool } from '../../src/tools/define-tool.ts'
import { decideInterrupted } from '../../src/tools/interrupted.ts'
import type { OnInterrupted, Reconciled, Tool } from '../../src/tools/tool.ts'
import { CHAT, deferred, errorFrom, storedCall } from './rows.ts'

function tool(onInterrupted?: OnInterrupted, timeoutMs?: number): Tool {
  const parameters = z.object({ order: z.int() })
  return defineTool({ name: 'charge', description: 'Charges', parameters, execute: () => '', onInterrupted, timeoutMs })
}

const call = storedCall({ arguments: { order: 7 } })

function decide(of: Tool, signal: AbortSignal = new AbortController().signal): Promise<Reconciled> {
  return decideInterrupted(of, call, { chat: CHAT, signal })
}

describe('decideInterrupted', () => {
  it('does as the tool declares, and retries by default', async () => {
    expect(await decide(tool())).to.deep.equal({ action: 'retry' })
    expect(await decide(tool('fail'))).to.deep.equal({ action: 'fail' })
    expect(await decide(tool('ask'))).to.deep.equal({ action: 'ask' })
  })

  it('asks a function with the arguments that the call ran with, where a person edited them (E42)', async () => {
    const edited = storedCall({ arguments: { order: 7 }, editedArguments: { order: 8 } })
    const asked = tool((context) => ({ action: 'result', result: context.arguments }))
    const decided = await decideInterrupted(asked, edited, { chat: CHAT, signal: new AbortController().signal })
    expect(decided).to.deep.equal({ action: 'result', result: { order: 8 } })
  })

  it('asks a function with the arguments and the key of the call', async () => {
    const decided = await decide(
      tool((context) => ({ action: 'result', result: [context.idempotencyKey, context.arguments, context.chat.id] })),
    )
    expect(decided).to.deep.equal({ action: 'result', result: ['call-row-1', { order: 7 }, 'chat-1'] })
    expect(await decide(tool(async () => ({ action: 'fail', message: 'gone' })))).to.deep.equal({
      action: 'fail',
      message: 'gone',
    })
  })

  it('lets the error of a function out unchanged', async () => {
    const boom = new Error('boom')
    const throwing = tool(() => {
      throw boom
    })
    expect(await errorFrom(() => decide(throwing))).to.equal(boom)
  })

  it('refuses an answer that is none', async () => {
    for (const answer of [undefined, 'retry', { action: 'maybe' }]) {
      const wrong = tool((() => answer) as unknown as OnInterrupted)
      expect(await errorFrom(() => decide(wrong))).to.be.instanceOf(ConfigurationError)
    }
  })

  it('does not wait for ever', async () => {
    const error = await errorFrom(() => decide(tool(() => new Promise(() => {}), 5)))
    expect(error).to.be.instanceOf(ConfigurationError).with.property('message').that.contains('"charge"')
  })

  it('ends at once when the claim is lost', async () => {
    const controller = new AbortController()
    const asked = deferred<void>()
    const hanging = tool(() => {
      asked.resolve()
      return new Promise(() => {})
    })
    const failed = errorFrom(() => decide(hanging, controller.signal))
    await asked.promise
    controller.abort('claim-lost')
    expect(await failed).to.be.instanceOf(ClaimLostError)
  })
})
