import type { Bell } from '../../models/rows.ts'
import type { Ring } from './plan.ts'
import type { Scheduler } from './scheduler.ts'

/** A job that says only that there may be a wish. */
export interface SimulatedJob {
  readonly chatId: string
  readonly queue: Bell
  /** What it is deduplicated by. */
  readonly id: string
  /** Set while a worker has it. */
  holder: object | null
  /** Rung again while it was active: one more follows it. */
  again: boolean
}

/** A Redis that can be wiped and be away: the locks of claims, and the queues of rings. */
export class SimulatedRedis {
  isAway = false
  readonly #locks = new Map<string, { readonly claimId: string; until: number }>()
  #jobs: SimulatedJob[] = []
  readonly #scheduler: Scheduler
  readonly #rings: Ring[]
  /** Called when a job can be taken. */
  readonly #announce: () => void

  constructor(scheduler: Scheduler, rings: readonly Ring[], announce: () => void) {
    this.#scheduler = scheduler
    this.#rings = [...rings]
    this.#announce = announce
  }

  flush(): void {
    this.#locks.clear()
    this.#jobs = []
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

  /** `again`: one more is kept for after an active one, as an application's ring does. */
  ring(chatId: string, queue: Bell, id: string, again: boolean): void {
    const fate = this.#rings.shift() ?? 'rung'
    if (this.isAway || fate === 'lost') return
    const add = () => this.#add(chatId, queue, id, again)
    if (fate === 'late') this.#scheduler.after(lateMs, add)
    else add()
    if (fate === 'doubled') this.#push(chatId, queue, `${id} once more`)
  }

  #add(chatId: string, queue: Bell, id: string, again: boolean): void {
    const same = this.#jobs.find((job) => job.queue === queue && job.id === id)
    if (same === undefined) this.#push(chatId, queue, id)
    else if (again && same.holder !== null) same.again = true
  }

  #push(chatId: string, queue: Bell, id: string): void {
    this.#jobs.push({ chatId, queue, id, holder: null, again: false })
    this.#announce()
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
    if (job.again) this.#push(job.chatId, job.queue, job.id)
  }

  /** The jobs of a worker that died come back once their locks have run out. */
  died(holder: object): void {
    this.#scheduler.after(stalledMs, () => {
      for (const job of this.#jobs) if (job.holder === holder) job.holder = null
      this.#announce()
    })
  }
}

const lateMs = 20_000
const stalledMs = 30_000
