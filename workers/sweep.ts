import type { Database } from '../models/database.ts'
import { dueChats, keepPutOffShort, msToNextLapse } from '../models/sweep.ts'
import { errorFacts } from '../src/observability/error-facts.ts'
import type { Observe } from '../src/observability/observation.ts'
import type { Bells } from './bell.ts'

const batch = 200

/** Sweeps that lapses of claims bring forward are as far apart as this part of the usual pause, at least. */
const closest = 0.1

/**
 * Rings for chats that are due and that nobody runs: what Redis lost, what a dead process held. A timer of the process,
 * since it must outlive what it insures. It only rings; it clears nothing. It comes back when a claim is about to lapse: by
 * then its process has renewed it, or is dead.
 */
export class Sweeper {
  readonly #db: Database
  readonly #bells: Bells
  readonly #everyMs: number
  readonly #agents: readonly string[]
  readonly #observe: Observe
  #timer: NodeJS.Timeout | null = null
  #sweeping: Promise<unknown> = Promise.resolve()
  #stopped = false
  /** When the next claim lapses, by `performance.now()`; null when no sweep has seen one. */
  #lapse: number | null = null

  constructor(options: { db: Database; bells: Bells; everyMs: number; agents: readonly string[]; observe: Observe }) {
    this.#db = options.db
    this.#bells = options.bells
    this.#everyMs = options.everyMs
    this.#agents = options.agents
    this.#observe = options.observe
  }

  start(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#sweeping = this.sweep().finally(() => this.start())
    }, this.#pause())
  }

  #pause(): number {
    // Jitter keeps the processes of a pool from sweeping in step.
    const usual = this.#everyMs * (0.75 + Math.random() / 2)
    if (this.#lapse === null) return usual
    const lapsed = Math.max(this.#lapse - performance.now(), 0) + this.#everyMs * (closest + Math.random() / 20)
    return Math.min(usual, lapsed)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#sweeping
  }

  /** One sweep. Returns how many chats it rang for; 0 also when the database is away. */
  async sweep(): Promise<number> {
    const begun = performance.now()
    this.#lapse = null
    try {
      const due = await dueChats(this.#db, batch)
      await keepPutOffShort(this.#db, this.#agents)
      const left = await msToNextLapse(this.#db)
      if (left !== null) this.#lapse = performance.now() + left
      await Promise.all(due.map((chat) => this.#bells.sweep(chat.chatId, chat.queue, chat.claimToken)))
      this.#observe({ type: 'sweep.ended', rung: due.length, durationMs: performance.now() - begun })
      return due.length
    } catch (error) {
      this.#observe({ type: 'database.trouble', doing: 'looking for chats that are due', error: errorFacts(error) })
      return 0
    }
  }
}
