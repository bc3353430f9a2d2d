/** A moment by both clocks: a machine that slept moves only the wall clock, a clock that is set moves only that too. */
export interface Moment {
  readonly steady: number
  readonly wall: number
}

/** Where moments come from: this thread's own clocks, or those of a simulator, in ms. */
export interface Clocks {
  steady(): number
  wall(): number
}

export const realClocks: Clocks = { steady: () => performance.now(), wall: () => Date.now() }

export function moment(clocks: Clocks = realClocks): Moment {
  return { steady: clocks.steady(), wall: clocks.wall() }
}

/** Ms since a moment, by whichever clock says more: a claim must never be thought younger than it is. */
export function elapsedMs(since: Moment, clocks: Clocks = realClocks): number {
  return Math.max(clocks.steady() - since.steady, clocks.wall() - since.wall)
}

/** The moment that was so long ago, by the same clocks. */
export function momentBefore(ms: number, clocks: Clocks = realClocks): Moment {
  return { steady: clocks.steady() - ms, wall: clocks.wall() - ms }
}
