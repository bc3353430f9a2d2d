import { expect } from 'chai'
import * as z from 'zod'
import type { JsonObject } from '../../models/rows.ts'
import { ClaimLostError, ShutdownError, ToolError } from '../../src/errors.ts'
import { defineTool } from '../../src/tools/define-tool.ts'
import type { DelegationContext } from '../../src/tools/delegating.ts'
import { type ExecutionContext, executeTool } from '../../src/tools/execute.ts'
import type { StopReason, Tool, ToolContext, ToolProgress } from '../../src/tools/tool.ts'
import { CHAT, deferred, errorFrom, storedCall } from './rows.ts'

const noFiles = { attach: async () => {}, stored: async () => {} }
const nowhere: DelegationContext = {
  agentNamed: () => null,
  parent: { id: CHAT.id, owner: null, rootId: null, depth: 0 },
  newId: () => 'new',
  now: () => new Date(),
  isPassable: () => false,
}
const around: ExecutionContext = {
  chat: CHAT,
  delegation: nowhere,
  files: noFiles,
  progress: () => {},
  now: () => new Date(),
}

type Work = (args: { n?: number | undefined }, context: ToolContext) => unknown

function tool(execute: Work, options: { onError?: 'raise' | 'report'; timeoutMs?: number } = {}): Tool {
  const parameters = z.object({ n: z.number().optional() })
  return defineTool({ name: 'refund', description: 'Refunds', parameters, execute, ...options })
}

/** One execution whose run can be aborted and whose clock stands still until it is moved. */
function execution(of: Tool, args: JsonObject = {}, malformed: string | null = null) {
  const controller = new AbortController()
  const progress: ToolProgress[] = []
  const pending = new Map<number, { callback: () => void; ms: number }>()
  let made = 0
  const timers = {
    setTimeout(callback: () => void, ms: number) {
      pending.set(++made, { callback, ms })
      return made
    },
    clearTimeout: (timer: unknown) => void pending.delete(Number(timer)),
  }
  return {
    progress,
    pending,
    abort: (reason: StopReason) => controller.abort(reason),
    fire: () => {
      for (const timer of [...pending.values()]) timer.callback()
    },
    run: () =>
      executeTool(
        of,
        storedCall({ arguments: args, malformedArguments: malformed }),
        { ...around, progress: (report) => void progress.push(report) },
        { signal: controller.signal, timers },
      ),
  }
}

function stoppable(): [AbortSignal, (reason: StopReason) => void] {
  const controller = new AbortController()
  return [controller.signal, (reason) => controller.abort(reason)]
}

function errorIn(content: string): string {
  return (JSON.parse(content) as { error: string }).error
}

describe('executeTool', () => {
  it('runs the tool with validated arguments and the facts of its call', async () => {
    let seen: ToolContext | undefined
    const run = execution(
      tool((args, context) => {
        seen = context
        return { doubled: (args.n ?? 0) * 2 }
      }),
      { n: 4 },
    )
    expect(await run.run()).to.deep.include({
      outcome: 'succeeded',
      content: '{"doubled":8}',
      returned: { doubled: 8 },
    })
    expect(seen?.idempotencyKey).to.equal('call-row-1')
    expect(seen?.toolCall.toolCallId).to.equal('call_1')
    expect(seen?.chat).to.equal(CHAT)
    expect(seen?.signal.aborted).to.equal(false)
    expect(run.pending.size, 'timers left behind').to.equal(0)
  })

  it('answers wrong arguments without entering the tool', async () => {
    let entered = 0
    const work = () => ++entered
    const wrong = await execution(tool(work), { n: 'four', m: 1 }).run()
    expect(wrong.outcome).to.equal('failed')
    expect(errorIn(wrong.content)).to.match(/refund.*m is unknown.*n:/)
    const malformed = await execution(tool(work), {}, '{"n":1}{"n":2}').run()
    expect(malformed.outcome).to.equal('failed')
    expect(errorIn(malformed.content)).to.contain('not one JSON object')
    expect(entered).to.equal(0)
  })

  it('gives the text of a ToolError to the model', async () => {
    const result = await execution(tool(() => Promise.reject(new ToolError('No such order')))).run()
    expect(result).to.deep.include({
      outcome: 'failed',
      content: '{"error":"No such order"}',
      returned: { error: 'No such order' },
    })
  })

  it('hands any other error to the run and answers the call as interrupted', async () => {
    const boom = new Error('disk full')
    const result = await execution(tool(() => Promise.reject(boom))).run()
    expect(result.outcome).to.equal('interrupted')
    expect(errorIn(result.content)).to.match(/refund.*disk full/)
    expect(result.raise).to.equal(boom)
  })

  it('reports every error to the model where the tool says so', async () => {
    const result = await execution(tool(() => Promise.reject(new Error('disk full')), { onError: 'report' })).run()
    expect(result).to.deep.include({ outcome: 'failed', content: '{"error":"disk full"}' })
  })

  it('answers for a tool that ignores its limit, and drops what it does later', async () => {
    const gate = deferred<string>()
    const started = deferred<ToolContext>()
    const run = execution(
      tool(
        (_args, context) => {
          started.resolve(context)
          return gate.promise
        },
        { timeoutMs: 1500 },
      ),
    )
    const running = run.run()
    const context = await started.promise
    expect([...run.pending.values()].map((timer) => timer.ms)).to.deep.equal([1500])
    run.fire()
    const result = await running
    expect(result.outcome).to.equal('interrupted')
    expect(errorIn(result.content)).to.match(/refund.*1\.5 s/)
    expect('raise' in result).to.equal(false)
    expect(context.signal.reason).to.equal('timeout')
    context.progress({ message: 'too late' })
    expect(run.progress).to.deep.equal([])
    await expectNothingUnhandled(() => gate.reject(new Error('late')))
  })

  it('keeps the limit with the timers of Node', async () => {
    const never = tool(() => new Promise(() => {}), { timeoutMs: 5 })
    const context = around
    const result = await executeTool(never, storedCall(), context, { signal: new AbortController().signal })
    expect(result.outcome).to.equal('interrupted')
  })

  for (const [reason, type] of [
    ['claim-lost', ClaimLostError],
    ['shutdown', ShutdownError],
  ] as const) {
    it(`gives no result after ${reason}, and does not wait for the tool`, async () => {
      const gate = deferred<string>()
      const started = deferred<AbortSignal>()
      const run = execution(
        tool((_args, context) => {
          started.resolve(context.signal)
          return gate.promise
        }),
      )
      const failed = errorFrom(run.run)
      const signal = await started.promise
      run.abort(reason)
      const error = await failed
      expect(error).to.be.instanceOf(type).with.property('chatId', CHAT.id)
      expect(signal.reason).to.equal(reason)
      expect(run.pending.size, 'timers left behind').to.equal(0)
      await expectNothingUnhandled(() => gate.reject(new Error('late')))
    })

    it(`does not start a tool after ${reason}`, async () => {
      let entered = 0
      const run = execution(tool(() => ++entered))
      run.abort(reason)
      expect(await errorFrom(run.run)).to.be.instanceOf(type)
      expect(entered).to.equal(0)
    })
  }

  it('keeps the result of a tool that finishes after the user stopped the turn', async () => {
    const gate = deferred<string>()
    const started = deferred<AbortSignal>()
    const run = execution(
      tool((_args, context) => {
        started.resolve(context.signal)
        return gate.promise
      }),
    )
    const running = run.run()
    const signal = await started.promise
    run.abort('stopped')
    expect(signal.reason).to.equal('stopped')
    gate.resolve('done')
    expect(await running).to.deep.include({ outcome: 'succeeded', content: 'done', returned: 'done' })
  })

  for (const [what, lost] of [
    ['the claim was lost', new ClaimLostError('taken by another', { chatId: CHAT.id })],
    ['the process is to end', new ShutdownError('the grace is over')],
  ] as const) {
    it(`does not wait for a stopped tool any more once ${what} (E165)`, async () => {
      const started = deferred<void>()
      const claim = new AbortController()
      const never = tool(() => {
        started.resolve()
        return new Promise(() => {})
      })
      const [signal, stop] = stoppable()
      const running = errorFrom(() => executeTool(never, storedCall(), around, { signal, claim: claim.signal }))
      await started.promise
      stop('stopped')
      claim.abort(lost)
      expect(await running).to.equal(lost)
    })
  }

  it('answers a tool that throws on a stop as interrupted, without an error for the run', async () => {
    const started = deferred<void>()
    const run = execution(
      tool(
        (_args, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
            started.resolve()
          }),
        { onError: 'report' },
      ),
    )
    const running = run.run()
    await started.promise
    run.abort('stopped')
    const result = await running
    expect(result.outcome).to.equal('interrupted')
    expect(errorIn(result.content)).to.match(/refund.*stopped/)
    expect('raise' in result).to.equal(false)
  })

  it('does not start a tool that was stopped before, or while its arguments were checked', async () => {
    let entered = 0
    const before = execution(tool(() => ++entered))
    before.abort('stopped')
    expect((await before.run()).outcome).to.equal('interrupted')

    const gate = deferred<boolean>()
    const checking = deferred<void>()
    const parameters = z.object({}).refine(() => {
      checking.resolve()
      return gate.promise
    })
    const slow = defineTool({ name: 'refund', description: 'Refunds', parameters, execute: () => ++entered })
    const during = execution(slow)
    const running = during.run()
    await checking.promise
    during.abort('stopped')
    gate.resolve(true)
    const result = await running
    expect(result.outcome).to.equal('interrupted')
    expect(errorIn(result.content)).to.contain('did not run')
    expect(entered).to.equal(0)
  })

  it('passes progress on', async () => {
    const run = execution(tool((_args, context) => context.progress({ value: 1, total: 2 })))
    expect((await run.run()).content).to.equal('')
    expect(run.progress).to.deep.equal([{ value: 1, total: 2 }])
  })

  it('leaves no listener on the signal of the run', async () => {
    const controller = new AbortController()
    let listeners = 0
    const { signal } = controller
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = ((...args: Parameters<typeof add>) => {
      listeners++
      add(...args)
    }) as typeof signal.addEventListener
    signal.removeEventListener = ((...args: Parameters<typeof remove>) => {
      listeners--
      remove(...args)
    }) as typeof signal.removeEventListener
    await executeTool(
      tool(() => 'x'),
      storedCall(),
      around,
      { signal },
    )
    expect(listeners).to.equal(0)
  })
})

/** An unhandled rejection is reported once the microtasks are done: two turns of the event loop are enough. */
async function expectNothingUnhandled(act: () => void): Promise<void> {
  const unhandled: unknown[] = []
  const others = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', (reason) => unhandled.push(reason))
  try {
    act()
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.removeAllListeners('unhandledRejection')
    for (const listener of others) process.on('unhandledRejection', listener)
  }
  expect(unhandled).to.deep.equal([])
}
