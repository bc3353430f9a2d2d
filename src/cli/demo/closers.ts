/** What has to be ended when the demo ends, newest first. */
export class Closers {
  readonly #closers: (() => Promise<unknown>)[] = []
  #closed = false

  /** Remembers how to end something that was started; what comes after {@link close} is ended at once. */
  async add(close: () => Promise<unknown>): Promise<void> {
    if (this.#closed) await close().catch(() => {})
    else this.#closers.push(close)
  }

  /** Ends everything; what can't be ended keeps nothing else from it. */
  async close(): Promise<void> {
    this.#closed = true
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop())
      await close().catch(() => {})
  }
}
