import type { EventEmitter } from 'node:events'
import { exitCodes } from '../exit-codes.ts'

/** A double press comes from people; two signals at once come from a parent that passes on what we got already. */
const samePressMs = 300

/** Ctrl-C and the signals that end a process, for a conversation that has things to put away first. */
export class Interrupts {
  readonly #leaving = new AbortController()
  readonly #force: (code: number) => void
  readonly #source: EventEmitter
  readonly #listeners = {
    SIGINT: () => this.press(),
    SIGTERM: () => this.leave(exitCodes.terminated),
    SIGHUP: () => this.leave(exitCodes.hungUp),
  }
  #onPress: (() => void) | null = null
  #lastPress = Number.NEGATIVE_INFINITY
  /** What {@link leave} was called with. */
  code = 0

  /**
   * @param source where signals are heard: the process.
   * @param force ends the process at once: somebody insists.
   */
  constructor(source: EventEmitter, force: (code: number) => void) {
    this.#source = source
    this.#force = force
    for (const [signal, listener] of Object.entries(this.#listeners)) source.on(signal, listener)
  }

  /** Aborted when the conversation has to end. */
  get leaving(): AbortSignal {
    return this.#leaving.signal
  }

  /** Says what Ctrl-C does from now on; null = it ends the conversation. */
  onPress(react: (() => void) | null): void {
    this.#onPress = react
  }

  /** Ctrl-C. A terminal in raw mode reports it as a key, not as a signal. */
  press(): void {
    const now = performance.now()
    if (now - this.#lastPress < samePressMs) return
    this.#lastPress = now
    if (this.leaving.aborted) this.#force(exitCodes.interrupted)
    else if (this.#onPress === null) this.leave(exitCodes.interrupted)
    else this.#onPress()
  }

  /** Asks for the end of the conversation, with this exit code. The first call counts. */
  leave(code: number): void {
    if (this.leaving.aborted) return
    this.code = code
    this.#leaving.abort()
  }

  /** Hears nothing any more. */
  stop(): void {
    for (const [signal, listener] of Object.entries(this.#listeners)) this.#source.off(signal, listener)
  }
}
