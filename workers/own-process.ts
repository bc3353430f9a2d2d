import { type ChildProcess, fork } from 'node:child_process'
import { childEnvironment } from '../config/settings.ts'
import type { Database } from '../models/database.ts'
import { type Death, noteDeath } from '../models/deaths.ts'
import { CancelledError } from '../src/errors.ts'
import { errorFacts } from '../src/observability/error-facts.ts'
import type { Observe } from '../src/observability/observation.ts'
import { type Apart, type ApartWork, Places, type RingAgain } from './apart.ts'
import type { JobOutcome } from './job.ts'

/** A program that runs one chat and ends: it is given `--only CHAT --queue QUEUE`, and says what that came to. */
export interface OnlyProgram {
  readonly file: string
  /** What comes before those. */
  readonly argv: readonly string[]
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** What such a program says over its channel when the chat is given back. */
export interface OnlyReport {
  readonly only: JobOutcome | 'cancelled'
}

export interface OwnProcessesOptions {
  readonly program: OnlyProgram
  readonly db: Database
  readonly ring: RingAgain
  readonly observe: Observe
  /** How long a process that was asked to end is given before it is ended, in ms. */
  readonly endWithinMs: number
}

/** How many such processes one process has at a time: each takes the memory of a whole one. */
const atOnce = 4

/** Runs each of them in a process of its own, which ends with it: its death is that of one chat. (E121) */
export class OwnProcesses implements Apart {
  readonly #options: OwnProcessesOptions
  readonly #places: Places
  readonly #children = new Set<ChildProcess>()
  #closing = false

  constructor(options: OwnProcessesOptions) {
    this.#options = options
    this.#places = new Places(atOnce, options.ring)
  }

  async run(work: ApartWork): Promise<JobOutcome> {
    if (this.#closing) return 'runs alone later'
    return this.#places.use(work, () => this.#inChild(work))
  }

  close(): void {
    this.#closing = true
    this.#places.close()
    for (const child of this.#children) this.#end(child)
  }

  #end(child: ChildProcess): void {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), this.#options.endWithinMs)
    child.once('exit', () => clearTimeout(timer))
  }

  async #inChild(work: ApartWork): Promise<JobOutcome> {
    const { chatId, queue, deaths } = work
    const { observe } = this.#options
    const begun = performance.now()
    const child = start(this.#options.program, work)
    this.#children.add(child)
    const pid = child.pid ?? null
    observe({ type: 'alone.started', chatId, queue, deaths, pid })
    if (pid !== null) work.onProcess(pid)
    const { report, how } = await ended(child, this.#options.endWithinMs)
    this.#children.delete(child)
    const died = report === null && !this.#closing
    const durationMs = performance.now() - begun
    observe({
      ...{ type: 'alone.ended', chatId, queue, pid, durationMs },
      ...(died ? { outcome: 'died', how } : { outcome: 'ended', how: null }),
    })
    if (died) await this.#note({ chatId, how, after: work.claimToken })
    // It was asked to end before it had begun.
    if (report === null) return died ? 'died alone' : 'runs alone later'
    if (report.only === 'cancelled') throw new CancelledError(`The turn of chat ${chatId} was cancelled.`, { chatId })
    return report.only
  }

  /** The death itself is counted by whoever takes the chat next. */
  async #note(death: Death): Promise<void> {
    const { db, observe } = this.#options
    await noteDeath(db, death).catch((error: unknown) =>
      observe({ type: 'database.trouble', doing: 'noting how a process ended', error: errorFacts(error) }),
    )
  }
}

function start({ file, argv, execArgv, env }: OnlyProgram, { chatId, queue }: ApartWork): ChildProcess {
  return fork(file, [...argv, '--only', chatId, '--queue', queue], {
    execArgv: [...execArgv],
    env: childEnvironment(env),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

/** What a process said before it ended, null where it said nothing; and how it ended, in words. */
interface Ended {
  readonly report: OnlyReport | null
  readonly how: string
}

function ended(child: ChildProcess, endWithinMs: number): Promise<Ended> {
  let report: OnlyReport | null = null
  child.on('message', (said) => {
    if (!isReport(said)) return
    report = said
    // The chat is given back: nothing is lost by a process that can't close.
    const timer = setTimeout(() => child.kill('SIGKILL'), endWithinMs)
    child.once('exit', () => clearTimeout(timer))
  })
  return new Promise((resolve) => {
    child.on('error', ({ message }) => {
      if (child.pid === undefined) resolve({ report: null, how: message })
    })
    child.once('exit', (code, signal) => {
      const settle = () => resolve({ report, how: signal === null ? `exit code ${code}` : `signal ${signal}` })
      // What it said last may come after its end.
      if (child.connected) child.once('disconnect', settle)
      else settle()
    })
  })
}

function isReport(said: unknown): said is OnlyReport {
  return typeof said === 'object' && said !== null && 'only' in said
}
