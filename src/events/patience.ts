import { setTimeout as wait } from 'node:timers/promises'
import { UnreachableError } from '../errors.ts'

/** What stands for an answer when none will come any more. */
export const ended: unique symbol = Symbol('ended')

const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 2_000
const LIMIT_MS = 5_000

/** Asks Redis until it answers. Resolves to `ended` as soon as the signal is aborted. */
export async function untilAnswered<T>(
  ask: () => Promise<T>,
  { signal, onError }: { readonly signal: AbortSignal; readonly onError: (error: Error) => void },
): Promise<T | typeof ended> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      if (failures > 0) await pause(failures, signal)
      return await inTime(ask(), signal)
    } catch (error) {
      if (!signal.aborted) onError(error instanceof Error ? error : new Error(String(error)))
    }
  }
  return ended
}

/** Waits before another attempt, longer after each failure. Rejects when the signal is aborted. */
export async function pause(failures: number, signal: AbortSignal): Promise<void> {
  await wait(Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS), null, { signal })
}

// A connection can fall silent without being closed: then neither an answer nor an error comes.
function inTime<T>(answer: Promise<T>, signal: AbortSignal): Promise<T | typeof ended> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      finish()
    }
    const stop = () => settle(() => resolve(ended))
    const timer = setTimeout(() => {
      settle(() => reject(new UnreachableError(`Redis did not answer within ${LIMIT_MS} ms: asking again`)))
    }, LIMIT_MS)
    signal.addEventListener('abort', stop)
    answer.then(
      (value) => settle(() => resolve(value)),
      (error) => settle(() => reject(error)),
    )
  })
}
