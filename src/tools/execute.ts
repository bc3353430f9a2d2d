import type { ToolCallRow } from '../../models/rows.ts'
import { ToolError } from '../errors.ts'
import { type Ending, type ToolTimers, throwIfAbandoned, withinLimits } from './limit.ts'
import {
  errorText,
  interruptedCall,
  invalidArguments,
  malformedArguments,
  messageOf,
  notStartedCall,
  resultOf,
  timedOutCall,
} from './results.ts'
import type { Tool, ToolContext, ToolProgress, ToolResult } from './tool.ts'

const STOPPED = 'the turn was stopped'

/** What one execution needs to know of the run around it. */
export interface ExecutionContext {
  readonly chat: ToolContext['chat']
  /** Gets what the tool reports while the call is open. Must not throw. */
  progress(progress: ToolProgress): void
}

export interface ExecutionOptions {
  /** The run's signal, aborted with a `StopReason`. */
  readonly signal: AbortSignal
  readonly timers?: ToolTimers | undefined
}

/** What came of entering the tool; only `ended` is the tool's own doing. */
type Entry =
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'ended'; readonly value: unknown }

/**
 * Executes one call and returns the result to store for it. Arguments that the tool's schema refuses never reach the
 * tool. A tool that outlives its limit is answered for with an 'interrupted' result, whatever it does; its time of
 * validation counts. A run that the user stopped still takes the result of a tool that finishes.
 *
 * `raise` is set when the tool threw anything but a `ToolError` and its `onError` is `raise`.
 * @throws {ClaimLostError} {ShutdownError} at once when the signal says so: no result may be written then.
 */
export async function executeTool(
  tool: Tool,
  call: Readonly<ToolCallRow>,
  context: ExecutionContext,
  options: ExecutionOptions,
): Promise<ToolResult> {
  const { signal, timers } = options
  throwIfAbandoned(signal, call.chatId)
  if (signal.aborted) return { outcome: 'interrupted', content: notStartedCall(tool.name, STOPPED) }
  // Its arguments read as {}, which it never said.
  if (call.malformedArguments !== null) return { outcome: 'failed', content: malformedArguments(tool.name, null) }
  let open = true
  const progress = (report: ToolProgress): void => {
    if (open) context.progress(report)
  }
  try {
    const ending = await withinLimits(
      (own) =>
        enter(tool, call, { toolCall: call, chat: context.chat, idempotencyKey: call.id, signal: own, progress }),
      { signal, timers, timeoutMs: tool.timeoutMs, chatId: call.chatId },
    )
    return resultOfEnding(tool, ending, signal)
  } finally {
    open = false
  }
}

async function enter(tool: Tool, call: Readonly<ToolCallRow>, context: ToolContext): Promise<Entry> {
  const validated = await tool.validate(call.arguments)
  if (!validated.ok) return { kind: 'refused', message: validated.message }
  // A stop that came during validation: the tool has not begun, so it must not begin.
  if (context.signal.aborted) return { kind: 'stopped' }
  return { kind: 'ended', value: await tool.execute(validated.value, context) }
}

function resultOfEnding(tool: Tool, ending: Ending<Entry>, signal: AbortSignal): ToolResult {
  if (ending.kind === 'timeout') return { outcome: 'interrupted', content: timedOutCall(tool.name, tool.timeoutMs) }
  if (ending.kind === 'threw') return resultOfThrow(tool, ending.error, signal)
  const entry = ending.value
  if (entry.kind === 'refused') return { outcome: 'failed', content: invalidArguments(tool.name, entry.message) }
  if (entry.kind === 'stopped') return { outcome: 'interrupted', content: notStartedCall(tool.name, STOPPED) }
  return { ...resultOf(entry.value), returned: entry.value }
}

function resultOfThrow(tool: Tool, error: unknown, signal: AbortSignal): ToolResult {
  // Meant for the model, and an end of the call like any other, even after a stop.
  if (error instanceof ToolError) {
    const message = messageOf(error)
    return { outcome: 'failed', content: errorText(message), returned: { error: message } }
  }
  if (signal.aborted) return { outcome: 'interrupted', content: interruptedCall(tool.name, STOPPED) }
  if (tool.onError === 'report') return { outcome: 'failed', content: errorText(messageOf(error)) }
  return { outcome: 'interrupted', content: interruptedCall(tool.name, messageOf(error)), raise: error }
}
