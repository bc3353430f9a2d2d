import type { MessageRow } from './rows.ts'
import type { NewMessage } from './turns.ts'

/** A message, ready to be inserted; what is left out is null. */
export function newMessage(
  message: Pick<NewMessage, 'id' | 'chatId' | 'role'> & Partial<Omit<MessageRow, 'position' | 'updatedAt'>>,
): NewMessage {
  return {
    content: null,
    thinkingText: null,
    thinkingSignature: null,
    rawReasoning: null,
    citations: null,
    finishReason: null,
    outcome: null,
    encoding: null,
    attachments: null,
    summaryThrough: null,
    cacheBoundary: null,
    createdAt: new Date(),
    ...message,
  }
}

/** A user message, ready to be inserted. */
export function userMessage(
  chatId: string,
  id: string,
  { content, attachments }: Pick<MessageRow, 'content' | 'attachments'>,
): NewMessage {
  return newMessage({ id, chatId, role: 'user', content, attachments })
}
