import type { SqliteHandle } from '../../config/sqlite-handle.ts'
import type { Scheduler } from './scheduler.ts'
import type { Mortal, OpenTransaction } from './sqlite-session.ts'

/** How long whoever wants to write waits for whoever writes, in ms of virtual time. */
const busyWaitMs = 15_000

interface Waiting {
  readonly open: OpenTransaction
  readonly go: () => void
}

/** Who may write: one transaction at a time, the others in the order in which they came. */
export class WriteLock {
  readonly #scheduler: Scheduler
  readonly #writer: SqliteHandle
  #holder: OpenTransaction | null = null
  #waiting: Waiting[] = []

  constructor(scheduler: Scheduler, writer: SqliteHandle) {
    this.#scheduler = scheduler
    this.#writer = writer
  }

  /** Resolves when this one may write. Rejects when it waited for too long, as the engine says it. */
  take(open: OpenTransaction): Promise<void> {
    if (this.#holder === null && this.#waiting.length === 0) {
      this.#holder = open
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const one = { open, go: resolve }
      this.#waiting.push(one)
      this.#scheduler.after(busyWaitMs, () => {
        if (!this.#waiting.includes(one)) return
        this.#forget(one)
        reject(Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' }))
      })
    })
  }

  giveBack(open: OpenTransaction): void {
    open.isOver = true
    if (this.#holder !== open) return
    this.#holder = null
    this.#scheduler.after(1, () => this.#next())
  }

  undo(open: OpenTransaction): void {
    if (this.#holder === open) this.#writer.execute('ROLLBACK', [])
    for (const one of this.#waiting) if (one.open === open) this.#forget(one)
    this.giveBack(open)
  }

  /** Undoes what a process has open: its connections are gone. */
  died(process: Mortal): void {
    for (const { open } of this.#waiting) if (open.process === process) this.undo(open)
    if (this.#holder?.process === process) this.undo(this.#holder)
  }

  #forget(one: Waiting): void {
    this.#waiting = this.#waiting.filter((other) => other !== one)
  }

  #next(): void {
    if (this.#holder !== null) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    this.#holder = next.open
    next.go()
  }
}
