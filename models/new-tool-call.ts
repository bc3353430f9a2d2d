import type { ToolCallRow } from './rows.ts'

/** A call, ready to be inserted; what is left out is as of a call that nobody has looked at. */
export function newToolCall(
  call: Pick<ToolCallRow, 'id' | 'chatId' | 'messageId' | 'position' | 'toolCallId' | 'name' | 'createdAt'> &
    Partial<ToolCallRow>,
): ToolCallRow {
  return {
    resultId: null,
    providerCallId: null,
    namespace: null,
    arguments: {},
    malformedArguments: null,
    thoughtSignature: null,
    approval: null,
    remote: false,
    offered: false,
    claimedBy: null,
    claimedUntil: null,
    startedAt: null,
    mcpState: null,
    editedArguments: null,
    decidedBy: null,
    decisionReason: null,
    askedAt: null,
    expiresAt: null,
    updatedAt: call.createdAt,
    ...call,
  }
}
