import type { NewPause } from '../../models/pausing.ts'
import type { ToolCallRow } from '../../models/rows.ts'
import { dueOf, newlyClosed, openRequests, openSubChat, pauseOf } from '../../models/waiting.ts'
import { errorFacts } from '../observability/error-facts.ts'
import { withinLimits } from '../tools/limit.ts'
import { type Pause, settledRequests } from '../tools/pausing.ts'
import { errorText } from '../tools/results.ts'
import { type Ending, parked } from './ending.ts'
import { tellProgress } from './progress-reports.ts'
import { chatOf, type RunContext } from './run-context.ts'
import { toolOfCall } from './tool-of-call.ts'
import { openCalls } from './transcript.ts'

/** Longest that a cancel waits for a tool to end its task, in ms. */
const cancelLimitMs = 60_000

/** What a chat that waits ends its run with: where a task or an expiry is due some time, it is looked at again then. */
export function parkedEnding(run: RunContext): Ending {
  const due = openCalls(run.transcript).flatMap((call) => dueOf(call)?.getTime() ?? [])
  if (due.length === 0) return parked
  const delayMs = Math.max(0, Math.min(...due) - run.ports.clock.now().getTime())
  return { ...parked, wish: { kind: 'look-again', delayMs } }
}

/**
 * Whether a run may look at a paused call: a task that is due, or that this caller looks at for the first time; questions that have
 * expired. (S99)
 */
export function isDuePause(run: RunContext, call: ToolCallRow): boolean {
  const { task } = pauseOf(call)
  const now = run.ports.clock.now().getTime()
  const open = openRequests(call)
  const subChat = openSubChat(call)
  if (subChat !== null) return isPast(subChat.expiresAt, now)
  if (task !== undefined && open.length === 0) {
    if (run.consulted.has(call.id)) return false
    return run.order.by === 'caller' || Date.parse(task.nextPollAt) <= now
  }
  return open.some(({ expiresAt }) => isPast(expiresAt, now))
}

function isPast(time: string | null, now: number): boolean {
  return time !== null && Date.parse(time) <= now
}

/** Settles the questions of a call that nobody answered in time. False = somebody did after all: look again. (E45) */
export async function expireQuestions(run: RunContext, call: ToolCallRow, reason: string): Promise<boolean> {
  const settled = settledRequests(call, run.ports.clock.now())
  if (settled === null) return true
  const seen = openRequests(call).map(({ key }) => key)
  if (!(await pauseCall(run, call, { state: settled, subChat: null }, { reason, seen }))) return false
  for (const { key, answer } of newlyClosed(settled, seen)) {
    run.publish({ type: 'input.answered', toolCallId: call.toolCallId, key, declined: answer === undefined })
  }
  return true
}

/** Stores what a call waits on, and tells whoever watches. False = it has its result by now, or somebody answered meanwhile. */
export async function pauseCall(
  run: RunContext,
  call: ToolCallRow,
  { state, subChat }: Pick<Pause, 'state' | 'subChat'>,
  expired?: NewPause['expired'],
): Promise<boolean> {
  const also = { ...(expired === undefined ? {} : { expired }), ...(subChat === null ? {} : { subChat }) }
  const pause = { id: call.id, state, ...also }
  const known = new Set(openRequests(call).map(({ key }) => key))
  run.fresh = false
  if (!(await run.ports.rows.pauseToolCall(run.claim, pause))) return false
  Object.assign(call, { mcpState: state, claimedBy: null, claimedUntil: null, startedAt: null })
  const { toolCallId, name } = call
  for (const { key, message, fields } of openRequests(call)) {
    if (known.has(key)) continue
    run.publish({ type: 'input.requested', toolCallId, name, key, message, fields })
  }
  const { task } = state
  if (task !== undefined) {
    run.publish({ type: 'tool.progress', toolCallId, message: task.message, value: null, total: null })
    if (task.message !== null) await tellProgress(run, call, { message: task.message })
  }
  if (subChat !== null) {
    const { id: subChatId, agent } = subChat
    run.publish({ type: 'sub_chat.started', toolCallId, name, subChatId, agent })
    // A caller runs it itself, as the next thing. (E91)
    if (run.order.by !== 'caller') await run.ports.bell.ring(subChatId, 'complete')
  }
  return true
}

/** Whether a task took longer than it was given. */
export function isTaskExpired(call: ToolCallRow, now: Date): boolean {
  return isPast(pauseOf(call).task?.expiresAt ?? null, now.getTime())
}

/** For a task that took longer than it was given. */
export function taskExpired(name: string): string {
  return errorText(`The task that ${name} began was not finished in time. Whether it goes on is not known.`)
}

/** Ends the tasks of calls that are given up. What goes wrong is observed: the cancel goes on. (S66) */
export async function cancelTasks(run: RunContext, calls: readonly ToolCallRow[]): Promise<void> {
  for (const call of calls) {
    const { task } = pauseOf(call)
    const cancel = toolOfCall(run, call)?.cancelTask
    if (task === undefined || !cancel) continue
    const context = { toolCall: call, chat: chatOf(run), idempotencyKey: call.id }
    const { timers } = run.ports.clock
    const limits = { signal: run.claim.signal, timers, timeoutMs: cancelLimitMs, chatId: run.chat.id }
    const ended = await withinLimits(
      (signal) => cancel({ id: task.id, data: task.data }, { ...context, signal }),
      limits,
    )
    if (ended.kind === 'returned') continue
    const error = ended.kind === 'threw' ? errorFacts(ended.error) : null
    run.ports.observe({ type: 'hook.trouble', hook: 'cancelTask', chatId: run.chat.id, agent: run.chat.agent, error })
  }
}
