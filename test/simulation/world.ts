import { setAsideAt } from '../../models/deaths.ts'
import type { Statements } from '../memory/statements.ts'
import type { MemoryTables } from '../memory/tables.ts'
import type { Bug } from './bugs.ts'
import { Monitor } from './monitor.ts'
import type { Fault, Plan, Reply, Wait } from './plan.ts'
import { SimulatedProcess } from './process.ts'
import { randomOf } from './random.ts'
import { SimulatedRedis } from './redis.ts'
import { memoryRowsOf, type WorldRows } from './rows.ts'
import { Scheduler } from './scheduler.ts'
import type { SqliteFile } from './sqlite-file.ts'
import { sqliteRowsOf } from './sqlite-rows.ts'

export interface WorldOptions {
  readonly traced: boolean
  readonly bug: Bug | undefined
  /** A real database for the rows; null = they are in memory. */
  readonly file: SqliteFile | null
}

/** Things go wrong at the first so many waits of a kind. */
const mostOfAKind = 3
/** In memory a transaction is one wait, in a real database about six; of all its waits every third is part of one. */
const inFile = { waitsOfTransaction: 6, waits: 3 }
/** One statement, wherever the rows are. */
const lone: ReadonlySet<Wait> = new Set([
  ...(['take', 'look', 'transcript', 'openUsage', 'closeUsage', 'release', 'renewChat'] as const),
])

/** A database, a Redis, a model and the processes of one simulation, in virtual time. */
export class World {
  readonly plan: Plan
  readonly scheduler = new Scheduler()
  readonly monitor: Monitor
  readonly rows: WorldRows
  readonly redis: SimulatedRedis
  readonly processes: SimulatedProcess[] = []
  readonly random: () => number
  readonly chatIds: readonly string[]
  /** Whether things still go wrong. */
  isBusy = true
  /** Until when something was wrong. */
  troubledUntil = Number.NEGATIVE_INFINITY
  /** What happened, a line each; null = nobody wants to know. */
  readonly lines: string[] | null
  readonly #bug: Bug | undefined
  #ids = 0
  readonly #lives: number[]
  /** How often each process has waited, for anything and for each thing. */
  readonly #waits = new Map<string, number>()
  readonly #faults = new Map<string, Fault>()
  readonly #sweepsLate = new Map<number, number>()
  readonly #kills = new Map<string, number>()
  readonly #replies = new Map<string, Reply[]>()
  readonly #repliesBelow: Reply[]
  readonly #inFile: boolean

  constructor(plan: Plan, { traced, bug, file }: WorldOptions) {
    this.plan = plan
    this.#bug = bug
    this.#inFile = file !== null
    this.#repliesBelow = [...plan.repliesBelow]
    this.monitor = new Monitor(this)
    this.random = randomOf(plan.noise, 1)
    this.rows = file === null ? memoryRowsOf(this) : sqliteRowsOf(this, file)
    bug?.world?.(this)
    this.lines = traced ? [] : null
    this.chatIds = Array.from({ length: plan.chats }, (_, at) => `chat-${at + 1}`)
    this.redis = new SimulatedRedis(this.scheduler, plan.rings, {
      waits: () => {
        for (const process of this.processes) process.seek()
      },
      heard: (chatId) => this.monitor.deadlines.rung(chatId),
    })
    for (const [at, id] of this.chatIds.entries()) {
      this.rows.addChat(id)
      this.#replies.set(
        id,
        plan.replies.filter((_, reply) => reply % plan.chats === at),
      )
    }
    this.#lives = Array.from({ length: plan.processes }, () => 0)
  }

  /** The rows as they are stored now. */
  get tables(): MemoryTables {
    return this.rows.tables
  }

  /** As applications send them. */
  get statements(): Statements {
    return this.rows.statements
  }

  /** Notes that something goes wrong, now and for so many ms. */
  trouble(ms: number): void {
    this.troubledUntil = Math.max(this.troubledUntil, this.scheduler.now + ms)
  }

  /** Starts the processes, and sets the time of what goes wrong at a time. */
  start(): void {
    for (const index of this.#lives.keys()) this.#begin(index, 0)
    for (const fault of this.plan.faults) this.#expect(fault)
  }

  #expect(fault: Fault): void {
    if ('step' in fault) {
      const { process, wait, step } = fault
      const at = wait === null ? this.#anyWait(step) : 1 + (step % this.#mostOf(wait))
      this.#faults.set(`${process % this.plan.processes}:${wait ?? 'any'}:${at}`, fault)
      return
    }
    this.scheduler.after(fault.at, () => {
      this.trace('----', JSON.stringify(fault))
      this.trouble('ms' in fault && fault.kind !== 'set-clock' ? fault.ms : 0)
      switch (fault.kind) {
        case 'flush':
          return this.redis.flush()
        case 'away':
          this.redis.isAway = true
          return this.scheduler.after(fault.ms, () => {
            this.redis.isAway = false
            for (const process of this.processes) process.seek()
          })
        case 'late-sweeps':
          this.#sweepsLate.set(fault.process % this.plan.processes, this.scheduler.now + fault.ms)
          return
        case 'set-clock': {
          const process = this.processes[fault.process % this.plan.processes]
          if (process !== undefined) process.skewMs += fault.ms
          return
        }
        case 'deploy':
          return this.processes[fault.process % this.plan.processes]?.deploy()
        default:
          fault satisfies never
      }
    })
  }

  #anyWait(step: number): number {
    return this.#inFile ? step * inFile.waits - (step % inFile.waits) : step
  }

  #mostOf(wait: Wait): number {
    return this.#inFile && !lone.has(wait) ? mostOfAKind * inFile.waitsOfTransaction : mostOfAKind
  }

  /** From now on nothing goes wrong. */
  calm(): void {
    this.isBusy = false
    this.redis.calm()
    this.trace('----', 'calm')
  }

  /** Counts a wait of a process; what goes wrong there. */
  faultAt(index: number, what: string): Fault | null {
    const any = this.#count(`${index}:any`)
    const ofItsKind = this.#count(`${index}:${what}`)
    return this.isBusy ? (this.#faults.get(any) ?? this.#faults.get(ofItsKind) ?? null) : null
  }

  #count(counter: string): string {
    const count = (this.#waits.get(counter) ?? 0) + 1
    this.#waits.set(counter, count)
    return `${counter}:${count}`
  }

  /** How much later than it wants to a process sweeps, in ms. */
  sweepsLateBy(index: number): number {
    return this.isBusy ? (this.#sweepsLate.get(index) ?? 0) - this.scheduler.now : 0
  }

  /** Starts a process in the place of one that died. */
  restart({ index }: SimulatedProcess): void {
    this.scheduler.after(1_000 + this.random() * 9_000, () => {
      const life = (this.#lives[index] ?? 0) + 1
      this.#lives[index] = life
      this.#begin(index, life)
    })
  }

  #begin(index: number, life: number): void {
    const process = new SimulatedProcess(this, index, life)
    this.#bug?.process?.(this, process)
    this.processes[index] = process
  }

  /** Whether a deadly call ends its process once more. */
  kills(callId: string): boolean {
    const times = (this.#kills.get(callId) ?? 0) + 1
    this.#kills.set(callId, times)
    return times <= setAsideAt
  }

  nextReply(chatId: string): Reply {
    return (this.#replies.get(chatId) ?? this.#repliesBelow).shift() ?? { kind: 'text', ms: 1_000 }
  }

  /** The chats that there are by now, those of other agents too. */
  get everyChat(): readonly string[] {
    return [...this.tables.chats.keys()]
  }

  /** Ids sort by the order in which they were made. */
  newId(of: string): string {
    return `${of}-${String(++this.#ids).padStart(6, '0')}`
  }

  trace(who: string, what: string): void {
    this.lines?.push(`${(this.scheduler.now / 1_000).toFixed(3).padStart(9)}  ${who.padEnd(4)} ${what}`)
  }

  /** Tells what something came to. */
  traceEnd(who: string, what: string, came: Promise<unknown>): void {
    if (this.lines === null) return
    came.then(
      (returned) => this.trace(who, `  ${what} → ${shortened(returned)}`),
      (error: unknown) => this.trace(who, `  ${what} → throws ${error}`),
    )
  }
}

function shortened(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 100)
}
