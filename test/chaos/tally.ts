import type { FaultKind } from './plan.ts'

/** What was done to a part, by kind. */
export type Injected =
  | Exclude<FaultKind, 'restart' | 'slow' | 'cut' | 'refuse'>
  | `${'restart' | 'slow' | 'cut' | 'refuse'}-${'redis' | 'database'}`
  | 'lost-commit'

/** A process was stopped, and went on. */
export interface Freeze {
  readonly worker: string
  readonly from: number
  readonly to: number
  /** The chats that it held, and the tokens of their claims. */
  readonly held: ReadonlyMap<string, number>
}

/** A process that worked was killed. */
export interface Death {
  readonly worker: string
  readonly at: number
  readonly held: ReadonlyMap<string, number>
}

/** A time in which workers may have been cut off from the database. */
export interface Outage {
  readonly from: number
  readonly to: number
}

/** What went wrong, as it was done. Times are in ms since the epoch. */
export class Tally {
  readonly counts = new Map<Injected, number>()
  readonly deaths: Death[] = []
  readonly freezes: Freeze[] = []
  readonly outages: Outage[] = []

  count(kind: Injected): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
  }

  /** Notes an outage of the database that lasts as long as `work` does. */
  async outage<T>(work: () => Promise<T>): Promise<T> {
    const from = Date.now()
    try {
      return await work()
    } finally {
      this.outages.push({ from, to: Date.now() })
    }
  }
}
