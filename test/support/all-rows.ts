import type { Threadmill } from '../../src/index.ts'

/** Every row of every table, to see that nothing was changed. */
export async function allRows(mill: Threadmill): Promise<Record<string, unknown[]>> {
  const { Chat, Message, ToolCall, QueuedMessage, Receipt, Usage } = mill.models
  const options = { order: [['id', 'ASC']] as [string, string][], raw: true as const }
  return {
    chats: await Chat.findAll(options),
    messages: await Message.findAll(options),
    toolCalls: await ToolCall.findAll(options),
    queuedMessages: await QueuedMessage.findAll(options),
    receipts: await Receipt.findAll(options),
    usages: await Usage.findAll(options),
  }
}
