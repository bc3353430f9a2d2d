import { createInterface, type Interface } from 'node:readline'

/** What {@link Lines.ask} says instead of a line. */
export type NoLine = 'end' | 'interrupted'

/** Lines that a person types, or that a program pipes in; those that come early wait until they are asked for. */
export class Lines {
  readonly #input: Interface
  readonly #waiting: string[] = []
  /** Whether a person types into a terminal, which shows what is typed. */
  readonly terminal: boolean
  #asker: ((line: { readonly text: string } | NoLine) => void) | null = null
  #ended = false

  /** @param onInterrupt Ctrl-C, where the terminal reports it as a key. */
  constructor(onInterrupt: () => void) {
    this.terminal = process.stdin.isTTY === true && process.stdout.isTTY === true
    this.#input = createInterface({
      input: process.stdin,
      ...(this.terminal ? { output: process.stdout } : {}),
      terminal: this.terminal,
    })
    this.#input.on('line', (text) => this.#give(text))
    this.#input.on('SIGINT', onInterrupt)
    this.#input.on('close', () => {
      this.#ended = true
      this.#answer('end')
    })
  }

  /** Resolves with the next line. The prompt is shown in a terminal only. */
  ask(prompt: string): Promise<{ readonly text: string } | NoLine> {
    const early = this.#waiting.shift()
    if (early !== undefined) return Promise.resolve({ text: early })
    if (this.#ended) return Promise.resolve('end')
    if (this.terminal) {
      this.#input.setPrompt(prompt)
      this.#input.prompt()
    }
    return new Promise((resolve) => {
      this.#asker = resolve
    })
  }

  /** Ends a wait for a line; what was typed so far is dropped. */
  interrupt(): void {
    if (this.#asker === null) return
    if (this.terminal) {
      this.#input.write(null, { ctrl: true, name: 'u' })
      process.stdout.write('\n')
    }
    this.#answer('interrupted')
  }

  close(): void {
    this.#input.close()
    process.stdin.destroy()
  }

  #give(text: string): void {
    if (this.#asker === null) this.#waiting.push(text)
    else this.#answer({ text })
  }

  #answer(answer: { readonly text: string } | NoLine): void {
    const asker = this.#asker
    this.#asker = null
    asker?.(answer)
  }
}
