import { setTimeout as wait } from 'node:timers/promises'

/** Resolves with the first truthy answer; rejects, saying what was waited for, when none came in time. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  limitMs = 15_000,
): Promise<NonNullable<Exclude<T, false>>> {
  const start = performance.now()
  for (;;) {
    const seen = await look()
    if (seen) return seen as NonNullable<Exclude<T, false>>
    if (performance.now() - start > limitMs) throw new Error(`Waited ${limitMs} ms in vain: ${what}`)
    await wait(15)
  }
}
