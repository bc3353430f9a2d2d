import { type Clocks, elapsedMs, type Moment, moment, momentBefore, realClocks } from './elapsed.ts'

/** The statements that renewal needs; each moves one row. */
export interface RenewalRows {
  /** False = the claim is no longer held. `onSent` is to be called when the statement is about to go, where that is known. */
  renewChat(chatId: string, claimId: string, onSent: () => void): Promise<boolean>
  renewToolCall(callId: string, claimId: string): Promise<void>
}

export interface RenewalTimes {
  readonly ttlMs: number
  readonly renewMs: number
  /** How long before its expiry a claim that could not be renewed is given up. */
  readonly marginMs: number
}

export interface RenewalReport {
  /** `elapsed`: ms since it was begun; `gap`: ms between that and the start of the one before. */
  renewed(claimId: string, elapsed: number, gap: number): void
  lost(claimId: string): void
}

interface Held {
  readonly chatId: string
  readonly calls: Set<string>
  /** When the last renewal that succeeded was begun. */
  last: Moment
  busy: boolean
}

/** Keeps claims alive. Driven by `tick`, so that a test can be its clock. */
export class Renewal {
  readonly #held = new Map<string, Held>()
  readonly #rows: RenewalRows
  readonly #times: RenewalTimes
  readonly #report: RenewalReport
  readonly #clocks: Clocks

  constructor(rows: RenewalRows, times: RenewalTimes, report: RenewalReport, clocks: Clocks = realClocks) {
    this.#rows = rows
    this.#times = times
    this.#report = report
    this.#clocks = clocks
  }

  /** `elapsed`: ms since the take was begun. */
  hold(claimId: string, chatId: string, elapsed: number): void {
    this.#held.set(claimId, { chatId, calls: new Set(), last: momentBefore(elapsed, this.#clocks), busy: false })
  }

  drop(claimId: string): void {
    this.#held.delete(claimId)
  }

  holdToolCall(claimId: string, callId: string): void {
    this.#held.get(claimId)?.calls.add(callId)
  }

  dropToolCall(claimId: string, callId: string): void {
    this.#held.get(claimId)?.calls.delete(callId)
  }

  /** Renews whatever is due. Resolves when all that it began has ended. */
  async tick(): Promise<void> {
    const due = [...this.#held].filter(([, held]) => elapsedMs(held.last, this.#clocks) >= this.#times.renewMs)
    // A statement that never comes back must not keep a claim from being given up in time.
    for (const [claimId, held] of due) if (held.busy && this.#isSpent(held)) this.#lose(claimId)
    const idle = due.filter(([, held]) => !held.busy)
    await Promise.all(idle.map(([claimId, held]) => this.#renew(claimId, held)))
  }

  async #renew(claimId: string, held: Held): Promise<void> {
    held.busy = true
    let begun = moment(this.#clocks)
    const { last } = held
    try {
      // Calls first: the chat's claim must outlive them.
      await Promise.all([...held.calls].map((callId) => this.#rows.renewToolCall(callId, claimId)))
      const kept = await this.#rows.renewChat(held.chatId, claimId, () => {
        begun = moment(this.#clocks)
      })
      if (!this.#held.has(claimId)) return
      if (!kept) return this.#lose(claimId)
      held.last = begun
      const elapsed = elapsedMs(begun, this.#clocks)
      this.#report.renewed(claimId, elapsed, elapsedMs(last, this.#clocks) - elapsed)
    } catch {
      // Tried again at the next tick for as long as the claim can still be good.
      if (this.#held.has(claimId) && this.#isSpent(held)) this.#lose(claimId)
    } finally {
      held.busy = false
    }
  }

  /** Whether too little of the claim is left to count on it. */
  #isSpent(held: Held): boolean {
    return elapsedMs(held.last, this.#clocks) >= this.#times.ttlMs - this.#times.marginMs
  }

  #lose(claimId: string): void {
    this.#held.delete(claimId)
    this.#report.lost(claimId)
  }
}
