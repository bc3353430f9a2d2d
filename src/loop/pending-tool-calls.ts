import type { ToolCallRow } from '../../models/rows.ts'
import { PendingToolCallsError } from '../errors.ts'

/** For an act that an open round does not allow. */
export function pendingToolCalls(chatId: string, open: readonly ToolCallRow[]): PendingToolCallsError {
  const calls = open.map((call) => `${call.name} (${call.toolCallId})`).join(', ')
  return new PendingToolCallsError(
    `Chat ${chatId} waits for tool calls without a result: ${calls}. Run them first, with runTools() or complete().`,
    { chatId },
  )
}
