import { ClaimLostError, ShutdownError } from '../errors.ts'
import type { StopReason } from './tool.ts'

/** The two timer functions that limits need, so that tests and simulators can bring their own. */
export interface ToolTimers {
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(timer: unknown): void
}

/** How limited work ended. */
export type Ending<T> =
  | { readonly kind: 'returned'; readonly value: T }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'timeout' }

export interface Limits {
  /** The run's signal. */
  readonly signal: AbortSignal
  /** The claim's, which says by a ClaimLostError or a ShutdownError what the run's can't say any more once it was stopped. */
  readonly claim?: AbortSignal | undefined
  readonly timeoutMs: number
  readonly timers?: ToolTimers | undefined
  /** For errors: whose work it is. */
  readonly chatId: string
}

/**
 * Runs `work` until it ends, its time is over, or this process may no longer act for the chat. Work that ignores its
 * signal is left behind, and what it does later is dropped. A run that the user stopped still waits for the work, for as long
 * as this process may act for the chat.
 * @throws {ClaimLostError} at once when the run's signal says `claim-lost`, or the claim's was aborted by one.
 * @throws {ShutdownError} at once when it says `shutdown`, or the claim's was aborted by one.
 */
export async function withinLimits<T>(work: (signal: AbortSignal) => Promise<T>, limits: Limits): Promise<Ending<T>> {
  const { signal, claim, timeoutMs, chatId, timers = globalThis } = limits
  throwIfAbandoned(signal, chatId)
  const controller = new AbortController()
  let stop = (): void => {}
  const ending = new Promise<Ending<T>>((resolve, reject) => {
    const onAbort = (): void => {
      controller.abort(stopReason(signal))
      const error = abandonment(signal, chatId)
      if (error !== null) reject(error)
    }
    const onAbandoned = (): void => reject(claim?.reason)
    const timer = timers.setTimeout(() => {
      controller.abort('timeout' satisfies StopReason)
      resolve({ kind: 'timeout' })
    }, timeoutMs)
    stop = () => {
      timers.clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      claim?.removeEventListener('abort', onAbandoned)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    claim?.addEventListener('abort', onAbandoned, { once: true })
    if (claim?.aborted) onAbandoned()
    // Settled here for good or ill, so that a late rejection is never unhandled.
    work(controller.signal).then(
      (value) => resolve({ kind: 'returned', value }),
      (error: unknown) => resolve({ kind: 'threw', error }),
    )
  })
  return ending.finally(stop)
}

/**
 * @throws {ClaimLostError} {ShutdownError} if the signal says that this process may no longer act for the chat.
 */
export function throwIfAbandoned(signal: AbortSignal, chatId: string): void {
  const error = abandonment(signal, chatId)
  if (error !== null) throw error
}

/** Why a signal was aborted. A reason that is none of ours is read as `stopped`; null = it was not aborted. */
function stopReason(signal: AbortSignal): StopReason | null {
  if (!signal.aborted) return null
  const reason: unknown = signal.reason
  return reason === 'claim-lost' || reason === 'shutdown' || reason === 'timeout' ? reason : 'stopped'
}

function abandonment(signal: AbortSignal, chatId: string): ClaimLostError | ShutdownError | null {
  const reason = stopReason(signal)
  if (reason === 'claim-lost') {
    return new ClaimLostError('This process no longer holds the chat: its tool call is left to the new holder.', {
      chatId,
    })
  }
  if (reason === 'shutdown') {
    return new ShutdownError('This process shuts down: the tool call is left to the next run of the chat.', { chatId })
  }
  return null
}
