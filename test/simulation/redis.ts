import type { JobsOptions } from 'bullmq'
import type { Bell } from '../../models/rows.ts'
import type { Ring } from './plan.ts'
import type { Scheduler } from './scheduler.ts'

/** A job that says only that there may be a wish. */
export interface SimulatedJob {
  readonly chatId: string
  readonly queue: Bell
  readonly options: JobsOptions
  /** Set while a worker has it. */
  holder: object | null
  /** Rung again while it was active: one more follows it. */
  again: boolean
}

/** Who is told of what happens in Redis. */
export interface RedisWatch {
  /** A job can be taken. */
  waits(): void
  /** A ring was heard, whatever job there is for it. */
  heard(chatId: string): void
}

/** A Redis that can be wiped and be away: the locks of claims, and the queues of rings. */
export class SimulatedRedis {
  isAway = false
  readonly #locks = new Map<string, { readonly claimId: string; until: number }>()
  #jobs: SimulatedJob[] = []
  /** The ids of jobs that ended, and that are kept for a look at them. */
  readonly #ended = new Set<string>()
  readonly #scheduler: Scheduler
  readonly #rings: Ring[]
  readonly #watch: RedisWatch

  constructor(scheduler: Scheduler, rings: readonly Ring[], watch: RedisWatch) {
    this.#scheduler = scheduler
    this.#rings = [...rings]
    this.#watch = watch
  }

  flush(): void {
    this.#locks.clear()
    this.#jobs = []
    this.#ended.clear()
  }

  /** From now on every ring is heard. */
  calm(): void {
    this.#rings.length = 0
    this.isAway = false
  }

  /** As the lock of a claim: where Redis can't say, the database decides alone. */
  lock(chatId: string, claimId: string, ttlMs: number): boolean {
    if (this.isAway) return true
    const held = this.#locks.get(chatId)
    if (held !== undefined && held.claimId !== claimId && held.until > this.#scheduler.now) return false
    this.#locks.set(chatId, { claimId, until: this.#scheduler.now + ttlMs })
    return true
  }

  unlock(chatId: string, claimId: string): void {
    if (!this.isAway && this.#locks.get(chatId)?.claimId === claimId) this.#locks.delete(chatId)
  }

  /** Adds a job by options of BullMQ's: those for its id, for deduplication and for what is kept of it count here. */
  ring(chatId: string, queue: Bell, options: JobsOptions): void {
    const fate = this.#rings.shift() ?? 'rung'
    if (this.isAway || fate === 'lost') return
    const add = () => {
      this.#add(chatId, queue, options)
      this.#watch.heard(chatId)
    }
    if (fate === 'late') this.#scheduler.after(lateMs, add)
    else add()
    if (fate === 'doubled') this.#push(chatId, queue, {})
  }

  #add(chatId: string, queue: Bell, options: JobsOptions): void {
    const { jobId, deduplication } = options
    const isThere = (job: SimulatedJob) => job.queue === queue && job.options.jobId === jobId
    if (jobId !== undefined && (this.#ended.has(`${queue}:${jobId}`) || this.#jobs.some(isThere))) return
    const same = this.#jobs.find((job) => job.queue === queue && isSame(job.options, options))
    if (same === undefined) this.#push(chatId, queue, options)
    else if (deduplication?.keepLastIfActive && same.holder !== null) same.again = true
  }

  #push(chatId: string, queue: Bell, options: JobsOptions): void {
    this.#jobs.push({ chatId, queue, options, holder: null, again: false })
    this.#watch.waits()
  }

  /** The next job, for a worker. */
  take(holder: object): SimulatedJob | null {
    const job = this.isAway ? undefined : this.#jobs.find((one) => one.holder === null)
    if (job === undefined) return null
    job.holder = holder
    return job
  }

  end(job: SimulatedJob): void {
    const at = this.#jobs.indexOf(job)
    if (at === -1) return
    this.#jobs.splice(at, 1)
    const { jobId, removeOnComplete } = job.options
    if (jobId !== undefined && removeOnComplete !== true) this.#ended.add(`${job.queue}:${jobId}`)
    if (job.again) this.#push(job.chatId, job.queue, job.options)
  }

  /** The jobs of a worker that died come back once their locks have run out. */
  died(holder: object): void {
    this.#scheduler.after(stalledMs, () => {
      for (const job of this.#jobs) if (job.holder === holder) job.holder = null
      this.#watch.waits()
    })
  }
}

function isSame({ deduplication: one }: JobsOptions, { deduplication: other }: JobsOptions): boolean {
  return one !== undefined && one.id === other?.id
}

const lateMs = 20_000
const stalledMs = 30_000
