interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** Virtual time: what happens does so in the order of its time, and nothing else makes time go on. */
export class Scheduler {
  /** Ms since the beginning. */
  now = 0
  #order = 0
  /** A binary heap, the earliest event first. */
  readonly #events: Event[] = []

  /** Runs something in so many ms; of two at one moment the one that was asked for first. */
  after(ms: number, run: () => void): void {
    const event = { at: this.now + Math.max(0, ms), order: this.#order++, run }
    let at = this.#events.push(event) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!this.#isEarlier(at, above)) return
      this.#swap(at, above)
      at = above
    }
  }

  /** Lets time go on until `done` says so or `limit` is reached. False = it was not done by then, or nothing is left to happen. */
  async run(done: () => boolean, limit: number): Promise<boolean> {
    while (!done()) {
      if ((this.#events[0]?.at ?? Number.POSITIVE_INFINITY) > limit) return false
      const event = this.#next()
      if (event === null) return false
      this.now = event.at
      event.run()
      // Whatever waits for this goes on to its next wait: it runs in microtasks alone.
      await settled()
    }
    return true
  }

  #next(): Event | null {
    const [first] = this.#events
    const last = this.#events.pop()
    if (first === undefined || last === undefined) return null
    if (first === last) return first
    this.#events[0] = last
    this.#sink()
    return first
  }

  #sink(): void {
    for (let at = 0; ; ) {
      let least = at
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < this.#events.length && this.#isEarlier(below, least)) least = below
      }
      if (least === at) return
      this.#swap(at, least)
      at = least
    }
  }

  #isEarlier(one: number, other: number): boolean {
    const [a, b] = [this.#events[one], this.#events[other]]
    if (a === undefined || b === undefined) return false
    return a.at === b.at ? a.order < b.order : a.at < b.at
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#events[one], this.#events[other]]
    if (a === undefined || b === undefined) return
    this.#events[one] = b
    this.#events[other] = a
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
