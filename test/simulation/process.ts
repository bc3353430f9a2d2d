import type { Claims } from '../../src/claims/claims.ts'
import type { Clocks } from '../../src/claims/elapsed.ts'
import { ShutdownError, ThreadmillError } from '../../src/errors.ts'
import { isRetryable } from '../../src/loop/ending.ts'
import { run } from '../../src/loop/run.ts'
import type { LoopPorts, RunOrder } from '../../src/loop/run-context.ts'
import { type Apart, OneAtATime } from '../../workers/apart.ts'
import { sweepJob } from '../../workers/bell.ts'
import { CompleteJob } from '../../workers/complete.ts'
import { RunToolsJob } from '../../workers/run-tools.ts'
import { ToolBug } from './agent.ts'
import { claimsOf, SimulatedRenewer } from './claims.ts'
import type { Fault } from './plan.ts'
import { portsOf } from './ports.ts'
import { randomOf } from './random.ts'
import type { SimulatedJob } from './redis.ts'
import type { ProcessStatements } from './rows.ts'
import { databaseAway, lockConflict, sweepEveryMs } from './times.ts'
import type { World } from './world.ts'

/** The thread that runs the loop, or the one that renews claims. */
export type Thread = 'main' | 'renewal'

export interface Call {
  readonly thread?: Thread
  /** What is waited for is a statement of the database: it can fail. */
  readonly statement?: boolean
  /** How long it takes at most, in ms. */
  readonly ms?: number
  /** Waited for all the time: things go wrong elsewhere more often. */
  readonly idle?: boolean
  /** Told of in the story. */
  readonly sql?: string
}

const jobsAtOnce = 2
/** How long another transaction holds a row at most, in ms. */
const lockMs = 8_000
/** A standstill of so many ms can cost a claim. */
const costlyMs = 20_000
/** Whose statement waits for longer than so many ms is cut off. */
const heldUpMs = 5_000
/** Clocks of machines that keep time differ by less, in ms. */
const mostSkewMs = 10_000

/** One worker process from its start to its death: everything that it waits for comes from here. */
export class SimulatedProcess {
  readonly name: string
  readonly index: number
  readonly statements: ProcessStatements
  readonly renewer: SimulatedRenewer
  readonly claims: Claims
  readonly ports: LoopPorts
  readonly clocks: Clocks
  /** How much its wall clock is ahead of the database's, in ms. */
  skewMs: number
  readonly random: () => number
  readonly #apart: Apart
  isDead = false
  /** Takes no more jobs. */
  isStopping = false
  runs = 0
  /** How often something happened that a tool may have to run again for. */
  disturbances = 0
  readonly #world: World
  readonly #standsUntil = { main: 0, renewal: 0 }
  #failing = { when: 'before', times: 0 } as { when: 'before' | 'after'; times: number }
  #jobs = 0
  /** Until when every slot had its job. */
  #fullUntil = 0
  #seeking = false

  constructor(world: World, index: number, life: number) {
    this.#world = world
    this.index = index
    this.name = `P${index + 1}${'abcdefghijklmnopqrstuvwxyz'[life % 26]}`
    this.random = randomOf(world.plan.noise, 10 + index * 1_000 + life)
    this.skewMs = (randomOf(world.plan.noise, 5_000 + index)() - 0.5) * mostSkewMs
    this.clocks = { steady: () => world.scheduler.now, wall: () => world.scheduler.now + this.skewMs }
    this.statements = world.rows.statementsOf(this)
    this.renewer = new SimulatedRenewer(this)
    this.claims = claimsOf(world, this, this.renewer)
    this.ports = portsOf(world, this)
    const ring = (chatId: string, queue: SimulatedJob['queue']) => this.ports.bell.ring(chatId, queue)
    this.#apart = new OneAtATime({ ring, observe() {} })
    this.#sweepLater()
    this.seek()
  }

  /** Runs something later, once this process is not standing still; never when it is dead. */
  later(ms: number, work: () => void, thread: Thread = 'main'): void {
    this.#world.scheduler.after(ms, () => this.#arrive(thread, work))
  }

  #arrive(thread: Thread, work: () => void): void {
    if (this.isDead) return
    const left = this.#standsUntil[thread] - this.#world.scheduler.now
    if (left > 0) this.later(left, work, thread)
    else work()
  }

  /** Waits for the effect of something outside; what was sent is done even if this process does not live to hear of it. */
  call<T>(
    what: string,
    effect: () => Promise<T>,
    { thread = 'main', statement = true, ms = 30, idle = false, sql }: Call = {},
  ): Promise<T> {
    const told = sql === undefined ? what : `${what}: ${sql.slice(0, 50)}`
    return new Promise((resolve, reject) => {
      const fault = idle && this.random() < 0.9 ? null : this.#strike(what)
      const send = () =>
        this.#world.scheduler.after(this.#takes(ms, fault), () => {
          const came = statement ? this.#stated(told, effect, fault) : this.#told(told, effect())
          came.catch(() => {})
          this.#suffer(fault, 'after')
          this.later(this.random() * ms, () => void came.then(resolve, reject), thread)
        })
      this.#suffer(fault, 'before')
      if (this.isDead) return
      if (this.#standsUntil[thread] > this.#world.scheduler.now) this.later(0, send, thread)
      else send()
    })
  }

  #takes(ms: number, fault: Fault | null): number {
    return this.random() * (fault?.kind === 'lock' ? lockMs : ms)
  }

  #strike(what: string): Fault | null {
    const fault = this.#world.faultAt(this.index, what)
    if (fault === null) return null
    this.#world.trace(this.name, `  !! ${JSON.stringify(fault)} at ${what}`)
    this.#world.trouble('ms' in fault ? fault.ms : lockMs)
    return fault
  }

  #suffer(fault: Fault | null, now: 'before' | 'after'): void {
    if (fault === null || !('when' in fault) || fault.when !== now) return
    switch (fault.kind) {
      case 'crash':
        this.crash()
        return
      case 'freeze':
      case 'block': {
        const until = this.#world.scheduler.now + fault.ms
        if (fault.ms >= costlyMs) this.disturbances++
        this.#standsUntil.main = Math.max(this.#standsUntil.main, until)
        if (fault.kind === 'freeze') this.#standsUntil.renewal = Math.max(this.#standsUntil.renewal, until)
        return
      }
      case 'fail':
        this.#failing = fault
        return
      default:
        fault satisfies never
    }
  }

  /** A statement, which may fail before or after its effect. */
  #stated<T>(what: string, effect: () => Promise<T>, fault: Fault | null): Promise<T> {
    if (fault?.kind === 'lock') {
      this.disturbances++
      return this.#told(what, Promise.reject(lockConflict()))
    }
    const { when, times } = this.#failing
    if (times === 0 || !this.#world.isBusy) return this.#told(what, this.#heldUp(effect()))
    this.disturbances++
    this.#world.trouble(0)
    this.#failing = { when, times: times - 1 }
    if (when === 'before') return this.#told(what, Promise.reject(databaseAway()))
    return this.#told(`${what} (unheard)`, effect()).then(
      () => Promise.reject(databaseAway()),
      () => Promise.reject(databaseAway()),
    )
  }

  /** Another's transaction that goes on for long, a frozen one's, cuts this process off from the database. */
  async #heldUp<T>(came: Promise<T>): Promise<T> {
    const { now } = this.#world.scheduler
    try {
      return await came
    } finally {
      if (this.#world.scheduler.now - now >= heldUpMs) {
        this.disturbances++
        this.#world.trouble(0)
      }
    }
  }

  #told<T>(what: string, came: Promise<T>): Promise<T> {
    this.#world.traceEnd(this.name, what, came)
    return came
  }

  crash(): void {
    if (this.isDead) return
    this.#world.trace(this.name, 'dies')
    this.isDead = true
    this.disturbances++
    this.#world.trouble(0)
    this.#world.rows.died(this)
    this.#world.redis.died(this)
    this.#world.restart(this)
  }

  /** Ends as a deploy ends it: no more jobs, then what still runs is given to others. */
  deploy(): void {
    if (this.isDead || this.isStopping) return
    this.#world.trace(this.name, 'is asked to stop')
    this.isStopping = true
    this.later(10_000, () => {
      this.disturbances++
      this.claims.abortAll(new ShutdownError('The process is shutting down.'))
      this.later(5_000, () => this.crash())
    })
  }

  /** Whether it had a slot free for a job since then. */
  isFreeSince(at: number): boolean {
    return !this.isDead && !this.isStopping && this.#jobs < jobsAtOnce && this.#fullUntil < at
  }

  /** Takes a job if there is one and a slot is free. */
  seek(): void {
    if (this.isDead || this.isStopping || this.#seeking || this.#jobs >= jobsAtOnce) return
    this.#seeking = true
    this.later(this.random() * 100, () => {
      this.#seeking = false
      const job = this.isStopping ? null : this.#world.redis.take(this)
      if (job === null) return
      void this.#work(job)
      this.seek()
    })
  }

  async #work(job: SimulatedJob): Promise<void> {
    this.#jobs++
    const { chatId, queue } = job
    await this.#drives(`${chatId} as a job of ${queue}`, () => this.#perform(queue, chatId))
    if (this.#jobs === jobsAtOnce) this.#fullUntil = this.#world.scheduler.now
    this.#jobs--
    this.#world.redis.end(job)
    this.seek()
  }

  /** Does a job by the real class of its queue. */
  #perform(queue: SimulatedJob['queue'], chatId: string): Promise<string> {
    const Job = queue === 'runTools' ? RunToolsJob : CompleteJob
    // Its own statements and rings are for agents that are missing, and for applications.
    const nothing = { db: null as never, bells: null as never }
    return new Job({ ...nothing, ports: this.ports, apart: this.#apart }).perform(chatId, () => this.isStopping)
  }

  /** Runs a chat for a caller. */
  drive(order: RunOrder): Promise<void> {
    return this.#drives(
      `${order.chatId} (${order.verb} by ${order.by})`,
      async () => (await run(this.ports, order)).kind,
    )
  }

  /** Runs by the real loop, and takes what a run may end with. */
  async #drives(what: string, work: () => Promise<string>): Promise<void> {
    this.runs++
    this.#world.trace(this.name, `runs ${what}`)
    try {
      this.#world.trace(this.name, `ran ${what}: ${await work()}`)
    } catch (error) {
      this.#world.trace(this.name, `ran ${what}: ${error}`)
      const known = error instanceof ThreadmillError || error instanceof ToolBug || isRetryable(error)
      if (!known) this.#world.monitor.violate(`a run ended with ${(error as Error)?.stack ?? error}`)
    }
    this.runs--
  }

  #sweepLater(): void {
    this.later(sweepEveryMs * (0.75 + this.random() / 2), () => void this.#sweep())
  }

  async #sweep(): Promise<void> {
    const late = this.#world.sweepsLateBy(this.index)
    if (late > 0) return this.later(late, () => void this.#sweep())
    try {
      for (const { chatId, queue, claimToken } of await this.statements.dueChats(200)) {
        this.#world.redis.ring(chatId, queue, sweepJob(chatId, claimToken, this.#world.scheduler.now + this.skewMs))
      }
    } catch {
      // Looked for again at the next sweep.
    }
    this.#sweepLater()
  }
}
