import { hostname } from 'node:os'
import { type Job, type Telemetry, Worker } from 'bullmq'
import { queueNames } from '../config/queues.ts'
import type { RedisConnector } from '../config/redis.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'
import { errorFacts } from '../src/observability/error-facts.ts'
import type { Observe } from '../src/observability/observation.ts'
import type { RingData } from './bell.ts'
import { isLate, type Standing, standing } from './consumption.ts'
import { Fetching } from './fetching.ts'
import type { JobOutcome } from './job.ts'

export interface QueueWorkerOptions {
  readonly queue: Bell
  readonly concurrency: number
  readonly prefix: string
  /** What it begins with; others may use it too. */
  readonly connection: RedisClient
  /** Gives it a connection of its own when it has to be made anew, and tells whether Redis answers others. */
  readonly redis: Pick<RedisConnector, 'openWorker' | 'answers'>
  /** How long it may ask for nothing and get no answer, in ms. */
  readonly stuckAfterMs: number
  readonly observe: Observe
  readonly telemetry: Telemetry | undefined
  readonly work: (job: Job<RingData, JobOutcome>) => Promise<JobOutcome>
}

type BullWorker = Worker<RingData, JobOutcome>

/** A worker of BullMQ, from its start until it is replaced. */
interface Generation {
  readonly worker: BullWorker
  readonly connection: RedisClient
  readonly fetching: Fetching
  readonly running: Set<Promise<JobOutcome>>
  readonly retired: AbortController
}

const lockDurationMs = 30_000
const pingLimitMs = 1_000
/** Stands in Redis with every job that this process runs, so that an operator can find it. */
const processName = `${hostname()}:${process.pid}`
/** Attempts and deaths are counted in rows; BullMQ must never give a chat up by itself. */
const stallsAllowed = 1_000_000
/** How soon a worker asks again after its connection was closed, in ms. */
const closedPauseMs = 1_000

/**
 * The worker of one queue in this process. It is looked at now and then: one that could take jobs and does not ask for any, or gets
 * no answer though others do, is replaced by a new one with connections of its own; the jobs that it runs go on. (E130)
 */
export class QueueWorker {
  readonly #options: QueueWorkerOptions
  readonly #retiring = new Set<Promise<void>>()
  #current: Generation
  #renewals = 0
  #refusedMs = 0
  #quietMs = 0
  #happened = 0
  #isAsking = false
  #isClosed = false

  constructor(options: QueueWorkerOptions) {
    this.#options = options
    this.#current = this.#start(options.connection)
  }

  get queue(): Bell {
    return this.#options.queue
  }

  get standing(): Standing {
    return standing({ renewals: this.#renewals, refusedMs: this.#refusedMs }, this.#options.stuckAfterMs)
  }

  /** Whether its connection for commands is there; that it answers is another thing. */
  get isConnected(): boolean {
    return this.#current.connection.status === 'ready'
  }

  /** Resolves when it takes jobs. */
  async ready(): Promise<void> {
    await this.#current.worker.waitUntilReady()
  }

  /** Looks at it, `elapsedMs` of a running event loop after the last time, and replaces it if it has to be. */
  look(elapsedMs: number): void {
    if (this.#isClosed) return
    const { worker, fetching, running } = this.#current
    const { stuckAfterMs } = this.#options
    if (fetching.isAnswered && this.#renewals > 0) this.#recovered()
    this.#refusedMs = fetching.isRefused && this.isConnected ? this.#refusedMs + elapsedMs : 0
    const hasFreeSlot = running.size < worker.concurrency
    const isQuiet = fetching.happened === this.#happened && hasFreeSlot
    this.#happened = fetching.happened
    // Without a connection it can't be heard of; one that comes and goes, and brings nothing, must not start the count anew.
    this.#quietMs = isQuiet ? this.#quietMs + (this.isConnected ? elapsedMs : 0) : 0
    if (isLate({ phase: fetching.phase, hasFreeSlot, quietMs: this.#quietMs }, stuckAfterMs)) void this.#renew()
  }

  /** Takes no more jobs, and resolves once those that run have ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { worker, connection } = this.#current
    if (this.#renewals === 0 && (await answers(connection))) {
      await worker.close()
      this.#letGo(connection)
    } else {
      await this.#retire(this.#current)
    }
    await Promise.all(this.#retiring)
  }

  #recovered(): void {
    this.#renewals = 0
    this.#options.observe({ type: 'worker.recovered', queue: this.queue })
  }

  async #renew(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    const seen = this.#happened
    const isThere = await this.#options.redis.answers()
    this.#isAsking = false
    const { fetching } = this.#current
    if (!isThere || this.#isClosed || fetching.happened !== seen) {
      this.#quietMs = 0
      return
    }
    const { queue, observe, redis, stuckAfterMs } = this.#options
    const quietMs = this.#quietMs
    const before = this.standing
    this.#renewals++
    this.#quietMs = 0
    this.#refusedMs = 0
    const old = this.#current
    // What an old one runs takes up room until it ends.
    this.#current = this.#start(redis.openWorker(), old.running.size)
    this.#retireAside(old)
    observe({ type: 'worker.renewed', queue, quietMs })
    const isNews = standing({ renewals: this.#renewals, refusedMs: 0 }, stuckAfterMs) === 'stuck' && before !== 'stuck'
    if (isNews) observe({ type: 'worker.stuck', queue, quietMs })
  }

  #retireAside(old: Generation): void {
    const retiring = this.#retire(old).then(() => {
      this.#retiring.delete(retiring)
      if (!this.#isClosed) this.#current.worker.concurrency = this.#options.concurrency
    })
    this.#retiring.add(retiring)
  }

  /** BullMQ's own close waits for Redis, however long it is away; what the jobs came to is in the rows, so it can go without. */
  async #retire({ worker, connection, running, retired }: Generation): Promise<void> {
    await worker.pause(true)
    retired.abort()
    await Promise.allSettled(running)
    await worker.close(true)
    this.#letGo(connection)
  }

  /** The first one is the pool's, which ends it. */
  #letGo(connection: RedisClient): void {
    if (connection !== this.#options.connection) connection.disconnect()
  }

  #start(connection: RedisClient, taken = 0): Generation {
    const { queue, concurrency, prefix, observe, telemetry, work } = this.#options
    const running = new Set<Promise<JobOutcome>>()
    const retired = new AbortController()
    const worker: BullWorker = new Worker<RingData, JobOutcome>(
      queueNames[queue],
      async (job) => {
        // Fetched by a connection that came back too late: the sweeper rings again.
        if (retired.signal.aborted) return 'not wanted'
        fetching.happens()
        const working = work(job)
        running.add(working)
        try {
          return await working
        } finally {
          running.delete(working)
          fetching.happens()
        }
      },
      {
        connection,
        prefix,
        name: processName,
        concurrency: Math.max(1, concurrency - taken),
        lockDuration: lockDurationMs,
        maxStalledCount: stallsAllowed,
        runRetryDelay: closedPauseMs,
        skipVersionCheck: true,
        ...(telemetry === undefined ? {} : { telemetry }),
      },
    )
    const fetching = new Fetching(worker.getBackend(), retired.signal)
    // A lost lock or connection loses nothing: the run holds its claim in the database.
    worker.on('error', (error) =>
      observe({ type: 'redis.trouble', doing: `working on the queue ${queueNames[queue]}`, error: errorFacts(error) }),
    )
    return { worker, connection, fetching, running, retired }
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
