import { effectiveArguments } from '../../models/arguments-hash.ts'
import type { ToolCallRow } from '../../models/rows.ts'
import { ConfigurationError } from '../errors.ts'
import { type ToolTimers, withinLimits } from './limit.ts'
import type { Reconciled, Tool, ToolContext } from './tool.ts'

export interface InterruptedContext {
  readonly chat: ToolContext['chat']
  /** The run's signal, aborted with a `StopReason`. */
  readonly signal: AbortSignal
  /** The claim's, aborted with a {@link ClaimLostError} or a {@link ShutdownError}. */
  readonly claim?: AbortSignal | undefined
  readonly timers?: ToolTimers | undefined
}

/**
 * Says what becomes of a call that began under a claim that is gone, as its tool declares. A reconcile function is
 * given the tool's own time limit.
 * @throws whatever the tool's reconcile function throws, unchanged.
 * @throws {ConfigurationError} if that function returns something else than it may, or does not return in time.
 * @throws {ClaimLostError} {ShutdownError} at once when a signal says so.
 */
export async function decideInterrupted(
  tool: Tool,
  call: Readonly<ToolCallRow>,
  context: InterruptedContext,
): Promise<Reconciled> {
  const { onInterrupted } = tool
  if (typeof onInterrupted !== 'function') return { action: onInterrupted }
  const { chat, signal, claim, timers } = context
  const ending = await withinLimits(
    async (own) =>
      onInterrupted({
        toolCall: call,
        chat,
        idempotencyKey: call.id,
        signal: own,
        arguments: effectiveArguments(call),
      }),
    { signal, claim, timers, timeoutMs: tool.timeoutMs, chatId: call.chatId },
  )
  if (ending.kind === 'threw') throw ending.error
  if (ending.kind === 'returned') return reconciled(tool, ending.value)
  throw new ConfigurationError(
    `onInterrupted of tool ${JSON.stringify(tool.name)} did not return within ${tool.timeoutMs} ms: ` +
      'make it heed its signal, or raise timeoutMs.',
    { chatId: call.chatId },
  )
}

function reconciled(tool: Tool, value: unknown): Reconciled {
  const given = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  if (given.action === 'retry' || given.action === 'ask') return { action: given.action }
  if (given.action === 'result') return { action: 'result', result: given.result }
  if (given.action === 'fail') {
    return typeof given.message === 'string' ? { action: 'fail', message: given.message } : { action: 'fail' }
  }
  throw new ConfigurationError(
    `onInterrupted of tool ${JSON.stringify(tool.name)} must return { action: 'retry' | 'fail' | 'ask' | 'result' }.`,
  )
}
