import type { ToolCallRow, TranscriptMessage } from '../../models/rows.ts'

/** How often the call's tool was called in a row, this call included: nothing but calls of it since the turn began, or since another tool's. */
export function timesRunning(transcript: readonly TranscriptMessage[], call: ToolCallRow): number {
  const turn = transcript.slice(transcript.findLastIndex((message) => message.role === 'user') + 1)
  const calls = turn.flatMap((message) => message.toolCalls)
  const before = calls.slice(0, calls.findIndex(({ id }) => id === call.id) + 1).reverse()
  const other = before.findIndex(({ name }) => name !== call.name)
  return other === -1 ? before.length : other
}

/** A result with a word of warning to the model. (M36) */
export function withWarning(content: string, name: string, times: number): string {
  return `${content}\n\nWarning: ${name} was called ${times} times in a row. If that leads nowhere, do something else or answer.`
}
