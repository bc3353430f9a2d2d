import type { ToolCallRow } from '../../models/rows.ts'
import { asksAboutInterruption } from '../tools/approval.ts'
import { isDuePause } from './paused-calls.ts'
import type { RunContext } from './run-context.ts'
import { isPaused, isRemembered } from './transcript.ts'

/**
 * Which waiting calls a run may look into once more: those whose tool has a resolver that this run has not asked yet, those
 * whose tool was approved for the rest of the chat meanwhile, tasks that are due, and what has expired. A question about an interruption is
 * a person's alone, unless it expires.
 */
export function reconsiderable(run: RunContext): (call: ToolCallRow) => boolean {
  const { transcript, consulted, remembered } = run
  const { tools } = run.configuration
  return (call) => {
    if (isPaused(call)) return isDuePause(run, call)
    if (isExpired(call, run.ports.clock.now())) return true
    if (consulted.has(call.id) || asksAboutInterruption(call)) return false
    const approval = tools.get(call.name)?.requiresApproval
    return typeof approval === 'function' || (approval === true && isRemembered(transcript, call, remembered))
  }
}

/** Whether a decision about the call came too late. */
export function isExpired({ approval, expiresAt }: ToolCallRow, now: Date): boolean {
  return approval === 'pending' && expiresAt !== null && expiresAt.getTime() <= now.getTime()
}
