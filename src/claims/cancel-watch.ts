import { errorFacts } from '../observability/error-facts.ts'
import type { Observe } from '../observability/observation.ts'

/** Looks for cancels of the turns that this process runs: one statement a period for all of them. */
export class CancelWatch {
  readonly #cancelledAmong: (chatIds: readonly string[]) => Promise<string[]>
  readonly #everyMs: number
  readonly #observe: Observe
  readonly #watched = new Map<string, Set<() => void>>()
  #timer: NodeJS.Timeout | null = null

  constructor(cancelledAmong: (chatIds: readonly string[]) => Promise<string[]>, everyMs: number, observe: Observe) {
    this.#cancelledAmong = cancelledAmong
    this.#everyMs = everyMs
    this.#observe = observe
  }

  /** Calls `onCancel` once when the chat's running turn is found cancelled, until the returned function is called. */
  watch(chatId: string, onCancel: () => void): () => void {
    const watchers = this.#watched.get(chatId) ?? new Set()
    this.#watched.set(chatId, watchers.add(onCancel))
    this.#timer ??= setInterval(() => void this.#look(), this.#everyMs).unref()
    return () => {
      watchers.delete(onCancel)
      if (watchers.size === 0 && this.#watched.get(chatId) === watchers) this.#watched.delete(chatId)
      if (this.#watched.size === 0) this.close()
    }
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  async #look(): Promise<void> {
    try {
      // Only who watched when the question was asked is told: by the answer the chat may be in its next turn.
      const asked = new Map([...this.#watched].map(([chatId, watchers]) => [chatId, [...watchers]]))
      for (const chatId of await this.#cancelledAmong([...asked.keys()])) {
        const watching = this.#watched.get(chatId)
        for (const onCancel of asked.get(chatId) ?? []) if (watching?.delete(onCancel)) onCancel()
      }
    } catch (error) {
      this.#observe({ type: 'database.trouble', doing: 'looking for cancelled turns', error: errorFacts(error) })
    }
  }
}
