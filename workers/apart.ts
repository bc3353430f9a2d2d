import type { Bell } from '../models/rows.ts'
import type { Observe } from '../src/observability/observation.ts'
import type { JobOutcome } from './job.ts'

/** A chat that has cost processes, and is to run with no other such chat beside it. */
export interface ApartWork {
  readonly chatId: string
  readonly queue: Bell
  /** How many processes it has cost. */
  readonly deaths: number
  /** The number of its last take. */
  readonly claimToken: number
  /** Runs it in this process. */
  readonly here: () => Promise<JobOutcome>
  /** Told the process that runs it, where that is another one. */
  readonly onProcess: (pid: number) => void
}

/** Where chats are run that have cost processes. */
export interface Apart {
  /** Runs one and resolves to what it came to; to `runs alone later` where there is no room, and rings for it once there is. */
  run(work: ApartWork): Promise<JobOutcome>
  /** This process is ending: nothing more is begun, and processes that were started are asked to end. */
  close(): void
}

/** Rings for a chat. Never rejects. */
export type RingAgain = (chatId: string, queue: Bell) => Promise<void>

/** So many at once. Who finds no place is rung for when one is left, so that no job waits for it. */
export class Places {
  readonly #most: number
  readonly #ring: RingAgain
  readonly #turnedAway = new Map<string, Bell>()
  readonly #running = new Set<string>()

  constructor(most: number, ring: RingAgain) {
    this.#most = most
    this.#ring = ring
  }

  /** Does the work in a place of its own; `runs alone later` where all are taken, `claimed elsewhere` where the chat has one. */
  async use(
    { chatId, queue }: Pick<ApartWork, 'chatId' | 'queue'>,
    work: () => Promise<JobOutcome>,
  ): Promise<JobOutcome> {
    // Rung for again before its process could take it.
    if (this.#running.has(chatId)) return 'claimed elsewhere'
    if (this.#running.size >= this.#most) {
      this.#turnedAway.set(chatId, queue)
      return 'runs alone later'
    }
    this.#turnedAway.delete(chatId)
    this.#running.add(chatId)
    try {
      return await work()
    } finally {
      this.#running.delete(chatId)
      this.#ringForNext()
    }
  }

  /** Rings for nobody any more. */
  close(): void {
    this.#turnedAway.clear()
  }

  #ringForNext(): void {
    const [next] = this.#turnedAway
    if (next === undefined) return
    const [chatId, queue] = next
    this.#turnedAway.delete(chatId)
    void this.#ring(chatId, queue)
  }
}

/**
 * Runs them in this process, one at a time, where no process of their own can be started for them: so one of them at most dies with it. (E122)
 */
export class OneAtATime implements Apart {
  readonly #places: Places
  readonly #observe: Observe

  constructor(options: { readonly ring: RingAgain; readonly observe: Observe }) {
    this.#places = new Places(1, options.ring)
    this.#observe = options.observe
  }

  run(work: ApartWork): Promise<JobOutcome> {
    return this.#places.use(work, async () => {
      const { chatId, queue, deaths } = work
      const begun = performance.now()
      this.#observe({ type: 'alone.started', chatId, queue, deaths, pid: null })
      try {
        return await work.here()
      } finally {
        const durationMs = performance.now() - begun
        this.#observe({ type: 'alone.ended', chatId, queue, pid: null, outcome: 'ended', how: null, durationMs })
      }
    })
  }

  close(): void {
    this.#places.close()
  }
}
