import type { ToolCallRow, ToolOutcome } from '../../models/rows.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { ToolEnded } from '../observability/observation.ts'
import type { ToolResult } from '../tools/tool.ts'
import { factsOf, type RunContext } from './run-context.ts'
import { toolOfCall } from './tool-of-call.ts'

/** Executes a tool as a step of its own, so that what it traces stands below the call, and tells what came of it. */
export function executeObserved(
  run: RunContext,
  call: ToolCallRow,
  execute: () => Promise<ToolResult>,
): Promise<ToolResult> {
  const { tool, toolCallId } = namesOf(run, call)
  return run.ports.within({ kind: 'tool', chatId: run.chat.id, tool, toolCallId }, async (report) => {
    const begun = performance.now()
    try {
      const result = await execute()
      const error = 'raise' in result ? { error: result.raise } : {}
      const outcome = result.pause === undefined ? result.outcome : ('paused' as const)
      report(ended(run, call, { ...result, ...error, outcome, executed: true, begun }))
      return result
    } catch (error) {
      report(ended(run, call, { outcome: 'abandoned', content: null, error, executed: true, begun }))
      throw error
    }
  })
}

/** A call that got its result without being executed. */
export function answeredCall(run: RunContext, call: ToolCallRow, outcome: ToolOutcome, content: string): ToolEnded {
  return ended(run, call, { outcome, content, executed: false, begun: null })
}

function ended(
  run: RunContext,
  call: ToolCallRow,
  end: {
    readonly outcome: ToolEnded['outcome']
    readonly content: string | null
    readonly error?: unknown
    readonly executed: boolean
    readonly begun: number | null
  },
): ToolEnded {
  const { content } = run.ports
  return {
    type: 'tool.ended',
    ...factsOf(run),
    ...namesOf(run, call),
    outcome: end.outcome,
    executed: end.executed,
    durationMs: end.begun === null ? 0 : performance.now() - end.begun,
    error: end.error === undefined ? null : errorFacts(end.error, content),
    arguments: content(() => call.malformedArguments ?? JSON.stringify(call.arguments)),
    result: content(end.content),
  }
}

/** A name that no tool has is a word of the model, so it is not passed on. */
export function namesOf(run: RunContext, call: ToolCallRow): { readonly tool: string; readonly toolCallId: string } {
  const { name, toolCallId } = call
  return { tool: toolOfCall(run, call) !== undefined ? name : 'unknown', toolCallId }
}
