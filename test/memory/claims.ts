import type { TakeFor } from '../../models/claims.ts'
import type { ChatRow } from '../../models/rows.ts'
import type { ClaimsPort, HeldClaim } from '../../src/loop/ports.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

/** Far beyond any run: what lives in one process can't outlive it. */
const forever = new Date(8_640_000_000_000_000)

/** Claims of chats that live in this process alone: they can be contended, and are never lost. */
export class MemoryClaims implements ClaimsPort {
  readonly #tables: MemoryTables
  readonly #watching = new Map<string, Set<() => void>>()
  readonly #newId: () => string

  constructor(tables: MemoryTables, newId: () => string) {
    this.#tables = tables
    this.#newId = newId
  }

  async take(chatId: string, reason: TakeFor): ReturnType<ClaimsPort['take']> {
    const tables = this.#tables
    const chat = tables.chat(chatId)
    const now = tables.now()
    const claimed = isClaimed(chat, now.getTime())
    if (claimed || !isWanted(chat, reason, now)) {
      const dueForMs = chat.wantedAt === null ? null : now.getTime() - chat.wantedAt.getTime()
      const { agent, putOff } = chat
      const untaken = { agent, putOff, claimed, dueForMs, compactDue: tables.look(chatId).compactDue }
      return { kind: 'refused', untaken }
    }
    const claimId = this.#newId()
    Object.assign(chat, { claimedBy: claimId, claimedUntil: forever, claimToken: chat.claimToken + 1 })
    count(chat, reason, now)
    return { kind: 'held', claim: this.#held(chatId, claimId) }
  }

  /** Tells the run of a chat, if there is one, that its turn was cancelled. */
  cancelled(chatId: string): void {
    for (const tell of this.#watching.get(chatId) ?? []) tell()
  }

  #held(chatId: string, claimId: string): HeldClaim {
    const { signal } = new AbortController()
    return {
      chatId,
      claimId,
      signal,
      watchCancel: (onCancel) => {
        const watching = this.#watching.get(chatId) ?? new Set()
        this.#watching.set(chatId, watching.add(onCancel))
        return () => watching.delete(onCancel)
      },
      requireTime: () => {},
      keepToolCall: () => () => {},
      end: async () => {
        this.#watching.delete(chatId)
      },
    }
  }
}

function isWanted(chat: ChatRow, reason: TakeFor, now: Date): boolean {
  if (reason === 'job') return chat.wantedAt !== null && chat.wantedAt <= now
  return reason !== 'compact-job' || (chat.compactAt !== null && chat.compactAt <= now)
}

function count(chat: ChatRow, reason: TakeFor, now: Date): void {
  switch (reason) {
    case 'job':
    case 'verb':
      Object.assign(chat, { wantedQueue: null, attempts: chat.attempts + 1 })
      return
    case 'complete': {
      const again = chat.failure !== null || chat.cancelledTurn === chat.turn
      if (again) Object.assign(chat, { rounds: 0, compactions: 0, endedTurn: null })
      Object.assign(chat, { failure: null, cancelledTurn: null, wantedQueue: null, attempts: 1 })
      want(chat, now)
      return
    }
    case 'compact-job':
      chat.compactAttempts++
      return
    case 'compact':
      return
    default:
      reason satisfies never
  }
}

/** A wish for now: the earliest due time wins. */
export function want(chat: ChatRow, now: Date): void {
  if (chat.wantedAt === null || chat.wantedAt > now) chat.wantedAt = now
  chat.wantedSeq++
}
