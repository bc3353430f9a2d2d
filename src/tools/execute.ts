import { effectiveArguments } from '../../models/arguments-hash.ts'
import type { ToolCallRow } from '../../models/rows.ts'
import { pauseOf } from '../../models/waiting.ts'
import { InputDeclinedError, ToolError } from '../errors.ts'
import { type DelegationContext, delegate, TransferResult, transfer } from './delegating.ts'
import { type Ending, type ToolTimers, throwIfAbandoned, withinLimits } from './limit.ts'
import { Asking, Pause } from './pausing.ts'
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
  /** Whom it can delegate to. */
  readonly delegation: DelegationContext
  /** Gets what the tool reports while the call is open. Must not throw. */
  progress(progress: ToolProgress): void
  readonly files: CallFiles
  now(): Date
}

/** Where the files of one execution go. */
export interface CallFiles {
  /** Stores files for the result. */
  attach: ToolContext['attach']
  /** Resolves once everything that was attached is stored. @throws what kept a file that was under way from it. */
  stored(): Promise<void>
}

export interface ExecutionOptions {
  /** The run's signal, aborted with a `StopReason`. */
  readonly signal: AbortSignal
  /** The claim's, aborted with a {@link ClaimLostError} or a {@link ShutdownError}. */
  readonly claim?: AbortSignal | undefined
  readonly timers?: ToolTimers | undefined
}

/** What came of entering the tool; only `ended` is the tool's own doing. */
type Entry =
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'paused'; readonly pause: Pause }
  | { readonly kind: 'ended'; readonly value: unknown }

/**
 * Executes one call and returns the result to store for it. Arguments that the tool's schema refuses never reach the
 * tool. A tool that outlives its limit is answered for with an 'interrupted' result, whatever it does; its time of
 * validation counts. A run that the user stopped still takes the result of a tool that finishes.
 *
 * `raise` is set when the tool threw anything but a `ToolError` and its `onError` is `raise`.
 * @throws {ClaimLostError} {ShutdownError} at once when a signal says so: no result may be written then.
 */
export async function executeTool(
  tool: Tool,
  call: Readonly<ToolCallRow>,
  context: ExecutionContext,
  options: ExecutionOptions,
): Promise<ToolResult> {
  const { signal, claim, timers } = options
  throwIfAbandoned(signal, call.chatId)
  if (signal.aborted) return keepingTask(call, { outcome: 'interrupted', content: notStartedCall(tool.name, STOPPED) })
  // Its arguments read as {}, which it never said.
  if (call.malformedArguments !== null) return { outcome: 'failed', content: malformedArguments(tool.name, null) }
  let open = true
  const progress = (report: ToolProgress): void => {
    if (open) context.progress(report)
  }
  const asking = new Asking(call, () => context.now())
  try {
    const ending = await withinLimits(
      async (own) => {
        const given = { ...contextOf(tool, call, context, asking), signal: own, progress }
        const entry = await enter(tool, call, given, asking)
        if (entry.kind === 'ended') await context.files.stored()
        return entry
      },
      { signal, claim, timers, timeoutMs: tool.timeoutMs, chatId: call.chatId },
    )
    const result = resultOfEnding(tool, ending, signal)
    return signal.aborted ? keepingTask(call, result, ending) : result
  } finally {
    open = false
  }
}

/**
 * A task that was begun is not forgotten for a stop: its call waits for it, and is closed by whoever carries the cancel out, who ends the
 * task too. (S66)
 */
function keepingTask(call: Readonly<ToolCallRow>, result: ToolResult, ending?: Ending<Entry>): ToolResult {
  if (result.outcome !== 'interrupted') return result
  const { requests, task: known } = pauseOf(call)
  const begun =
    ending?.kind === 'returned' && ending.value.kind === 'paused' ? ending.value.pause.state.task : undefined
  const task = begun ?? known
  if (task === undefined) return result
  const pause = new Pause(task.id, { ...(requests === undefined ? {} : { requests }), task })
  return { outcome: 'interrupted', content: '', pause }
}

function contextOf(
  tool: Tool,
  call: Readonly<ToolCallRow>,
  { chat, delegation, files }: ExecutionContext,
  asking: Asking,
): Omit<ToolContext, 'signal' | 'progress'> {
  return {
    toolCall: call,
    chat,
    idempotencyKey: call.id,
    attach: (sources) => files.attach(sources),
    ask: (options) => asking.ask(options),
    task: (options) => asking.task(options, tool.resume !== null),
    delegate: (options) => delegate(call, options, delegation),
    transfer: (options) => transfer(call, options, delegation),
  }
}

/** A task that is there already is looked at; anything else runs from its beginning. */
async function enter(tool: Tool, call: Readonly<ToolCallRow>, context: ToolContext, asking: Asking): Promise<Entry> {
  try {
    const { task } = pauseOf(call)
    const entry =
      task !== undefined && tool.resume !== null
        ? ({ kind: 'ended', value: await tool.resume({ id: task.id, data: task.data }, context) } as const)
        : await begin(tool, call, context)
    if (asking.pause !== null) return { kind: 'paused', pause: asking.pause }
    return entry.kind === 'ended' && entry.value instanceof Pause ? { kind: 'paused', pause: entry.value } : entry
  } catch (error) {
    if (asking.pause === null) throw error
    return { kind: 'paused', pause: asking.pause }
  }
}

async function begin(tool: Tool, call: Readonly<ToolCallRow>, context: ToolContext): Promise<Entry> {
  const validated = await tool.validate(effectiveArguments(call))
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
  // A turn that was stopped asks nobody any more.
  if (entry.kind === 'paused' && !signal.aborted) return { outcome: 'interrupted', content: '', pause: entry.pause }
  if (entry.kind === 'stopped' || entry.kind === 'paused')
    return { outcome: 'interrupted', content: notStartedCall(tool.name, STOPPED) }
  if (entry.value instanceof TransferResult) return transferred(entry.value, signal, tool)
  return { ...resultOf(entry.value), returned: entry.value }
}

/** A turn that was stopped goes on with nobody. */
function transferred({ agent, inputs, message }: TransferResult, signal: AbortSignal, tool: Tool): ToolResult {
  if (signal.aborted) return { outcome: 'interrupted', content: notStartedCall(tool.name, STOPPED) }
  return { outcome: 'succeeded', content: message, encoding: 'text', returned: message, transfer: { agent, inputs } }
}

function resultOfThrow(tool: Tool, error: unknown, signal: AbortSignal): ToolResult {
  // Meant for the model, and an end of the call like any other, even after a stop.
  if (error instanceof ToolError || error instanceof InputDeclinedError) {
    const message = messageOf(error)
    return { outcome: 'failed', content: errorText(message), returned: { error: message } }
  }
  if (signal.aborted) return { outcome: 'interrupted', content: interruptedCall(tool.name, STOPPED) }
  if (tool.onError === 'report') return { outcome: 'failed', content: errorText(messageOf(error)) }
  return { outcome: 'interrupted', content: interruptedCall(tool.name, messageOf(error)), raise: error }
}
