import type { Lines } from './lines.ts'
import type { Output } from './screen.ts'

/**
 * An output that a person types beside. While a line is begun, what is written waits until the line is sent or taken back;
 * otherwise the prompt makes room for it, and comes again where it ends a line.
 */
export class BesidePrompt {
  readonly #output: Output
  readonly #lines: Lines
  #held = ''
  #prompt = ''
  #atLineStart = true

  constructor(output: Output, lines: Lines) {
    this.#output = output
    this.#lines = lines
  }

  get isTTY(): boolean {
    return this.#output.isTTY === true
  }

  hasColors(): boolean {
    return this.#output.hasColors?.() === true
  }

  write(text: string): void {
    if (this.#lines.typing) this.#held += text
    else this.#put(text)
  }

  get prompt(): string {
    return this.#prompt
  }

  /** Shows this prompt from now on; nothing is shown for an empty one. */
  setPrompt(prompt: string): void {
    if (prompt === this.#prompt) return
    if (this.#isShown && !this.#lines.typing) this.#lines.hide()
    this.#prompt = prompt
    if (!this.#lines.typing) this.#show()
  }

  /** A line was sent, and the terminal has begun a new one. Writes what waited; false = nothing did. */
  sent(): boolean {
    this.#atLineStart = true
    const held = this.#held
    this.#held = ''
    if (held !== '') this.#output.write(held)
    if (held !== '') this.#atLineStart = held.endsWith('\n')
    return held !== ''
  }

  #put(text: string): void {
    const whole = this.#held + text
    this.#held = ''
    if (whole === '') return
    if (this.#isShown) this.#lines.hide()
    this.#output.write(whole)
    this.#atLineStart = whole.endsWith('\n')
    this.#show()
  }

  get #isShown(): boolean {
    return this.#lines.terminal && this.#prompt !== '' && this.#atLineStart
  }

  #show(): void {
    if (this.#isShown) this.#lines.prompt(this.#prompt)
  }
}
