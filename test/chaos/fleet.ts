import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { bundle } from '../support/bundle.ts'
import type { Janitor } from './janitor.ts'
import type { Order, Report, WorkerSetup } from './messages.ts'

/** A worker process, from its start to its end. Times are in ms since the epoch. */
export interface WorkerLife {
  readonly name: string
  readonly pid: number
  readonly from: number
  /** When it was gone; null while it lives. */
  to: number | null
  state: 'starting' | 'ready' | 'working' | 'gone'
  /** Something is being done to it. */
  isStruck: boolean
  /** The chats that it said it holds, and the tokens of their claims. */
  readonly held: Map<string, number>
  order(order: Order): void
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
}

/** A chat was taken. */
export interface Take {
  readonly chatId: string
  readonly token: number
  readonly worker: string
  readonly at: number
}

/** A job of a chat was begun. */
export interface StartedJob {
  readonly chatId: string
  /** Who rang: `ring`, `later` or `sweep`. */
  readonly job: string
}

/** A time in which a process stood still. */
export interface Standstill {
  readonly worker: string
  readonly from: number
  readonly to: number
}

export interface FleetOptions {
  /** How many take jobs at a time. */
  readonly workers: number
  readonly janitor: Janitor
  setupOf(name: string): WorkerSetup
  /** A worker is at the boundary that it was sent to. */
  onTrapped(worker: WorkerLife, report: Extract<Report, { kind: 'trapped' }>): void
  /** A worker that worked is gone; `held` is what it held. */
  onDied(worker: WorkerLife): void
}

const keptOutput = 3_000
const retryMs = 300

/** Worker processes: as many as were asked for take jobs, and one more is up already, to stand in for the next that dies. */
export class Fleet {
  readonly lives: WorkerLife[] = []
  readonly takes: Take[] = []
  readonly jobs: StartedJob[] = []
  /** Those that nobody had ordered: the machine was busy. */
  readonly stalls: Standstill[] = []
  /** Processes that ended without having been killed, and what they said. */
  readonly broken: string[] = []
  readonly #options: FleetOptions
  readonly #ends: Promise<void>[] = []
  #isClosing = false
  #named = 0

  constructor(options: FleetOptions) {
    this.#options = options
  }

  /** Those that take jobs, and to which nothing is being done. */
  get free(): WorkerLife[] {
    return this.lives.filter(({ state, isStruck }) => state === 'working' && !isStruck)
  }

  get working(): WorkerLife[] {
    return this.lives.filter(({ state }) => state === 'working')
  }

  /** Has as many processes as there should be. */
  async fill(): Promise<void> {
    if (this.#isClosing) return
    const living = this.lives.filter(({ state }) => state !== 'gone')
    const missing = this.#options.workers + 1 - living.length
    for (let left = missing; left > 0; left--) await this.#start()
    this.#employ()
  }

  /** Ends all of them, and resolves when they are gone. */
  async close(): Promise<void> {
    this.#isClosing = true
    for (const life of this.lives) if (life.state !== 'gone') life.signal('SIGKILL')
    await Promise.all(this.#ends)
  }

  #employ(): void {
    const wanted = this.#options.workers - this.working.length
    const ready = this.lives.filter(({ state }) => state === 'ready')
    for (const life of ready.slice(0, Math.max(0, wanted))) {
      life.state = 'working'
      life.order({ kind: 'work' })
    }
  }

  async #start(): Promise<void> {
    const { janitor, setupOf } = this.#options
    const program = (await bundle()).program('test/chaos/chaos-worker.ts')
    if (this.#isClosing) return
    const name = `worker-${++this.#named}`
    const child = spawn(process.execPath, [program], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, THREADMILL_CHAOS: JSON.stringify(setupOf(name)) },
      detached: true,
    })
    const pid = child.pid ?? 0
    janitor.watch(pid)
    child.stdin.on('error', () => {})
    const life: WorkerLife = {
      ...{ name, pid, from: Date.now(), to: null, state: 'starting', isStruck: false, held: new Map() },
      order: (order) => void child.stdin.write(`${JSON.stringify(order)}\n`),
      signal: (signal) => void child.kill(signal),
    }
    this.lives.push(life)
    let output = ''
    child.stderr.on('data', (part: Buffer) => {
      output = (output + part.toString()).slice(-keptOutput)
    })
    createInterface({ input: child.stdout }).on('line', (line) => this.#hear(life, JSON.parse(line) as Report))
    this.#ends.push(
      new Promise((resolve) => {
        // Once everything that it said was read.
        child.once('close', (code, signal) => {
          janitor.forget(pid)
          this.#ended(life, signal === 'SIGKILL' ? null : `it ended with ${code ?? signal}: ${output}`)
          resolve()
        })
      }),
    )
  }

  #ended(life: WorkerLife, complaint: string | null): void {
    const { state } = life
    life.state = 'gone'
    life.to = Date.now()
    if (this.#isClosing) return
    // One that can't connect while a server is away gives up, as it should.
    if (complaint !== null && state !== 'starting') this.broken.push(`${life.name}: ${complaint}`)
    if (state === 'working') this.#options.onDied(life)
    setTimeout(() => void this.fill(), state === 'starting' ? retryMs : 0)
  }

  #hear(life: WorkerLife, report: Report): void {
    const now = Date.now()
    switch (report.kind) {
      case 'ready':
        if (life.state === 'starting') life.state = 'ready'
        this.#employ()
        return
      case 'working':
        return
      case 'trapped':
        this.#options.onTrapped(life, report)
        return
      case 'taken':
        life.held.set(report.chatId, report.token)
        this.takes.push({ chatId: report.chatId, token: report.token, worker: life.name, at: now })
        return
      case 'started':
        this.jobs.push({ chatId: report.chatId, job: report.job })
        return
      case 'ended':
        if (life.held.get(report.chatId) === report.token) life.held.delete(report.chatId)
        return
      case 'stalled':
        this.stalls.push({ worker: life.name, from: now - report.ms, to: now })
        return
      case 'broken':
        this.broken.push(`${life.name}: ${report.message}`)
        return
      default:
        report satisfies never
    }
  }
}
