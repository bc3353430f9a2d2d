import { hostname } from 'node:os'
import { type Job, type Telemetry, UnrecoverableError, Worker } from 'bullmq'
import { queueNames } from '../config/queues.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'
import type { Claims } from '../src/claims/claims.ts'
import { CancelledError, ChatNotFoundError, ShutdownError } from '../src/errors.ts'
import { errorCode, errorFacts } from '../src/observability/error-facts.ts'
import type { JobEnd, Observe } from '../src/observability/observation.ts'
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
  readonly observe: Observe
  /** Traces jobs; left out, nothing does. */
  readonly telemetry?: Telemetry | undefined
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
  #isReady = false
  #ended = false

  /** @internal */
  constructor(options: PoolOptions) {
    this.#options = options
    this.#workers = (['complete', 'runTools', 'compact'] as const)
      .filter((queue) => options.concurrency[queue] > 0)
      .map((queue) => this.#work(queue))
    options.sweeper.start()
    this.#begun = options.begin().catch((error) =>
      options.observe({
        type: 'database.trouble',
        doing: 'lifting chats that were put off',
        error: errorFacts(error),
      }),
    )
    // A worker that is closed before it connects rejects; its state says so.
    this.ready().then(
      () => {
        this.#isReady = true
      },
      () => {},
    )
    options.observe({ type: 'pool.started', ...options.concurrency })
  }

  /** Resolves when every worker is connected and takes jobs. */
  async ready(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.waitUntilReady()))
  }

  /** `running`, `connecting` until every worker reaches Redis, `closing`, or `closed`. */
  get state(): 'connecting' | 'running' | 'closing' | 'closed' {
    if (this.#closed !== null) return this.#ended ? 'closed' : 'closing'
    return this.#isReady && this.#options.connection.status === 'ready' ? 'running' : 'connecting'
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
    const begun = performance.now()
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
    this.#ended = true
    this.#options.observe({ type: 'pool.closed', durationMs: performance.now() - begun })
  }

  /** BullMQ's own close waits for Redis, however long it is away; what the jobs came to is in the rows, so it can go without. */
  async #stop(worker: Worker<RingData, JobOutcome>): Promise<void> {
    if (await answers(this.#options.connection)) return worker.close()
    await worker.pause(true)
    await Promise.allSettled(this.#running)
    await worker.close(true)
  }

  #work(queue: Bell): Worker<RingData, JobOutcome> {
    const { connection, prefix, concurrency, observe, telemetry } = this.#options
    const worker = new Worker<RingData, JobOutcome>(
      queueNames[queue],
      (job) => this.#track(this.#observed(queue, job)),
      {
        connection,
        prefix,
        name: processName,
        concurrency: concurrency[queue],
        lockDuration: lockDurationMs,
        maxStalledCount: stallsAllowed,
        skipVersionCheck: true,
        ...(telemetry === undefined ? {} : { telemetry }),
      },
    )
    // A lost lock or connection loses nothing: the run holds its claim in the database.
    worker.on('error', (error) =>
      observe({ type: 'redis.trouble', doing: `working on the queue ${queueNames[queue]}`, error: errorFacts(error) }),
    )
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

  async #observed(queue: Bell, job: Job<RingData, JobOutcome>): Promise<JobOutcome> {
    const { observe } = this.#options
    const facts = { queue, job: job.name, chatId: job.data.chatId }
    const begun = performance.now()
    const ended = (outcome: JobEnd, code: string | null) =>
      observe({ type: 'job.ended', ...facts, outcome, durationMs: performance.now() - begun, code })
    observe({ type: 'job.started', ...facts, waitedMs: Date.now() - job.timestamp - (job.opts.delay ?? 0) })
    try {
      const outcome = await this.#perform(queue, job)
      ended(outcome, null)
      return outcome
    } catch (error) {
      const cancelled = error instanceof UnrecoverableError
      ended(cancelled ? 'cancelled' : 'failed', cancelled ? null : errorCode(error))
      throw error
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
