/** A double press comes from people; two signals at once come from a parent that passes on what we got already. */
const samePressMs = 300

/** Ctrl-C and the signals that end a process, for a demo that has things to put away first. */
export class Interrupts {
  readonly #leaving = new AbortController()
  readonly #force: (code: number) => void
  #onPress: (() => void) | null = null
  #lastPress = Number.NEGATIVE_INFINITY
  /** What {@link leave} was called with. */
  code = 0

  /** @param force ends the process at once: somebody insists. */
  constructor(force: (code: number) => void) {
    this.#force = force
    process.on('SIGINT', () => this.press())
    process.on('SIGTERM', () => this.leave(143))
    process.on('SIGHUP', () => this.leave(129))
  }

  /** Aborted when the demo has to end. */
  get leaving(): AbortSignal {
    return this.#leaving.signal
  }

  /** Says what Ctrl-C does from now on; null = it ends the demo. */
  onPress(react: (() => void) | null): void {
    this.#onPress = react
  }

  /** Ctrl-C. A terminal in raw mode reports it as a key, not as a signal. */
  press(): void {
    const now = performance.now()
    if (now - this.#lastPress < samePressMs) return
    this.#lastPress = now
    if (this.leaving.aborted) this.#force(130)
    else if (this.#onPress === null) this.leave(130)
    else this.#onPress()
  }

  /** Asks for the end of the demo, with this exit code. The first call counts. */
  leave(code: number): void {
    if (this.leaving.aborted) return
    this.code = code
    this.#leaving.abort()
  }
}
