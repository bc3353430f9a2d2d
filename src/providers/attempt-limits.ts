import { RequestTimeoutError, StreamIdleError } from '../errors.ts'

/** Node's timers fire at once when they are set for longer than this. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * What can end an attempt from outside: the caller's signal, the limit on the whole attempt and the limit on silence.
 * `signal` is aborted with the error to throw. {@link stop} must be called in the end.
 */
export class AttemptLimits {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #timer: NodeJS.Timeout
  readonly #onAbort = () => this.#controller.abort(this.#outer.reason)

  constructor(outer: AbortSignal, timeoutMs: number) {
    this.#outer = outer
    this.#timer = after(timeoutMs, () => this.#controller.abort(timeoutError(timeoutMs)))
    if (outer.aborted) this.#onAbort()
    else outer.addEventListener('abort', this.#onAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Whether the caller ended the attempt, as opposed to a limit. */
  get stoppedByCaller(): boolean {
    return this.#outer.aborted
  }

  /**
   * Waits for work, but no longer than until the attempt is ended.
   * @param idleMs The attempt is also ended, with a {@link StreamIdleError}, when the work takes longer than this.
   */
  async wait<T>(work: Promise<T>, idleMs?: number): Promise<T> {
    const { signal } = this
    const timer = idleMs === undefined ? undefined : after(idleMs, () => this.#controller.abort(idleError(idleMs)))
    let onAbort = () => {}
    try {
      return await new Promise<T>((resolve, reject) => {
        onAbort = () => reject(signal.reason)
        if (signal.aborted) onAbort()
        else signal.addEventListener('abort', onAbort, { once: true })
        work.then(resolve, reject)
      })
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Releases the timer and the caller's signal. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#outer.removeEventListener('abort', this.#onAbort)
  }
}

function after(ms: number, act: () => void): NodeJS.Timeout {
  return setTimeout(act, Math.min(ms, MAX_TIMER_MS))
}

function timeoutError(ms: number): RequestTimeoutError {
  return new RequestTimeoutError(`The attempt took longer than its limit of ${ms} ms.`, { retryable: true })
}

function idleError(ms: number): StreamIdleError {
  return new StreamIdleError(`The stream was silent for longer than its limit of ${ms} ms.`, { retryable: true })
}
