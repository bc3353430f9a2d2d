import pLimit from 'p-limit'
import type { AttachmentValue, ToolCallRow, ToolOutcome, TranscriptMessage } from '../../models/rows.ts'
import { toValue } from '../../models/tool-call.ts'
import type { NewResult } from '../../models/turns.ts'
import { eventAttachments } from '../events/attachments.ts'
import { eventToolCall } from '../events/tool-call.ts'
import { type ExecutionContext, executeTool } from '../tools/execute.ts'
import { interruptedCall, messageOf, wellFormed } from '../tools/results.ts'
import { cutToLimit } from '../tools/text-limit.ts'
import type { Tool, ToolResult } from '../tools/tool.ts'
import { AttachedFiles } from './attached-files.ts'
import { cancelTasks, expireQuestions, pauseCall } from './paused-calls.ts'
import { type Plan, planCall, requireTools } from './plan-call.ts'
import { ProgressReports } from './progress-reports.ts'
import { timesRunning, withWarning } from './repetition.ts'
import { chatOf, factsOf, type RunContext } from './run-context.ts'
import { abandons, delegationOf } from './sub-chats.ts'
import { answeredCall, executeObserved, namesOf } from './tool-ended.ts'
import { toolMessage } from './tool-message.ts'

/**
 * Runs the calls of a round that can make progress, answers those that will not run, and leaves the rest for a person.
 * Returns how many calls changed; 0 = someone decided about them meanwhile, look again.
 * @throws the first error that a tool raised, once the calls that were running beside it have ended.
 */
export async function runTools(
  run: RunContext,
  message: TranscriptMessage,
  calls: readonly ToolCallRow[],
): Promise<number> {
  requireTools(run, calls)
  const stop = run.stoppable()
  try {
    const plans: Plan[] = []
    for (const call of calls) {
      run.consulted.add(call.id)
      if (!(await expireQuestions(run, call, notInTime))) continue
      plans.push(await planCall(run, message, call, stop.signal))
    }
    let changed = 0
    // Refusals and other answers first: they must be there whatever the tools do.
    for (const plan of plans) if (plan.kind === 'answer') changed += await answer(run, plan)
    for (const plan of plans) if (plan.kind === 'wait') changed += await leave(run, plan)
    for (const plan of plans) if (plan.kind === 'expire') changed += await expire(run, plan)
    const toRun = plans.filter((plan) => plan.kind === 'run')
    return changed + (await execute(run, toRun, stop.signal))
  } finally {
    stop.dispose()
    run.claim.signal.throwIfAborted()
  }
}

async function answer(run: RunContext, plan: Plan & { kind: 'answer' }): Promise<number> {
  const { call, outcome, content } = plan
  // What it began elsewhere ends with it. (E46)
  if (outcome === 'denied') await cancelTasks(run, [call])
  const bound = plan.approval === undefined ? {} : { approval: plan.approval }
  if (!(await commitResult(run, call, plan, bound))) return 0
  run.ports.observe(answeredCall(run, call, outcome, content))
  return 1
}

/** Asks for a decision, once. */
async function leave(run: RunContext, { call, interrupted, expiresAt }: Plan & { kind: 'wait' }): Promise<number> {
  const asked = call.approval === 'pending' && (!interrupted || call.claimedBy === null)
  if (asked) return 0
  const approval = { id: call.id, from: call.approval, to: 'pending' as const, interrupted, expiresAt }
  if (!(await run.ports.rows.setApproval(run.claim, approval))) return 0
  Object.assign(call, { approval: 'pending', expiresAt })
  if (interrupted) call.claimedBy = null
  run.fresh = false
  run.publish({ type: 'approval.requested', toolCall: eventToolCall(call) })
  run.ports.observe({ type: 'approval.requested', ...factsOf(run), ...namesOf(run, call) })
  return 1
}

const notInTime = 'nobody answered in time'

/** Decides in place of whoever did not. */
async function expire(run: RunContext, { call, to }: Plan & { kind: 'expire' }): Promise<number> {
  const decision = { id: call.id, from: call.approval, to, expired: notInTime }
  run.fresh = false
  if (!(await run.ports.rows.setApproval(run.claim, decision))) return 0
  Object.assign(call, { approval: to, expiresAt: null, decisionReason: notInTime })
  run.publish({ type: 'approval.decided', toolCall: eventToolCall(call), approval: to })
  return 1
}

async function execute(
  run: RunContext,
  plans: readonly (Plan & { kind: 'run' })[],
  signal: AbortSignal,
): Promise<number> {
  const limit = pLimit(run.configuration.concurrency)
  const raised: unknown[] = []
  let changed = 0
  const one = async ({ call, tool }: Plan & { kind: 'run' }): Promise<void> => {
    // After a stop or a raised error nothing more is begun; what runs is waited for.
    if (signal.aborted || raised.length > 0) return
    try {
      if (await runCall(run, call, tool, signal, raised)) changed++
    } catch (error) {
      raised.push(error)
    }
  }
  await Promise.all(plans.map((plan) => limit(one, plan)))
  if (raised.length > 0) throw raised[0]
  return changed
}

/** False = the call was answered, or its approval changed, before it could start. */
async function runCall(
  run: RunContext,
  call: ToolCallRow,
  tool: Tool,
  signal: AbortSignal,
  raised: unknown[],
): Promise<boolean> {
  run.claim.requireTime()
  const release = run.claim.keepToolCall(call.id)
  try {
    if (!(await run.ports.rows.startToolCall(run.claim, { id: call.id, approval: call.approval }))) {
      run.fresh = false
      return false
    }
    const files = new AttachedFiles(run.ports.files, call)
    const result = await hookedExecution(run, call, tool, signal, files)
    // What was attached before a pause is attached anew by the run that ends the call.
    if (result.pause !== undefined || result.outcome !== 'succeeded') await files.drop()
    const changed =
      result.pause === undefined ? await commitOwn(run, call, result, files) : await pauseCall(run, call, result.pause)
    if ('raise' in result) raised.push(result.raise)
    return changed
  } finally {
    release()
  }
}

async function commitOwn(run: RunContext, call: ToolCallRow, result: ToolResult, files: AttachedFiles): Promise<true> {
  const bound = files.values === null ? {} : { keep: () => files.keep() }
  const stored = await commitResult(run, call, { ...warned(run, call, result), attachments: files.values }, bound)
  if (!stored) await files.drop()
  return true
}

function warned(run: RunContext, call: ToolCallRow, result: ToolResult): ToolResult {
  const { repetitionLimit } = run.configuration.agent
  const times = repetitionLimit === null ? 0 : timesRunning(run.transcript, call)
  if (repetitionLimit === null || times < repetitionLimit) return result
  return { ...result, content: withWarning(result.content, call.name, times), encoding: 'text' }
}

/** What a hook throws ends the run as what a tool throws does: the call has its result, so that it is not run again. */
async function hookedExecution(
  run: RunContext,
  call: ToolCallRow,
  tool: Tool,
  signal: AbortSignal,
  files: AttachedFiles,
): Promise<ToolResult> {
  try {
    await run.hooks.call('beforeToolCall', toValue(call))
  } catch (error) {
    return { outcome: 'interrupted', content: interruptedCall(call.name, messageOf(error)), raise: error }
  }
  const reports = new ProgressReports(run, call)
  const context: ExecutionContext = {
    chat: chatOf(run),
    delegation: delegationOf(run),
    progress: (progress) => reports.add(progress),
    files,
    now: () => run.ports.clock.now(),
  }
  const options = { signal, claim: run.claim.signal, timers: run.ports.clock.timers }
  const result = await executeObserved(run, call, () =>
    executeTool(tool, { ...call, claimedBy: run.claim.claimId }, context, options),
  ).finally(() => files.close())
  try {
    await reports.told()
    if ('returned' in result) await run.hooks.call('afterToolResult', result.returned, toValue(call))
    return result
  } catch (error) {
    return { ...result, raise: error }
  }
}

/** What is stored of a call. */
interface CallResult extends Pick<ToolResult, 'content' | 'encoding' | 'transfer'> {
  readonly outcome: ToolOutcome
  readonly attachments?: AttachmentValue[] | null
}

async function commitResult(
  run: RunContext,
  call: ToolCallRow,
  result: CallResult,
  bound: Pick<NewResult, 'approval' | 'keep'>,
): Promise<boolean> {
  const content = cutToLimit(wellFormed(result.content))
  // What was cut is no JSON any more.
  const encoding = content === result.content ? result.encoding : 'text'
  const { attachments = null } = result
  const message = { ...toolMessage(run, result.outcome, content, encoding), attachments }
  // The tool has done its work, so its result is stored whatever a hook says.
  const refusal = await rejectionOf(run.hooks.call('beforeMessage'))
  const abandoned = abandons(call)
  const { transfer } = result
  const also = { ...bound, ...abandoned, ...(transfer === undefined ? {} : { transfer }) }
  const stored = await run.ports.rows.commitToolResult(run.claim, { callId: call.id, message, ...also })
  run.fresh = false
  if (!stored) return false
  if (abandoned.abandons !== undefined) await run.ports.bell.ring(abandoned.abandons, 'complete')
  if (transfer !== undefined) run.chat.transferTo = transfer
  call.resultId = message.id
  const appended = run.append(message)
  const { toolCallId, name } = call
  const told = { toolCallId, name, outcome: result.outcome, content, attachments: eventAttachments(attachments) }
  run.publish({ type: 'tool.result', ...told })
  if (refusal !== null) throw refusal.reason
  await run.hooks.call('afterMessage', appended)
  return true
}

async function rejectionOf(work: Promise<unknown>): Promise<{ readonly reason: unknown } | null> {
  try {
    await work
    return null
  } catch (reason) {
    return { reason }
  }
}
