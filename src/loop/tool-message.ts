import { newMessage } from '../../models/new-message.ts'
import type { ToolEncoding, ToolOutcome } from '../../models/rows.ts'
import type { NewMessage } from '../../models/turns.ts'
import type { RunContext } from './run-context.ts'

/** A result, ready to be stored. Failures of every kind are JSON. */
export function toolMessage(
  run: RunContext,
  outcome: ToolOutcome,
  content: string,
  encoding: ToolEncoding = 'json',
): NewMessage {
  const { clock } = run.ports
  return newMessage({
    id: clock.newId(),
    chatId: run.chat.id,
    role: 'tool',
    content,
    outcome,
    encoding,
    createdAt: clock.now(),
  })
}
