import { chatNotFound } from '../../models/claims.ts'
import type { ClaimsPort, HeldClaim } from '../../src/loop/ports.ts'
import { readUntaken, takeChat } from './claims.ts'
import type { MemoryTables } from './tables.ts'

/** Claims of chats that live in this process alone: they can be contended, and outlive any run. */
export class MemoryClaims implements ClaimsPort {
  readonly #tables: MemoryTables
  readonly #ttlMs: number
  readonly #watching = new Map<string, Set<() => void>>()
  readonly #newId: () => string

  constructor(tables: MemoryTables, ttlMs: number, newId: () => string) {
    this.#tables = tables
    this.#ttlMs = ttlMs
    this.#newId = newId
  }

  async take(...[chatId, reason, deathsBelow]: Parameters<ClaimsPort['take']>): ReturnType<ClaimsPort['take']> {
    const claimId = this.#newId()
    if (takeChat(this.#tables, { chatId, claimId, ttlMs: this.#ttlMs, reason, agents: [], deathsBelow })) {
      return { kind: 'held', claim: this.#held(chatId, claimId) }
    }
    const untaken = readUntaken(this.#tables, chatId)
    if (untaken === null) throw chatNotFound(chatId)
    return { kind: 'refused', untaken }
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
