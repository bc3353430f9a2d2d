import { AssertionError } from 'node:assert'
import { setTimeout as wait } from 'node:timers/promises'

/**
 * Resolves once `condition` gives something true, with that; asks it every 25 ms.
 * @throws {AssertionError} when it has not within the limit, or the signal is aborted.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<T> {
  const begun = performance.now()
  for (;;) {
    const seen = await condition()
    if (seen) return seen
    if (signal.aborted || performance.now() - begun > limitMs) {
      throw new AssertionError({ message: `Waited in vain for this, up to ${limitMs} ms: ${what}` })
    }
    await wait(25)
  }
}
