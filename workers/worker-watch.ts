/** What can be looked at. */
interface Watched {
  /** `elapsedMs` is how long the event loop ran since the last look, in ms. */
  look(elapsedMs: number): void
}

const lookEveryMs = 500

/** Has workers looked at twice a second, without a command to Redis. */
export class WorkerWatch {
  readonly #timer: NodeJS.Timeout

  constructor(workers: readonly Watched[], everyMs = lookEveryMs) {
    let last = performance.now()
    this.#timer = setInterval(() => {
      const now = performance.now()
      const elapsedMs = elapsedOf(now - last, everyMs)
      last = now
      for (const worker of workers) worker.look(elapsedMs)
    }, everyMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

/** While a tool blocks the event loop, or the machine sleeps, nothing can be heard: of a longer time only the usual one counts. */
export function elapsedOf(sinceLastMs: number, everyMs: number): number {
  return Math.min(sinceLastMs, 2 * everyMs)
}
