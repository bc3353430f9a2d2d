import type { RowsPort } from '../../src/loop/ports.ts'
import { releaseChat } from './claims.ts'
import { summaryRows } from './compaction.ts'
import { setAside } from './deaths.ts'
import { pauseRows } from './pausing.ts'
import type { MemoryTables } from './tables.ts'
import { turnRows } from './turns.ts'

/**
 * The rows of chats that live in this process alone: each statement of `models/` in the same words, held to them by
 * `contract.test.ts`.
 * @param ttlMs how long a tool call is claimed when it starts.
 */
export function memoryRows(tables: MemoryTables, ttlMs: number): RowsPort {
  return {
    look: async (chatId) => tables.look(chatId),
    transcript: async (chatId, through) => tables.transcript(chatId, through),
    remembered: async (chatId) => remembered(tables, chatId),
    toolCalls: async (messageId) => callsOf(tables, messageId),
    queue: async (chatId) => tables.queue(chatId).map((row) => ({ ...row })),
    ...turnRows(tables, ttlMs),
    ...pauseRows(tables),
    release: async ({ chatId, claimId }, release) => releaseChat(tables, { chatId, claimId, ...release }),
    ...summaryRows(tables),
    setAside: async (aside) => setAside(tables, aside),
    ...usageRows(tables),
  }
}

function remembered(tables: MemoryTables, chatId: string): { name: string; namespace: string | null }[] {
  const calls = tables.toolCalls(chatId).filter((call) => call.approval === 'remembered')
  const distinct = new Map(calls.map(({ name, namespace }) => [`${namespace}:${name}`, { name, namespace }]))
  return [...distinct.values()]
}

function callsOf(tables: MemoryTables, messageId: string) {
  const calls = [...tables.chats.keys()].flatMap((id) => tables.toolCalls(id))
  return calls.filter((call) => call.messageId === messageId).map((call) => ({ ...call }))
}

/** The statements of `models/usages.ts`. */
function usageRows(tables: MemoryTables): Pick<RowsPort, 'openUsage' | 'closeUsage' | 'closeOrphanedUsages'> {
  return {
    async openUsage(usage) {
      const now = tables.now()
      const row = { ...unreported, ...usage, messageId: null, status: 'pending' as const }
      tables.usages.push({ ...row, createdAt: now, updatedAt: now })
    },
    async closeUsage(id, closing) {
      const usage = tables.usages.find((row) => row.id === id)
      if (usage !== undefined) Object.assign(usage, closing, { updatedAt: tables.now() })
    },
    async closeOrphanedUsages(chatId, claimToken) {
      for (const usage of tables.usages) {
        if (usage.chatId !== chatId || usage.status !== 'pending' || usage.claimToken >= claimToken) continue
        Object.assign(usage, { status: 'failed', errorCode: 'orphaned', updatedAt: tables.now() })
      }
    },
  }
}

const unreported = {
  inputTokens: null,
  outputTokens: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  thinkingTokens: null,
  inputCost: null,
  outputCost: null,
  cacheReadCost: null,
  cacheWriteCost: null,
  totalCost: null,
  errorCode: null,
}
