import type { ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { asksAboutInterruption } from '../tools/approval.ts'
import type { Tool } from '../tools/tool.ts'
import { isPaused, isRemembered, type RememberedTool } from './transcript.ts'

/**
 * Which waiting calls a run may look into once more: those whose tool has a resolver that this run has not asked yet, and
 * those whose tool was approved for the rest of the chat meanwhile. A question about an interruption is a person's alone.
 */
export function reconsiderable(
  transcript: readonly TranscriptMessage[],
  tools: ReadonlyMap<string, Tool>,
  consulted: ReadonlySet<string>,
  earlier: readonly RememberedTool[],
): (call: ToolCallRow) => boolean {
  return (call) => {
    if (consulted.has(call.id) || isPaused(call) || asksAboutInterruption(call)) return false
    const approval = tools.get(call.name)?.requiresApproval
    return typeof approval === 'function' || (approval === true && isRemembered(transcript, call, earlier))
  }
}
