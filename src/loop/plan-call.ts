import type { Approval, ToolCallRow, ToolEncoding, ToolOutcome, TranscriptMessage } from '../../models/rows.ts'
import { MissingAgentError } from '../errors.ts'
import { asksAboutInterruption, decideApproval } from '../tools/approval.ts'
import { decideInterrupted } from '../tools/interrupted.ts'
import {
  deniedCall,
  interruptedCall,
  malformedArguments,
  resultOf,
  tooManyCalls,
  unknownTool,
} from '../tools/results.ts'
import type { Reconciled, Tool } from '../tools/tool.ts'
import type { RunContext } from './run-context.ts'
import { isRemembered } from './transcript.ts'

/** What becomes of one open call in this round. */
export type Plan = { readonly call: ToolCallRow } & (
  | { readonly kind: 'run'; readonly tool: Tool }
  /** Answered without running. `approval` is the decision that the answer rests on, where it rests on one. */
  | {
      readonly kind: 'answer'
      readonly outcome: ToolOutcome
      readonly content: string
      readonly encoding?: ToolEncoding
      readonly approval?: Approval
    }
  /** Left for a person. */
  | { readonly kind: 'wait'; readonly interrupted: boolean }
)

/** @throws {MissingAgentError} when this process lacks a tool that the model was offered. Nothing has been written then. */
export function requireTools(run: RunContext, calls: readonly ToolCallRow[]): void {
  const { tools, agent } = run.configuration
  const missing = calls.filter((call) => !tools.has(call.name) && needsTool(call))
  if (missing.length === 0) return
  const names = [...new Set(missing.map((call) => call.name))].join(', ')
  throw new MissingAgentError(
    `This process has no tool ${names}, which chat ${run.chat.id} of agent ${agent.name} was offered. ` +
      'Give it to connect({ agents, tools }); a worker that has it can go on.',
    { chatId: run.chat.id },
  )
}

/** A call that is answered without its tool needs none; one that was never offered does where someone let it run. */
function needsTool({ approval, malformedArguments, offered }: ToolCallRow): boolean {
  return approval !== 'denied' && malformedArguments === null && (offered || approval !== null)
}

/** Decides about one call; the first that fits wins: a denial, unreadable arguments, no such tool, an interruption, its approval. */
export async function planCall(
  run: RunContext,
  message: TranscriptMessage,
  call: ToolCallRow,
  signal: AbortSignal,
): Promise<Plan> {
  if (call.approval === 'denied') {
    return { kind: 'answer', call, outcome: 'denied', content: deniedCall(call.name), approval: 'denied' }
  }
  if (call.malformedArguments !== null) {
    return { kind: 'answer', call, outcome: 'failed', content: malformedArguments(call.name, message.finishReason) }
  }
  const { calls } = run.configuration.settings.toolOptions ?? {}
  if (typeof calls === 'number' && calls > 1 && call.position >= calls) {
    return { kind: 'answer', call, outcome: 'failed', content: tooManyCalls(call.name, calls) }
  }
  const tool = run.configuration.tools.get(call.name)
  if (tool === undefined) {
    const content = unknownTool(call.name, [...run.configuration.tools.keys()])
    return { kind: 'answer', call, outcome: 'failed', content }
  }
  if (isInterrupted(run, call)) {
    const context = { chat: chatOf(run), signal }
    return planInterrupted(tool, call, await decideInterrupted(tool, call, context))
  }
  const remembered = isRemembered(run.transcript, call, run.remembered)
  const decision = await decideApproval(tool, call, { chat: chatOf(run), remembered })
  switch (decision.kind) {
    case 'run':
      return { kind: 'run', call, tool }
    case 'deny':
      return { kind: 'answer', call, outcome: 'denied', content: deniedCall(call.name) }
    case 'wait':
      return { kind: 'wait', call, interrupted: asksAboutInterruption(call) }
    default:
      return decision satisfies never
  }
}

/** A call that was begun under a claim that is gone. One that waits for a person about that has no claim at all. */
function isInterrupted(run: RunContext, call: ToolCallRow): boolean {
  return call.startedAt !== null && call.claimedBy !== null && call.claimedBy !== run.claim.claimId
}

function planInterrupted(tool: Tool, call: ToolCallRow, reconciled: Reconciled): Plan {
  switch (reconciled.action) {
    case 'retry':
      return { kind: 'run', call, tool }
    case 'ask':
      return { kind: 'wait', call, interrupted: true }
    case 'fail': {
      const reason = reconciled.message ?? 'its process died while it ran, so its outcome is unknown'
      return { kind: 'answer', call, outcome: 'interrupted', content: interruptedCall(call.name, reason) }
    }
    case 'result': {
      return { kind: 'answer', call, ...resultOf(reconciled.result) }
    }
    default:
      return reconciled satisfies never
  }
}

export function chatOf(run: RunContext): { id: string; agent: string | null; owner: string | null } {
  const { id, agent, owner } = run.chat
  return { id, agent, owner }
}
