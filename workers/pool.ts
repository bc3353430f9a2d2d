import { hostname } from 'node:os'
import { type Job, UnrecoverableError, Worker } from 'bullmq'
import type { Logger } from '../config/logger.ts'
import { queueNames } from '../config/queues.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'
import type { Claims } from '../src/claims/claims.ts'
import { CancelledError, ChatNotFoundError, ShutdownError } from '../src/errors.ts'
import type { Bells, RingData } from './bell.ts'
import type { ChatJob, JobOutcome } from './job.ts'
import type { Sweeper } from './sweep.ts'

export interface PoolOptions {
  readonly connection: RedisClient
  readonly prefix: string
  readonly jobs: Readonly<Record<Bell, ChatJob>>
  /** How many jobs of a queue run at once in this process; 0 = none of its jobs. */
  readonly concurrency: Readonly<Record<Bell, number>>
  readonly bells: Bells
  readonly claims: Claims
  readonly sweeper: Sweeper
  readonly logger: Logger
  readonly graceMs: number
  /** Done once when the pool starts: what only a process with these agents can do. */
  readonly begin: () => Promise<void>
}

const lockDurationMs = 30_000
const pingLimitMs = 1_000
/** Stands in Redis with every job that this process runs, so that an operator can find it. */
const processName = `${hostname()}:${process.pid}`
/** Attempts and deaths are counted in rows; BullMQ must never give a chat up by itself. */
const stallsAllowed = 1_000_000

/** The workers of one process. */
export class Pool {
  readonly #options: PoolOptions
  readonly #workers: Worker<RingData, JobOutcome>[]
  readonly #begun: Promise<void>
  readonly #running = new Set<Promise<JobOutcome>>()
  #stopping = false
  #closed: Promise<void> | null = null

  constructor(options: PoolOptions) {
    this.#options = options
    this.#workers = (['complete', 'runTools', 'compact'] as const)
      .filter((queue) => options.concurrency[queue] > 0)
      .map((queue) => this.#work(queue))
    options.sweeper.start()
    this.#begun = options
      .begin()
      .catch((error) => options.logger.warn({ err: error }, 'Chats that were put off were not lifted'))
  }

  /** Resolves when every worker is connected and takes jobs. */
  async ready(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.waitUntilReady()))
  }

  /**
   * Takes no more jobs, lets running moves end, aborts those that are still going at the end of the grace, and gives their
   * chats to other workers. Safe to call again.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#stopping = true
    await this.#begun
    await this.#options.sweeper.stop()
    const grace = setTimeout(() => {
      this.#options.claims.abortAll(new ShutdownError('The process is shutting down: the chat goes to another worker.'))
    }, this.#options.graceMs)
    try {
      await Promise.all(this.#workers.map((worker) => this.#stop(worker)))
    } finally {
      clearTimeout(grace)
    }
  }

  /** BullMQ's own close waits for Redis, however long it is away; what the jobs came to is in the rows, so it can go without. */
  async #stop(worker: Worker<RingData, JobOutcome>): Promise<void> {
    if (await answers(this.#options.connection)) return worker.close()
    await worker.pause(true)
    await Promise.allSettled(this.#running)
    await worker.close(true)
  }

  #work(queue: Bell): Worker<RingData, JobOutcome> {
    const { connection, prefix, concurrency, logger } = this.#options
    const worker = new Worker<RingData, JobOutcome>(
      queueNames[queue],
      (job) => this.#track(this.#perform(queue, job)),
      {
        connection,
        prefix,
        name: processName,
        concurrency: concurrency[queue],
        lockDuration: lockDurationMs,
        maxStalledCount: stallsAllowed,
        skipVersionCheck: true,
      },
    )
    // A lost lock or connection loses nothing: the run holds its claim in the database.
    worker.on('error', (error) => logger.warn({ err: error, queue }, 'A worker reported an error; it goes on'))
    worker.on('failed', (job, error) => logger.info({ err: error, queue, chatId: job?.data.chatId }, 'A turn failed'))
    return worker
  }

  async #track(work: Promise<JobOutcome>): Promise<JobOutcome> {
    this.#running.add(work)
    try {
      return await work
    } finally {
      this.#running.delete(work)
    }
  }

  async #perform(queue: Bell, job: Job<RingData, JobOutcome>): Promise<JobOutcome> {
    const { chatId } = job.data
    if (job.name === 'later') {
      await this.#options.bells.ring(chatId, queue)
      return 'done'
    }
    try {
      return await this.#options.jobs[queue].perform(chatId, () => this.#stopping)
    } catch (error) {
      // Deleted on purpose, or rung before its transaction was rolled back: nothing is left to do.
      if (error instanceof ChatNotFoundError) return 'not wanted'
      if (error instanceof CancelledError) throw new UnrecoverableError(error.message)
      throw error
    }
  }
}

/** Whether Redis is there. A connection can look ready for a moment after its server has gone. */
async function answers(connection: RedisClient): Promise<boolean> {
  if (connection.status !== 'ready') return false
  let timer: NodeJS.Timeout | undefined
  const silent = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, pingLimitMs, false)
  })
  const pong = connection.ping().then(
    () => true,
    () => false,
  )
  return Promise.race([pong, silent]).finally(() => clearTimeout(timer))
}
