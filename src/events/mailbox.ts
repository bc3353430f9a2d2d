import type { ChatLook } from '../../models/transcript.ts'
import type { StreamEntry } from './entry.ts'

/** What a reader hears next. */
export type Heard =
  | { readonly kind: 'entry'; readonly entry: StreamEntry }
  /** Nothing came for a while, and this is what the chat's row says. Null = there is no such chat any more. */
  | { readonly kind: 'silence'; readonly look: ChatLook | null }
  /** What came was dropped and nothing more comes: the reader has to read the stream itself, from where it was. */
  | { readonly kind: 'behind' }
  | { readonly kind: 'ended' }

/** Most entries that wait for one reader. They are shared with its like, so that this bounds the memory of a slow one. */
export const MOST_WAITING = 500

/** What waits for one reader: bounded, and never in the way of whoever fills it. */
export class Mailbox {
  #entries: StreamEntry[] = []
  #silence: Heard | null = null
  #last: Heard | null = null
  #waiting: ((heard: Heard) => void) | null = null

  /** How many entries wait. */
  get size(): number {
    return this.#entries.length
  }

  /** False = the reader is too slow: it has to read the stream itself. */
  push(entry: StreamEntry): boolean {
    if (this.#last !== null) return false
    // Whatever was said about silence is no longer true.
    this.#silence = null
    if (this.#entries.length >= MOST_WAITING) {
      this.leaveBehind()
      return false
    }
    this.#entries.push(entry)
    this.#deliver()
    return true
  }

  /** Says that nothing came for a while. */
  silence(look: ChatLook | null): void {
    if (this.#last !== null || this.#entries.length > 0) return
    this.#silence = { kind: 'silence', look }
    this.#deliver()
  }

  /** Drops what waits: the reader goes on by itself. */
  leaveBehind(): void {
    this.#close({ kind: 'behind' })
  }

  end(): void {
    this.#close({ kind: 'ended' })
  }

  /** Resolves with what comes next. One call at a time. */
  take(): Promise<Heard> {
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.#deliver()
    })
  }

  #close(last: Heard): void {
    if (this.#last?.kind !== 'ended') this.#last = last
    this.#entries = []
    this.#silence = null
    this.#deliver()
  }

  #deliver(): void {
    const waiting = this.#waiting
    const heard = waiting === null ? null : this.#next()
    if (waiting === null || heard === null) return
    this.#waiting = null
    waiting(heard)
  }

  #next(): Heard | null {
    const entry = this.#entries.shift()
    if (entry !== undefined) return { kind: 'entry', entry }
    const silence = this.#silence
    this.#silence = null
    return silence ?? this.#last
  }
}
