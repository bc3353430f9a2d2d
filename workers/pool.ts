import { type Job, type Telemetry, UnrecoverableError } from 'bullmq'
import type { RedisConnector } from '../config/redis.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'
import type { Claims } from '../src/claims/claims.ts'
import { CancelledError, ChatNotFoundError, ShutdownError } from '../src/errors.ts'
import { errorCode, errorFacts } from '../src/observability/error-facts.ts'
import type { JobEnd, Observe } from '../src/observability/observation.ts'
import type { Apart } from './apart.ts'
import type { Bells, RingData } from './bell.ts'
import { answerCanary, isCanary } from './canary.ts'
import type { ChatJob, JobOutcome } from './job.ts'
import { QueueWorker } from './queue-worker.ts'
import type { Sweeper } from './sweep.ts'
import { WorkerWatch } from './worker-watch.ts'

export interface PoolOptions {
  readonly redis: Pick<RedisConnector, 'openWorker' | 'answers'>
  readonly prefix: string
  readonly jobs: Readonly<Record<Bell, ChatJob>>
  /** How many jobs of a queue run at once in this process; 0 = none of its jobs. */
  readonly concurrency: Readonly<Record<Bell, number>>
  readonly bells: Bells
  /** Where chats run that processes died over. */
  readonly apart: Apart
  readonly claims: Claims
  readonly sweeper: Sweeper
  readonly observe: Observe
  /** Traces jobs; left out, nothing does. */
  readonly telemetry?: Telemetry | undefined
  readonly graceMs: number
  /** How long a worker that can take jobs may ask for none, or get no answer, in ms. */
  readonly stuckAfterMs: number
  /** Done once when the pool starts: what only a process with these agents can do. */
  readonly begin: () => Promise<unknown>
}

/**
 * How the workers of a process are, the worst of them: `connecting` until each reaches Redis; `running`; `refused`, while Redis gives
 * them errors and no jobs (it is full, or read-only); `renewed`, while a worker that took nothing was made anew and has not been heard of
 * yet; `stuck`, where that did not help and only a new process may; `closing`, `closed`. (E130)
 */
export type PoolState = 'connecting' | 'running' | 'refused' | 'renewed' | 'stuck' | 'closing' | 'closed'

/** The workers of one process. */
export class Pool {
  readonly #options: PoolOptions
  readonly #connection: RedisClient
  readonly #workers: readonly QueueWorker[]
  readonly #watch: WorkerWatch
  readonly #begun: Promise<unknown>
  #stopping = false
  #failing = false
  #closed: Promise<void> | null = null
  #isReady = false
  #ended = false

  /** @internal */
  constructor(options: PoolOptions) {
    this.#options = options
    const { observe, telemetry, redis } = options
    const connection = redis.openWorker()
    this.#connection = connection
    this.#workers = (['complete', 'runTools', 'compact'] as const)
      .filter((queue) => options.concurrency[queue] > 0)
      .map(
        (queue) =>
          new QueueWorker({
            ...options,
            connection,
            queue,
            concurrency: options.concurrency[queue],
            telemetry,
            work: (job) => (isCanary(job) ? answerCanary() : this.#observed(queue, job)),
          }),
      )
    this.#watch = new WorkerWatch(this.#workers)
    options.sweeper.start()
    this.#begun = options.begin().catch((error) =>
      observe({
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
    observe({ type: 'pool.started', ...options.concurrency })
  }

  /** Resolves when every worker is connected and takes jobs. */
  async ready(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.ready()))
  }

  /** How the workers are now, by what was last heard of them. */
  get state(): PoolState {
    if (this.#closed !== null) return this.#ended ? 'closed' : 'closing'
    const standings = this.#workers.map(({ standing }) => standing)
    const worst = (['stuck', 'renewed', 'refused'] as const).find((standing) => standings.includes(standing))
    // A new connection that does not come about is part of being stuck.
    if (worst === 'stuck') return worst
    const isConnected = this.#connection.status === 'ready' && this.#workers.every((one) => one.isConnected)
    return this.#isReady && isConnected ? (worst ?? 'running') : 'connecting'
  }

  /**
   * Takes no more jobs, lets running moves end, aborts those that are still going at the end of the grace, and gives their
   * chats to other workers. Safe to call again.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  /** @internal Closes since something threw that nobody caught: what has to be aborted counts as a death of its chat. */
  fail(): Promise<void> {
    this.#failing = true
    return this.close()
  }

  async #close(): Promise<void> {
    const begun = performance.now()
    this.#stopping = true
    this.#watch.stop()
    await this.#begun
    await this.#options.sweeper.stop()
    this.#options.apart.close()
    const grace = setTimeout(() => {
      const why = 'The process is shutting down: the chat goes to another worker.'
      this.#options.claims.abortAll(new ShutdownError(why, { failing: this.#failing }))
    }, this.#options.graceMs)
    try {
      await Promise.all(this.#workers.map((worker) => worker.close()))
    } finally {
      clearTimeout(grace)
      this.#connection.disconnect()
    }
    this.#ended = true
    this.#options.observe({ type: 'pool.closed', durationMs: performance.now() - begun })
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
      const { jobs, apart } = this.#options
      // Best effort: an operator sees by it which process runs the chat.
      const onProcess = (pid: number) => void job.updateProgress({ alone: pid }).catch(() => {})
      return await jobs[queue].performApart(chatId, { stopping: () => this.#stopping, apart, onProcess })
    } catch (error) {
      // Deleted on purpose, or rung before its transaction was rolled back: nothing is left to do.
      if (error instanceof ChatNotFoundError) return 'not wanted'
      if (error instanceof CancelledError) throw new UnrecoverableError(error.message)
      throw error
    }
  }
}
