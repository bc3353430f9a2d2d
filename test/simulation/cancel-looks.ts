import type { CancelWatch } from '../../src/claims/cancel-watch.ts'
import type { SimulatedProcess } from './process.ts'
import { cancelLookMs } from './times.ts'

/** One look a period for all chats that are watched, as `CancelWatch` has it. */
export class CancelLooks implements Pick<CancelWatch, 'watch'> {
  readonly #process: SimulatedProcess
  readonly #watched = new Map<string, Set<() => void>>()
  #looking = false

  constructor(process: SimulatedProcess) {
    this.#process = process
  }

  watch(chatId: string, onCancel: () => void): () => void {
    const watchers = this.#watched.get(chatId) ?? new Set()
    this.#watched.set(chatId, watchers.add(onCancel))
    this.#lookLater()
    return () => {
      watchers.delete(onCancel)
      if (watchers.size === 0 && this.#watched.get(chatId) === watchers) this.#watched.delete(chatId)
    }
  }

  #lookLater(): void {
    if (this.#looking || this.#watched.size === 0) return
    this.#looking = true
    this.#process.later(cancelLookMs, () => {
      const asked = new Map([...this.#watched].map(([chatId, watchers]) => [chatId, [...watchers]]))
      const tell = (chatIds: readonly string[]) => {
        for (const chatId of chatIds) {
          const watching = this.#watched.get(chatId)
          for (const onCancel of asked.get(chatId) ?? []) if (watching?.delete(onCancel)) onCancel()
        }
      }
      void this.#process.statements
        .cancelledAmong([...asked.keys()])
        .then(tell, () => {})
        .finally(() => {
          this.#looking = false
          this.#lookLater()
        })
    })
  }
}
