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
  /** The chats whose ids are among these texts, and the tokens of their claims, where they are live. */
  claimsOf(texts: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Somebody writes to the chats whose ids are among these texts. */
  interfere(texts: readonly string[]): void
}

/** A worker that does not come to its boundary within this time is struck wherever it is, in ms. */
const patienceMs = 2_500
/** How much longer than its claims live one stands still that came to its boundary later than that, in ms. */
const lateMs = 500
/** How long a blow waits for somebody to hit, in ms. */
const victimMs = 5_000
/** For a statement of people, in ms. */
const interfereMs = 50

interface Struck {
  readonly fault: Extract<Fault, { kind: 'kill' | 'freeze' | 'hold' }>
  /** It is at its boundary, with these values of statements. */
  readonly met: (texts: readonly string[]) => void
}

/** Kills, stops and holds up workers, at boundaries or anywhere. */
export class Strikes {
  readonly #options: StrikeOptions
  readonly #struck = new Map<WorkerLife, Struck>()

  constructor(options: StrikeOptions) {
    this.#options = options
  }

  async strike(fault: Struck['fault']): Promise<void> {
    // On a slow machine workers come up later than others are struck.
    const worker = await until('a worker is free', () => this.#victim(), victimMs).catch(() => null)
    if (worker === null) return
    worker.isStruck = true
    const met = fault.boundary === null ? null : await this.#send(worker, fault, fault.boundary)
    switch (fault.kind) {
      case 'kill':
        // One that was sent to its boundary has done so itself.
        if (met === null) worker.signal('SIGKILL')
        return
      case 'freeze':
        if (met === null) worker.signal('SIGSTOP')
        await this.#thaw(worker, fault.extraMs, met ?? [])
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
      if (does === 'stop') void this.#thaw(worker, lateMs, texts)
      return
    }
    this.#struck.delete(worker)
    if (struck.fault.kind === 'hold') {
      this.#options.tally.count('hold')
      this.#options.interfere(texts)
    }
    struck.met(texts)
  }

  /** One that works, and holds a chat if there is such a one. */
  #victim(): WorkerLife | null {
    const { fleet, random } = this.#options
    const holding = fleet.free.filter(({ held }) => held.size > 0)
    const among = holding.length > 0 ? holding : fleet.free
    return among[Math.floor(random() * among.length)] ?? null
  }

  /** The values of statements at the boundary; null: it did not come there in time. */
  async #send(worker: WorkerLife, fault: Struck['fault'], boundary: Boundary): Promise<readonly string[] | null> {
    const blow = {
      kill: { does: 'kill' } as const,
      freeze: { does: 'stop' } as const,
      hold: { does: 'hold', ms: fault.kind === 'hold' ? fault.ms : 0 } as const,
    }[fault.kind]
    const given = new AbortController()
    const met = new Promise<readonly string[]>((resolve) => this.#struck.set(worker, { fault, met: resolve }))
    worker.order({ kind: 'trap', boundary, blow })
    const inVain = wait(patienceMs, null, { signal: given.signal }).catch(() => null)
    const came = await Promise.race([met, inVain])
    given.abort()
    if (came !== null) return came
    this.#struck.delete(worker)
    worker.order({ kind: 'spare' })
    return null
  }

  /** In a transaction it keeps rows that its own renewals wait for. */
  async #hold(worker: WorkerLife, ms: number): Promise<void> {
    const from = Date.now()
    await wait(ms)
    this.#options.fleet.stalls.push({ worker: worker.name, from, to: Date.now() })
  }

  async #thaw(worker: WorkerLife, extraMs: number | null, texts: readonly string[]): Promise<void> {
    const { tally, ttlMs, haveLapsed, claimsOf, interfere } = this.#options
    const from = Date.now()
    // One that was stopped right behind a take has not told of it.
    const held = new Map([...(await claimsOf(texts)), ...worker.held])
    let isPast = held.size > 0
    if (extraMs === null) {
      const lapsed = () => haveLapsed(held).catch(() => false)
      isPast &&= await until('its claims have lapsed', lapsed, ttlMs + 1_000).catch(() => false)
    } else {
      await wait(ttlMs + extraMs)
      // Whoever holds its chat now finds something new there, as it does itself.
      interfere(texts)
      await wait(interfereMs)
    }
    worker.signal('SIGCONT')
    if (worker.state === 'gone') return
    tally.freezes.push({ worker: worker.name, from, to: Date.now(), held })
    if (isPast) tally.count('freeze')
  }
}
