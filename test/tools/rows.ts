import type { ToolCallRow } from '../../models/rows.ts'
import type { ToolContext } from '../../src/tools/tool.ts'

export const CHAT: ToolContext['chat'] = { id: 'chat-1', agent: 'support', owner: null }

/** A stored call that nobody has touched yet, but for what is given. */
export function storedCall(given: Partial<ToolCallRow> = {}): ToolCallRow {
  return {
    id: 'call-row-1',
    chatId: CHAT.id,
    messageId: 'message-1',
    resultId: null,
    position: 0,
    toolCallId: 'call_1',
    providerCallId: null,
    name: 'refund',
    namespace: null,
    arguments: {},
    malformedArguments: null,
    thoughtSignature: null,
    approval: null,
    remote: false,
    offered: true,
    claimedBy: null,
    claimedUntil: null,
    startedAt: null,
    mcpState: null,
    editedArguments: null,
    decidedBy: null,
    decisionReason: null,
    askedAt: null,
    expiresAt: null,
    createdAt: new Date(0),
    updatedAt: new Date(0),
    ...given,
  }
}

/** The error that an act ends with; fails if it ends well. */
export async function errorFrom(act: () => unknown): Promise<unknown> {
  try {
    await act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

/** A promise that is settled from outside. */
export function deferred<T>(): { promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  let resolve: (value: T) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve: (value) => resolve(value), reject: (error) => reject(error) }
}
