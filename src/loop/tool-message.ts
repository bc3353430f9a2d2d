import type { ToolOutcome } from '../../models/rows.ts'
import type { NewMessage } from '../../models/turns.ts'
import type { RunContext } from './run-context.ts'

/** A result, ready to be stored. */
export function toolMessage(run: RunContext, outcome: ToolOutcome, content: string): NewMessage {
  return {
    id: run.ports.clock.newId(),
    chatId: run.chat.id,
    role: 'tool',
    content,
    thinkingText: null,
    thinkingSignature: null,
    rawReasoning: null,
    citations: null,
    finishReason: null,
    outcome,
    summaryThrough: null,
    createdAt: run.ports.clock.now(),
  }
}
