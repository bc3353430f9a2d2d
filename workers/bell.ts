import { type JobsOptions, Queue } from 'bullmq'
import type { Logger } from '../config/logger.ts'
import { queueNames } from '../config/queues.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'

/** The only data of a job: everything else is read from the rows. */
export interface RingData {
  readonly chatId: string
}

/** What a job is named in its queue: `later` only rings again when its time has come. */
export type RingName = 'ring' | 'later' | 'sweep'

export interface RingOptions {
  readonly delayMs?: number
  /** BullMQ's: 1 is the most urgent; left out = before all of them. */
  readonly priority?: number
}

/** Jobs that ended are kept for a look at them, not for ever. */
const kept: JobsOptions = { attempts: 1, removeOnComplete: { count: 1_000 }, removeOnFail: { count: 5_000 } }

/** The sweeper rings once more for a chat that is still due after this time, in ms, whatever became of its last ring. */
const sweepAgainMs = 10_000

/** How long a caller waits for a ring, in ms. */
const ringLimitMs = 2_000

/** Rings the queues. A ring is never needed for correctness: what it announces is a row, and the sweeper rings again. */
export class Bells {
  readonly #queues: Readonly<Record<Bell, Queue<RingData>>>
  readonly #logger: Logger

  constructor(connection: RedisClient, prefix: string, logger: Logger) {
    const open = (name: string): Queue<RingData> => {
      const queue = new Queue<RingData>(name, { connection, prefix, skipVersionCheck: true })
      queue.on('error', (error) =>
        logger.warn({ err: error, queue: name }, 'A queue lost Redis; it reconnects by itself'),
      )
      return queue
    }
    this.#queues = {
      complete: open(queueNames.complete),
      runTools: open(queueNames.runTools),
      compact: open(queueNames.compact),
    }
    this.#logger = logger
  }

  /** Wakes a worker now, or after a delay; does nothing but log when Redis is away. */
  async ring(chatId: string, queue: Bell, { delayMs = 0, priority }: RingOptions = {}): Promise<void> {
    const urgency = priority === undefined ? {} : { priority }
    if (delayMs > 0) {
      // An id of its own: a delayed job must never swallow an immediate ring.
      return this.#add(queue, 'later', chatId, { ...urgency, delay: delayMs, deduplication: { id: `${chatId}:later` } })
    }
    const deduplication = { id: chatId, keepLastIfActive: true, reschedule: true }
    return this.#add(queue, 'ring', chatId, { ...urgency, deduplication })
  }

  /**
   * The sweeper's ring. A dead worker's job stays active for long, and its id with it; so the id holds the claim token, and
   * the time, for a worker that died before it took the chat.
   */
  async sweep(chatId: string, queue: Bell, claimToken: number): Promise<void> {
    const period = Math.floor(Date.now() / sweepAgainMs)
    await this.#add(queue, 'sweep', chatId, { deduplication: { id: `${chatId}:${claimToken}:${period}` } })
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#queues).map((queue) => queue.close()))
  }

  async #add(queue: Bell, name: RingName, chatId: string, options: JobsOptions): Promise<void> {
    const added = this.#queues[queue].add(name, { chatId }, { ...kept, ...options }).catch((error: unknown) => {
      this.#logger.warn({ err: error, chatId, queue }, 'A ring was lost; the sweeper rings again')
    })
    // An application's own client may wait for a Redis that is away; whoever rings, a commit perhaps, must not.
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ringLimitMs)
    })
    await Promise.race([added, limit]).finally(() => clearTimeout(timer))
  }
}
