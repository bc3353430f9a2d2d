import type { ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import type { NewResult } from '../../models/turns.ts'
import { interruptedCall } from '../tools/results.ts'
import { cancelTasks } from './paused-calls.ts'
import type { RunContext } from './run-context.ts'
import { abandons } from './sub-chats.ts'
import { toolMessage } from './tool-message.ts'

/** 'Interrupted' results for calls that will never run. */
export function closingResults(run: RunContext, calls: readonly ToolCallRow[], reason: string): NewResult[] {
  return calls.map((call) => ({
    callId: call.id,
    message: toolMessage(run, 'interrupted', interruptedCall(call.name, reason)),
    ...abandons(call),
  }))
}

/** Tells the run and its viewers of results that were committed. */
export function noteClosed(
  run: RunContext,
  calls: readonly ToolCallRow[],
  results: readonly NewResult[],
): TranscriptMessage[] {
  const stored: TranscriptMessage[] = []
  for (const [at, call] of calls.entries()) {
    const message = results[at]?.message
    if (message === undefined) continue
    call.resultId = message.id
    stored.push(run.append(message))
    const { toolCallId, name } = call
    const told = { toolCallId, name, outcome: 'interrupted', content: message.content ?? '' } as const
    run.publish({ type: 'tool.result', ...told, attachments: [] })
  }
  return stored
}

/** Closes the calls of rounds that a later message left behind, so that the request that follows is whole, and ends their tasks. */
export async function closeAbandoned(run: RunContext, calls: readonly ToolCallRow[]): Promise<void> {
  if (calls.length === 0) return
  await cancelTasks(run, calls)
  const results = closingResults(run, calls, 'its round was given up before it ended')
  for (let at = 0; at < results.length; at++) await run.hooks.call('beforeMessage')
  await run.ports.rows.closeToolCalls(run.claim, results)
  for (const message of noteClosed(run, calls, results)) await run.hooks.call('afterMessage', message)
}
