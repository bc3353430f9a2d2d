/** A moment by both clocks: a machine that slept moves only the wall clock, a clock that is set moves only that too. */
export interface Moment {
  readonly steady: number
  readonly wall: number
}

export function moment(): Moment {
  return { steady: performance.now(), wall: Date.now() }
}

/** Ms since a moment, by whichever clock says more: a claim must never be thought younger than it is. */
export function elapsedMs(since: Moment): number {
  return Math.max(performance.now() - since.steady, Date.now() - since.wall)
}

/** The moment that was so long ago, in this thread's own clocks. */
export function momentBefore(ms: number): Moment {
  return { steady: performance.now() - ms, wall: Date.now() - ms }
}
