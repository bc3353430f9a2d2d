import type { NewMessage } from './turns.ts'

/** A user message, ready to be inserted. */
export function userMessage(chatId: string, id: string, content: string | null): NewMessage {
  return {
    id,
    chatId,
    role: 'user',
    content,
    createdAt: new Date(),
    thinkingText: null,
    thinkingSignature: null,
    rawReasoning: null,
    citations: null,
    finishReason: null,
    outcome: null,
    summaryThrough: null,
  }
}
