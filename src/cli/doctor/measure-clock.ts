import type { Clock } from './facts.ts'

const looks = 3

/**
 * Compares a server's clock with this process's. The answer was made some time between question and reply, so half of that
 * is how far it can be off; the quickest of a few looks counts.
 * @param read asks for the server's time, in ms since 1970.
 */
export async function clockOf(read: () => Promise<number>): Promise<Clock> {
  let best: Clock | null = null
  for (let look = 0; look < looks; look++) {
    const asked = Date.now()
    const begun = performance.now()
    const there = await read()
    const halfMs = (performance.now() - begun) / 2
    if (best === null || halfMs < best.withinMs) best = { aheadMs: there - (asked + halfMs), withinMs: halfMs }
  }
  return best ?? { aheadMs: 0, withinMs: 0 }
}
