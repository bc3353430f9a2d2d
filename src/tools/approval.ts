import type { ToolCallRow } from '../../models/rows.ts'
import type { Tool, ToolContext } from './tool.ts'

/** What to do with a call: run it, answer it with a refusal, or leave it for a person. */
export type ApprovalDecision = { readonly kind: 'run' } | { readonly kind: 'deny' } | { readonly kind: 'wait' }

export interface ApprovalFacts {
  readonly chat: ToolContext['chat']
  /** Whether an earlier call of the same name and namespace in this chat was approved for the rest of the chat. */
  readonly remembered: boolean
}

const RUN: ApprovalDecision = { kind: 'run' }
const DENY: ApprovalDecision = { kind: 'deny' }
const WAIT: ApprovalDecision = { kind: 'wait' }

/**
 * Decides about a call. The first of these that says something wins:
 *
 * 1. A decision recorded on the call itself: a person made it, so that it binds a resolver too.
 * 2. A question about an interrupted call: waits for a person, whatever else would let it run.
 * 3. A tool without approval: runs.
 * 4. A resolver: true runs, false denies, anything else waits. Asked again each time; `remembered` does not count.
 * 5. `remembered`: runs. Otherwise the call waits.
 *
 * An approval that is none of ours counts as undecided. The only I/O is the resolver's; what it throws comes out.
 */
export async function decideApproval(
  tool: Tool,
  call: Readonly<ToolCallRow>,
  facts: ApprovalFacts,
): Promise<ApprovalDecision> {
  if (call.approval === 'denied') return DENY
  if (call.approval === 'approved' || call.approval === 'remembered') return RUN
  if (asksAboutInterruption(call)) return WAIT
  if (tool.requiresApproval === false) return RUN
  if (tool.requiresApproval === true) return facts.remembered ? RUN : WAIT
  const resolved = await tool.requiresApproval(call, facts.chat)
  if (resolved === true) return RUN
  return resolved === false ? DENY : WAIT
}

/**
 * Whether a call waits for a person because a run of it was interrupted: it has begun, and is undecided. Whoever starts
 * a call that says `pending` (a resolver or a remembered approval let it) must set it to null, or it reads as this.
 */
export function asksAboutInterruption(call: Pick<ToolCallRow, 'approval' | 'startedAt'>): boolean {
  return call.approval === 'pending' && call.startedAt !== null
}
