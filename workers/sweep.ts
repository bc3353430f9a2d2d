import type { Logger } from '../config/logger.ts'
import type { Database } from '../models/database.ts'
import { dueChats, keepPutOffShort } from '../models/sweep.ts'
import type { Bells } from './bell.ts'

const batch = 200

/**
 * Rings for chats that are due and that nobody runs: what Redis lost, what a dead process held. A timer of the process,
 * since it must outlive what it insures. It only rings; it clears nothing.
 */
export class Sweeper {
  readonly #db: Database
  readonly #bells: Bells
  readonly #everyMs: number
  readonly #agents: readonly string[]
  readonly #logger: Logger
  #timer: NodeJS.Timeout | null = null
  #sweeping: Promise<unknown> = Promise.resolve()
  #stopped = false

  constructor(options: { db: Database; bells: Bells; everyMs: number; agents: readonly string[]; logger: Logger }) {
    this.#db = options.db
    this.#bells = options.bells
    this.#everyMs = options.everyMs
    this.#agents = options.agents
    this.#logger = options.logger
  }

  start(): void {
    if (this.#stopped) return
    // Jitter keeps the processes of a pool from sweeping in step.
    const delay = this.#everyMs * (0.75 + Math.random() / 2)
    this.#timer = setTimeout(() => {
      this.#sweeping = this.sweep().finally(() => this.start())
    }, delay)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#sweeping
  }

  /** One sweep. Returns how many chats it rang for; 0 also when the database is away. */
  async sweep(): Promise<number> {
    try {
      const due = await dueChats(this.#db, batch)
      await keepPutOffShort(this.#db, this.#agents)
      await Promise.all(due.map((chat) => this.#bells.sweep(chat.chatId, chat.queue, chat.claimToken)))
      return due.length
    } catch (error) {
      this.#logger.warn({ err: error }, 'A sweep failed; the next one comes by itself')
      return 0
    }
  }
}
