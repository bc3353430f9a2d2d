import type { ClaimKey } from '../../models/claims.ts'
import type { ChatRow, ToolCallRow, ToolEncoding, ToolOutcome } from '../../models/rows.ts'
import { openSubChat, type SubChatOutcome, type SubChatState } from '../../models/waiting.ts'
import type { DelegationContext } from '../tools/delegating.ts'
import { errorText, interruptedCall } from '../tools/results.ts'
import { cutToLimit } from '../tools/text-limit.ts'
import { isRetryable } from './ending.ts'
import type { LoopPorts, RunContext } from './run-context.ts'

// Calls that another agent answers in a chat of its own: what its end means to the call, and to its parent's run.

interface SubChatResult {
  readonly outcome: ToolOutcome
  readonly content: string
  readonly encoding?: ToolEncoding
}

/** What a call gets of its sub-chat, once that has ended or taken too long. */
export function subChatResult(name: string, { agent, outcome }: SubChatState): SubChatResult {
  if (outcome === undefined) {
    return { outcome: 'failed', content: errorText(`Agent ${agent}, which ${name} asked, did not answer in time.`) }
  }
  switch (outcome.kind) {
    case 'answered':
      return { outcome: 'succeeded', content: outcome.content, encoding: 'text' }
    case 'failed':
      return {
        outcome: 'failed',
        content: errorText(`Agent ${agent}, which ${name} asked, could not answer: ${outcome.message}`),
      }
    case 'cancelled':
      return { outcome: 'interrupted', content: interruptedCall(name, `agent ${agent} was stopped`) }
    default:
      return outcome satisfies never
  }
}

/** Names the sub-chat that a call waits for, where it is about to get another result. */
export function abandons(call: ToolCallRow): { readonly abandons?: string } {
  const open = openSubChat(call)
  return open === null ? {} : { abandons: open.id }
}

/**
 * Tells the call that a sub-chat is for how it ended, before the sub-chat itself is given back: a process that dies in between is followed by
 * one that tells it again. Nothing to tell in any other chat. (E90)
 * @param claim of the run that says so; null = of somebody who deletes the sub-chat.
 * @throws {ClaimLostError} when that run does not hold the sub-chat any longer: what it says counts no more.
 */
export async function tellParent(
  { ports, chat, claim }: { readonly ports: LoopPorts; readonly chat: ChatRow; readonly claim: ClaimKey | null },
  outcome: SubChatOutcome,
): Promise<void> {
  if (chat.parentId === null) return
  const told = outcome.kind === 'answered' ? { ...outcome, content: cutToLimit(outcome.content) } : outcome
  if (await ports.rows.reportToParent(chat, told, claim)) await ports.bell.ring(chat.parentId, 'complete')
}

/** Whom the calls of a run can delegate to. */
export function delegationOf({ ports, chat }: Pick<RunContext, 'ports' | 'chat'>): DelegationContext {
  return {
    agentNamed: (name) => ports.agentNamed(name),
    parent: { id: chat.id, owner: chat.owner, rootId: chat.rootId, depth: chat.depth },
    newId: () => ports.clock.newId(),
    now: () => ports.clock.now(),
    isPassable: isRetryable,
  }
}
