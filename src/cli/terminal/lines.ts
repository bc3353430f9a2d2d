import { createInterface, type Interface } from 'node:readline'
import type { Input, Output } from '../io.ts'

/** What {@link Lines.ask} says instead of a line. */
export type NoLine = 'end' | 'interrupted'

/** Where lines come from, and where a terminal shows what is typed. */
export interface LineStreams {
  readonly input: Input
  readonly output: Output
  /** Ctrl-C, where the terminal reports it as a key. */
  readonly onInterrupt: () => void
}

/** Lines that a person types, or that a program pipes in; those that come early wait until they are asked for. */
export class Lines {
  readonly #input: Interface
  readonly #streams: LineStreams
  readonly #waiting: string[] = []
  /** Whether a person types into a terminal, which shows what is typed. */
  readonly terminal: boolean
  #asker: ((line: { readonly text: string } | NoLine) => void) | null = null
  #ended = false

  constructor(streams: LineStreams) {
    const { input, output, onInterrupt } = streams
    this.#streams = streams
    this.terminal = input.isTTY === true && output.isTTY === true
    this.#input = createInterface({ input, ...(this.terminal ? { output } : {}), terminal: this.terminal })
    this.#input.on('line', (text) => this.#give(text))
    this.#input.on('SIGINT', onInterrupt)
    this.#input.on('close', () => {
      this.#ended = true
      this.#answer('end')
    })
  }

  /** Whether a line is begun: what is written now would stand in the middle of it. */
  get typing(): boolean {
    return this.terminal && this.#input.line !== ''
  }

  /** Resolves with the next line. The prompt is shown in a terminal only. */
  ask(prompt: string): Promise<{ readonly text: string } | NoLine> {
    const early = this.#waiting.shift()
    if (early !== undefined) return Promise.resolve({ text: early })
    if (this.#ended) return Promise.resolve('end')
    this.prompt(prompt)
    return new Promise((resolve) => {
      this.#asker = resolve
    })
  }

  /** Shows this prompt from now on, with what is typed behind it. */
  prompt(prompt: string): void {
    if (!this.terminal || this.#ended) return
    this.#input.setPrompt(prompt)
    // Showing it clears the row, on which an answer may be under way.
    if (prompt !== '') this.#input.prompt(true)
  }

  /** Takes the prompt away, so that its row can be written on. */
  hide(): void {
    if (this.terminal) this.#streams.output.write('\r\u001b[K')
  }

  /** Ends a wait for a line; what was typed so far is dropped. */
  interrupt(): void {
    if (this.#asker === null) return
    if (this.terminal) {
      this.#input.write(null, { ctrl: true, name: 'u' })
      this.#streams.output.write('\n')
    }
    this.#answer('interrupted')
  }

  close(): void {
    this.#input.close()
    this.#streams.input.destroy()
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
