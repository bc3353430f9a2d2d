import type { ToolCallRow } from '../../models/rows.ts'
import type { EventToolCall } from './event.ts'

/** A call as viewers see it. */
export function eventToolCall(call: ToolCallRow): EventToolCall {
  return { toolCallId: call.toolCallId, name: call.name, arguments: call.arguments }
}
