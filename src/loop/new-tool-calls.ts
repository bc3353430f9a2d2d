import { newToolCall } from '../../models/new-tool-call.ts'
import type { ToolCallRow } from '../../models/rows.ts'
import { freshCallId, type NewMessage } from '../../models/turns.ts'
import type { Answer } from '../providers/provider.ts'
import type { RunContext } from './run-context.ts'
import { storableName } from './well-formed-answer.ts'

const idLimit = 255

/** The rows of an answer's calls, in the model's order, each with an id that no other call of the answer has. */
export function newToolCalls(run: RunContext, message: NewMessage, answer: Answer): ToolCallRow[] {
  const taken = new Set<string>()
  return answer.toolCalls.map((call, position) => {
    const sent = call.providerCallId
    const usable = sent !== null && sent !== '' && sent.length <= idLimit && !taken.has(sent)
    if (usable) taken.add(sent)
    return newToolCall({
      id: run.ports.clock.newId(),
      chatId: run.chat.id,
      messageId: message.id,
      position,
      toolCallId: usable ? sent : freshCallId(),
      // A second call of the same id goes by its fresh one: a request may not hold an id twice.
      providerCallId: sent !== null && sent.length > idLimit ? sent : null,
      name: storableName(call.name),
      arguments: call.arguments ?? {},
      malformedArguments: call.arguments === null ? call.argumentsText : null,
      thoughtSignature: call.thoughtSignature,
      offered: run.configuration.tools.has(call.name),
      createdAt: message.createdAt,
    })
  })
}
