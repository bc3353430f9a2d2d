/** How many statements a {@link Widening} lets go at once. */
export interface WideningLimits {
  /** While they come back in time. */
  readonly usual: number
  /** At most. */
  readonly most: number
  /** What has not come back after so long, in ms, counts as slow and makes room for another. */
  readonly slowMs: number
}

/**
 * Lets few statements go at once while the database is quick, and more as soon as some are slow, so that one that is held up
 * holds up no other. First come, first served.
 */
export class Widening {
  readonly #limits: WideningLimits
  readonly #waiting: (() => void)[] = []
  #going = 0
  #slow = 0

  constructor(limits: WideningLimits) {
    this.#limits = limits
  }

  /** Runs it once there is room. */
  async run<T>(statement: () => Promise<T>): Promise<T> {
    if (!this.#hasRoom()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#going++
    let isSlow = false
    const timer = setTimeout(() => {
      isSlow = true
      this.#slow++
      this.#admit()
    }, this.#limits.slowMs)
    try {
      return await statement()
    } finally {
      clearTimeout(timer)
      this.#going--
      if (isSlow) this.#slow--
      this.#admit()
    }
  }

  #hasRoom(): boolean {
    const { usual, most } = this.#limits
    return this.#going < Math.min(most, usual + this.#slow)
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      this.#going++
      this.#waiting.shift()?.()
    }
  }
}
