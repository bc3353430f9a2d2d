import { type JobsOptions, Queue, type Telemetry } from 'bullmq'
import { queueNames } from '../config/queues.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'
import { UnreachableError } from '../src/errors.ts'
import { errorFacts } from '../src/observability/error-facts.ts'
import type { Observe } from '../src/observability/observation.ts'

/** The only data of a job: everything else is read from the rows. */
export interface RingData {
  readonly chatId: string
}

/** What a job is named in its queue: `later` only rings again when its time has come, `canary` is for no chat. */
export type RingName = 'ring' | 'later' | 'sweep' | 'canary'

/** When and how urgently a ring is answered. */
export interface RingOptions {
  /** Wanted so many ms from now. Default 0: at once. */
  readonly delayMs?: number
  /** BullMQ's: 1 is the most urgent; left out = before all of them. */
  readonly priority?: number
}

export interface BellOptions {
  readonly observe: Observe
  /** Traces rings and their jobs; left out, nothing does. */
  readonly telemetry?: Telemetry | undefined
  /**
   * Gives another connection for the sweeper's rings, where nobody makes the first one anew when it falls silent. Left out: they go
   * through the first.
   */
  readonly connectSweeps?: (() => Promise<RedisClient>) | undefined
}

type Queues = Readonly<Record<Bell, Queue<RingData>>>

/** Jobs that ended are kept for a look at them, not for ever. */
const kept: JobsOptions = { attempts: 1, removeOnComplete: { count: 1_000 }, removeOnFail: { count: 5_000 } }

/** The sweeper rings once more for a chat that is still due after this time, in ms, whatever became of its last ring. */
const sweepAgainMs = 10_000

/** How long a caller waits for a ring, in ms: a request that waits for more than this has to be answered within 3 s, too. (E155) */
const ringLimitMs = 1_000

/** The job that wakes a worker at once; rung while one is active, one more is kept for after it. */
export function ringJob(chatId: string): JobsOptions {
  return { ...kept, deduplication: { id: chatId, keepLastIfActive: true, reschedule: true } }
}

/**
 * The sweeper's job. A dead worker's job stays active for long, and its id with it; so the id holds the claim token, and the
 * time, in ms, for a worker that died before it took the chat.
 */
export function sweepJob(chatId: string, claimToken: number, now: number): JobsOptions {
  const period = Math.floor(now / sweepAgainMs)
  return { ...kept, deduplication: { id: `${chatId}:${claimToken}:${period}` } }
}

/** Rings the queues. A ring is never needed for correctness: what it announces is a row, and the sweeper rings again. */
export class Bells {
  readonly #prefix: string
  readonly #options: BellOptions
  readonly #queues: Queues
  #sweepQueues: Promise<Queues> | null = null

  constructor(connection: RedisClient, prefix: string, options: BellOptions) {
    this.#prefix = prefix
    this.#options = options
    this.#queues = this.#open(connection)
  }

  /** Wakes a worker now, or after a delay; a ring that Redis does not take is observed, and lost. */
  async ring(chatId: string, queue: Bell, { delayMs = 0, priority }: RingOptions = {}): Promise<void> {
    const urgency = priority === undefined ? {} : { priority }
    // An id of its own: a delayed job must never swallow an immediate ring.
    const later = { ...kept, ...urgency, delay: delayMs, deduplication: { id: `${chatId}:later` } }
    if (delayMs > 0) return this.#add(this.#queues[queue], queue, 'later', chatId, later)
    return this.#add(this.#queues[queue], queue, 'ring', chatId, { ...urgency, ...ringJob(chatId) })
  }

  /** The sweeper's ring. */
  async sweep(chatId: string, queue: Bell, claimToken: number): Promise<void> {
    const queues = await this.#forSweeps()
    await this.#add(queues[queue], queue, 'sweep', chatId, sweepJob(chatId, claimToken, Date.now()))
  }

  /** How many jobs each queue has, by state. Rejects while Redis is away. */
  async depths(): Promise<Record<Bell, Record<string, number>>> {
    const count = (queue: Bell) =>
      this.#queues[queue].getJobCounts('wait', 'active', 'delayed', 'prioritized', 'failed')
    const [complete, runTools, compact] = await Promise.all([count('complete'), count('runTools'), count('compact')])
    return { complete, runTools, compact }
  }

  async close(): Promise<void> {
    await Promise.all([closeAll(this.#queues), this.#sweepQueues?.then(closeAll, () => {})])
  }

  #open(connection: RedisClient): Queues {
    const { observe, telemetry } = this.#options
    const open = (name: string): Queue<RingData> => {
      const queue = new Queue<RingData>(name, {
        connection,
        prefix: this.#prefix,
        skipVersionCheck: true,
        ...(telemetry === undefined ? {} : { telemetry }),
      })
      queue.on('error', (error) =>
        observe({ type: 'redis.trouble', doing: `reaching the queue ${name}`, error: errorFacts(error) }),
      )
      return queue
    }
    return {
      complete: open(queueNames.complete),
      runTools: open(queueNames.runTools),
      compact: open(queueNames.compact),
    }
  }

  /** While no other connection can be had, the first one has to do. */
  #forSweeps(): Queues | Promise<Queues> {
    const { connectSweeps } = this.#options
    if (connectSweeps === undefined) return this.#queues
    this.#sweepQueues ??= connectSweeps().then((connection) => this.#open(connection))
    return this.#sweepQueues.catch(() => {
      this.#sweepQueues = null
      return this.#queues
    })
  }

  async #add(to: Queue<RingData>, queue: Bell, name: RingName, chatId: string, options: JobsOptions): Promise<void> {
    const { observe } = this.#options
    const added = to.add(name, { chatId }, options).catch((error: unknown) => {
      observe({ type: 'ring.lost', chatId, queue, error: errorFacts(error) })
    })
    // An application's own client may wait for a Redis that is away; whoever rings, a commit perhaps, must not.
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        const error = new UnreachableError(`A ring was not answered in ${ringLimitMs} ms`)
        observe({ type: 'redis.trouble', doing: `ringing the queue ${to.name}`, error: errorFacts(error) })
        resolve()
      }, ringLimitMs)
    })
    await Promise.race([added, limit]).finally(() => clearTimeout(timer))
  }
}

async function closeAll(queues: Queues): Promise<void> {
  await Promise.all(Object.values(queues).map((queue) => queue.close()))
}
