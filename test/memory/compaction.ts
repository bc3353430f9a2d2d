import type { CompactWishAfter, MeasuredContext } from '../../models/compaction.ts'
import type { ChatRow } from '../../models/rows.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import { fence, live, wishAfterCancel } from './fence.ts'
import { type MemoryTables, newest } from './tables.ts'
import { linkUsages } from './turns.ts'

type SummaryRows = Pick<
  RowsPort,
  'countCompaction' | 'commitSummary' | 'releaseCompaction' | 'releaseCancelledCompaction' | 'measuredContext'
>

/** The statements of `models/compaction.ts`. */
export function summaryRows(tables: MemoryTables): SummaryRows {
  return {
    async countCompaction(key) {
      const chat = fence(tables, key, { unlessCancelled: true })
      if (chat === null) return false
      chat.compactions++
      return true
    },
    async commitSummary(key, { message, usageIds, seen }) {
      const chat = fence(tables, key, { messages: 1, aside: true, unlessCancelled: true })
      if (chat === null) return false
      if (chat.compactSeq === seen) chat.compactAt = null
      tables.append(key.chatId, [message])
      linkUsages(tables, usageIds, message.id)
      return true
    },
    async releaseCompaction(key, { seen, wish, died }) {
      const chat = live(tables, key)
      if (chat === null) return false
      const now = tables.now()
      if (chat.compactSeq === seen) chat.compactAt = dueAfter(chat, wish, now)
      if (wish.kind === 'none') chat.compactAttempts = 0
      if (died) chat.deaths++
      Object.assign(chat, { claimedBy: null, claimedUntil: null, updatedAt: now })
      return true
    },
    async releaseCancelledCompaction(key) {
      const chat = live(tables, key)
      if (chat === null) return false
      chat.wantedAt = wishAfterCancel(tables, chat)
      Object.assign(chat, { cancelTurn: null, claimedBy: null, claimedUntil: null, updatedAt: tables.now() })
      return true
    },
    measuredContext: async (chatId) => measuredContext(tables, chatId),
  }
}

function dueAfter(chat: ChatRow, wish: CompactWishAfter, now: Date): Date | null {
  if (wish.kind === 'unchanged') return chat.compactAt
  return wish.kind === 'none' ? null : new Date(now.getTime() + wish.delayMs)
}

function measuredContext(tables: MemoryTables, chatId: string): MeasuredContext | null {
  const measured = newest(
    tables.usages.filter(
      ({ chatId: of, operation, status, messageId }) =>
        of === chatId && operation === 'chat' && status === 'succeeded' && messageId !== null,
    ),
  )
  if (measured === null || measured.messageId === null) return null
  const { messageId, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = measured
  if (inputTokens === null || outputTokens === null) return null
  return { messageId, tokens: inputTokens + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0) + outputTokens }
}
