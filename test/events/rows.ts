import type { ChatRow, TranscriptMessage } from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import type { RowsOfChat } from '../../src/events/history.ts'
import { emptyChat } from '../support/empty-chat.ts'

const at = new Date('2026-01-01T00:00:00Z')

/** A chat's row; by default one that nobody ever ran. */
export function lookOf(chat: Partial<ChatRow> = {}): ChatLook {
  const row: ChatRow = {
    ...emptyChat,
    id: 'c',
    agent: null,
    turn: 1,
    createdAt: at,
    updatedAt: at,
    ...chat,
  }
  return {
    chat: row,
    claimed: row.claimedBy !== null,
    due: row.wantedAt !== null,
    dueForMs: null,
    queued: { steering: 0, total: 0 },
    orphanedUsages: 0,
    compactDue: false,
    summaryThrough: null,
    draft: null,
  }
}

export function messageOf(message: Partial<TranscriptMessage> & Pick<TranscriptMessage, 'role'>): TranscriptMessage {
  return {
    id: 'm1',
    chatId: 'c',
    position: 0,
    content: null,
    thinkingText: null,
    thinkingSignature: null,
    rawReasoning: null,
    citations: null,
    finishReason: null,
    outcome: null,
    summaryThrough: null,
    encoding: null,
    attachments: null,
    cacheBoundary: null,
    createdAt: at,
    updatedAt: at,
    toolCalls: [],
    ...message,
  }
}

export const rowsOf = (chat: Partial<ChatRow> = {}, transcript: readonly TranscriptMessage[] = []): RowsOfChat => ({
  look: lookOf(chat),
  transcript,
  queue: [],
  below: [],
})

/** A chat that somebody runs under this token, and of which nothing is stored yet but the question. */
export const running = (claimToken = 1): RowsOfChat =>
  rowsOf({ claimedBy: 'someone', claimToken }, [messageOf({ role: 'user', content: 'Well?', id: 'u1' })])

/** A chat whose run under this token stored its answer. */
export const answered = (claimToken: number, content: string, id = 'm1'): RowsOfChat =>
  rowsOf({ claimToken }, [
    messageOf({ role: 'user', content: 'Well?', id: 'u1' }),
    messageOf({ role: 'assistant', content, id, finishReason: 'stop', position: 1 }),
  ])
