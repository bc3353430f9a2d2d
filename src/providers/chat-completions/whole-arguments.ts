import { parseArguments } from '../arguments.ts'

/**
 * Whether the arguments of a call that grow piece by piece are whole: one JSON object so far. It looks at each letter once,
 * since servers that send many pieces would have the text read as often.
 */
export class WholeArguments {
  #depth = 0
  #inText = false
  #escaped = false
  #state: 'open' | 'closed' | 'other' = 'open'

  /** Takes the next piece. */
  add(piece: string): void {
    for (let at = 0; at < piece.length && this.#state !== 'other'; at++) this.#read(piece[at] ?? '')
  }

  /** @param text all pieces joined. */
  isWhole(text: string): boolean {
    return this.#state === 'closed' && parseArguments(text) !== null
  }

  #read(letter: string): void {
    if (this.#inText) {
      if (this.#escaped) this.#escaped = false
      else if (letter === '\\') this.#escaped = true
      else if (letter === '"') this.#inText = false
    } else if (letter.trim() === '') return
    else if (this.#state === 'closed' || (this.#depth === 0 && letter !== '{')) this.#state = 'other'
    else if (letter === '"') this.#inText = true
    else if (letter === '{' || letter === '[') this.#depth++
    else if (letter === '}' || letter === ']') {
      this.#depth--
      if (this.#depth === 0) this.#state = 'closed'
    }
  }
}
