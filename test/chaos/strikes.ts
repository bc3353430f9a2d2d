import { setTimeout as wait } from 'node:timers/promises'
import { until } from '../support/until.ts'
import type { Boundary } from './boundary.ts'
import type { Fleet, WorkerLife } from './fleet.ts'
import type { Report } from './messages.ts'
import type { Fault } from './plan.ts'
import type { Tally } from './tally.ts'

export interface StrikeOptions {
  readonly fleet: Fleet
  readonly tally: Tally
  readonly ttlMs: number
  readonly random: () => number
  /** Whether none of these claims is live any more; false too while the database does not answer. */
  haveLapsed(held: ReadonlyMap<string, number>): Promise<boolean>
  /** Somebody writes to the chats whose ids are among these texts. */
  interfere(texts: readonly string[]): void
}

/** A worker that does not come to its boundary within this time is struck wherever it is, in ms. */
const patienceMs = 2_500
/** How much longer than its claims live one stands still that came to its boundary later than that, in ms. */
const lateMs = 500

type Struck = { readonly fault: Extract<Fault, { kind: 'kill' | 'freeze' | 'hold' }>; readonly met: () => void }

/** Kills, stops and holds up workers, at boundaries or anywhere. */
export class Strikes {
  readonly #options: StrikeOptions
  readonly #struck = new Map<WorkerLife, Struck>()

  constructor(options: StrikeOptions) {
    this.#options = options
  }

  async strike(fault: Struck['fault']): Promise<void> {
    const worker = this.#victim()
    if (worker === null) return
    worker.isStruck = true
    const met = fault.boundary === null ? false : await this.#send(worker, fault, fault.boundary)
    switch (fault.kind) {
      case 'kill':
        // One that was sent to its boundary has done so itself.
        if (!met) worker.signal('SIGKILL')
        return
      case 'freeze':
        if (!met) worker.signal('SIGSTOP')
        await this.#thaw(worker, fault.extraMs)
        break
      case 'hold':
        await this.#hold(worker, fault.ms)
        break
      default:
        return fault satisfies never
    }
    worker.isStruck = false
  }

  /** A worker is at its boundary, or comes to it after it was given up: then one that stops must go on. */
  trapped(worker: WorkerLife, { does, texts }: Extract<Report, { kind: 'trapped' }>): void {
    const struck = this.#struck.get(worker)
    if (struck === undefined) {
      if (does === 'stop') void this.#thaw(worker, lateMs)
      return
    }
    this.#struck.delete(worker)
    if (struck.fault.kind === 'hold') {
      this.#options.tally.count('hold')
      this.#options.interfere(texts)
    }
    struck.met()
  }

  /** One that works, and holds a chat if there is such a one. */
  #victim(): WorkerLife | null {
    const { fleet, random } = this.#options
    const holding = fleet.free.filter(({ held }) => held.size > 0)
    const among = holding.length > 0 ? holding : fleet.free
    return among[Math.floor(random() * among.length)] ?? null
  }

  /** False: it did not come to the boundary in time. */
  async #send(worker: WorkerLife, fault: Struck['fault'], boundary: Boundary): Promise<boolean> {
    const blow = {
      kill: { does: 'kill' } as const,
      freeze: { does: 'stop' } as const,
      hold: { does: 'hold', ms: fault.kind === 'hold' ? fault.ms : 0 } as const,
    }[fault.kind]
    const given = new AbortController()
    const met = new Promise<true>((resolve) => this.#struck.set(worker, { fault, met: () => resolve(true) }))
    worker.order({ kind: 'trap', boundary, blow })
    const inVain = wait(patienceMs, false as const, { signal: given.signal }).catch(() => false as const)
    const came = await Promise.race([met, inVain])
    given.abort()
    if (came) return true
    this.#struck.delete(worker)
    worker.order({ kind: 'spare' })
    return false
  }

  /** In a transaction it keeps rows that its own renewals wait for. */
  async #hold(worker: WorkerLife, ms: number): Promise<void> {
    const from = Date.now()
    await wait(ms)
    this.#options.fleet.stalls.push({ worker: worker.name, from, to: Date.now() })
  }

  async #thaw(worker: WorkerLife, extraMs: number | null): Promise<void> {
    const { tally, ttlMs, haveLapsed } = this.#options
    const from = Date.now()
    const held = new Map(worker.held)
    let isPast = held.size > 0
    if (extraMs === null) {
      const lapsed = () => haveLapsed(held).catch(() => false)
      isPast &&= await until('its claims have lapsed', lapsed, ttlMs + 1_000).catch(() => false)
    } else await wait(ttlMs + extraMs)
    worker.signal('SIGCONT')
    if (worker.state === 'gone') return
    tally.freezes.push({ worker: worker.name, from, to: Date.now(), held })
    if (isPast) tally.count('freeze')
  }
}
