import type { Approval, ToolCallRow, ToolEncoding, ToolOutcome, TranscriptMessage } from '../../models/rows.ts'
import { pauseOf } from '../../models/waiting.ts'
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
import { isTaskExpired, taskExpired } from './paused-calls.ts'
import { isExpired } from './reconsider.ts'
import { chatOf, type RunContext } from './run-context.ts'
import { subChatResult } from './sub-chats.ts'
import { toolOfCall } from './tool-of-call.ts'
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
  /** Left for a person, until then; null = for ever. */
  | { readonly kind: 'wait'; readonly interrupted: boolean; readonly expiresAt: Date | null }
  /** Nobody decided in time. */
  | { readonly kind: 'expire'; readonly to: 'approved' | 'denied' }
)

/** @throws {MissingAgentError} when this process lacks a tool that the model was offered. Nothing has been written then. */
export function requireTools(run: RunContext, calls: readonly ToolCallRow[]): void {
  const { agent } = run.configuration
  const missing = calls.filter((call) => toolOfCall(run, call) === undefined && needsTool(call))
  if (missing.length === 0) return
  const names = [...new Set(missing.map((call) => call.name))].join(', ')
  throw new MissingAgentError(
    `This process has no tool ${names}, which chat ${run.chat.id} of agent ${agent.name} was offered. ` +
      'Give it to connect({ agents, tools }); a worker that has it can go on.',
    { chatId: run.chat.id },
  )
}

/** A call that is answered without its tool needs none; one that was never offered does where someone let it run. */
function needsTool(call: ToolCallRow): boolean {
  const { approval, malformedArguments, offered } = call
  if (pauseOf(call).subChat !== undefined) return false
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
    const content = deniedCall(call.name, call.decisionReason)
    return { kind: 'answer', call, outcome: 'denied', content, approval: 'denied' }
  }
  if (call.malformedArguments !== null) {
    return { kind: 'answer', call, outcome: 'failed', content: malformedArguments(call.name, message.finishReason) }
  }
  const { calls } = run.configuration.settings.toolOptions ?? {}
  if (typeof calls === 'number' && calls > 1 && call.position >= calls) {
    return { kind: 'answer', call, outcome: 'failed', content: tooManyCalls(call.name, calls) }
  }
  const { subChat } = pauseOf(call)
  if (subChat !== undefined) return { kind: 'answer', call, ...subChatResult(call.name, subChat) }
  const tool = toolOfCall(run, call)
  if (tool === undefined) {
    const content = unknownTool(call.name, [...run.configuration.tools.keys()])
    return { kind: 'answer', call, outcome: 'failed', content }
  }
  const now = run.ports.clock.now()
  if (isTaskExpired(call, now)) return { kind: 'answer', call, outcome: 'failed', content: taskExpired(call.name) }
  // Looking at a task again is no second run of the tool.
  if (pauseOf(call).task !== undefined) return { kind: 'run', call, tool }
  if (isInterrupted(run, call)) {
    const context = { chat: chatOf(run), signal, claim: run.claim.signal, timers: run.ports.clock.timers }
    return planInterrupted(tool, call, await decideInterrupted(tool, call, context), expiryOf(tool, now))
  }
  const remembered = isRemembered(run.transcript, call, run.remembered)
  const decision = await decideApproval(tool, call, { chat: chatOf(run), remembered })
  switch (decision.kind) {
    case 'run':
      return { kind: 'run', call, tool }
    case 'deny':
      return { kind: 'answer', call, outcome: 'denied', content: deniedCall(call.name) }
    case 'wait':
      if (isExpired(call, now)) return { kind: 'expire', call, to: tool.onExpired === 'deny' ? 'denied' : 'approved' }
      return { kind: 'wait', call, interrupted: asksAboutInterruption(call), expiresAt: expiryOf(tool, now) }
    default:
      return decision satisfies never
  }
}

/** A call that was begun under a claim that is gone. One that waits for a person about that has no claim at all. */
function isInterrupted(run: RunContext, call: ToolCallRow): boolean {
  return call.startedAt !== null && call.claimedBy !== null && call.claimedBy !== run.claim.claimId
}

function expiryOf({ approvalExpiresMs }: Tool, now: Date): Date | null {
  return approvalExpiresMs === null ? null : new Date(now.getTime() + approvalExpiresMs)
}

function planInterrupted(tool: Tool, call: ToolCallRow, reconciled: Reconciled, expiresAt: Date | null): Plan {
  switch (reconciled.action) {
    case 'retry':
      return { kind: 'run', call, tool }
    case 'ask':
      return { kind: 'wait', call, interrupted: true, expiresAt }
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
