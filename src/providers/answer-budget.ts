import { AnswerTooLargeError } from '../errors.ts'

/** What is sent around an answer is measured by this, however small a limit is set. */
const LEAST_UNIT = 1024 * 1024
/** An event or a document is held whole. Text in JSON takes two or three times its bytes where it is written in escapes. */
const ONE_PIECE = 4
const IN_VAIN = 16
/** A stream of single letters takes some three hundred bytes for each. */
const AROUND_A_BYTE = 512

/**
 * What one answer may still cost. A limit on what is kept of it alone would let a server send comments or unknown fields for
 * ever, and a limit on what is sent alone would cut honest streams of small deltas, so both are counted against each other.
 */
export class AnswerBudget {
  readonly #model: string
  readonly #maxBytes: number
  readonly #unit: number
  #read = 0
  #unfinished = 0

  /**
   * @param model Whose answer it is, for errors.
   * @param maxBytes Limit on what is kept, in bytes.
   */
  constructor(model: string, maxBytes: number) {
    this.#model = model
    this.#maxBytes = maxBytes
    this.#unit = Math.max(maxBytes, LEAST_UNIT)
  }

  /**
   * Counts bytes of the body.
   * @param kept how many bytes of the answer are kept so far.
   * @returns false when far more was sent than that can account for.
   */
  read(bytes: number, kept: number): boolean {
    this.#read += bytes
    this.#unfinished += bytes
    if (this.#unfinished > ONE_PIECE * this.#unit) return false
    return this.#read <= IN_VAIN * this.#unit + AROUND_A_BYTE * kept
  }

  /** Notes that everything that was read has become events. */
  finished(): void {
    this.#unfinished = 0
  }

  /** @throws {AnswerTooLargeError} when more is kept than may be. */
  requireRoom(kept: number): void {
    if (kept <= this.#maxBytes) return
    throw this.#tooLarge(
      `Model ${this.#model} sent an answer of more than ${this.#maxBytes} bytes, which is the limit.`,
    )
  }

  /** For a body that {@link read} found too long. */
  tooLong(): AnswerTooLargeError {
    return this.#tooLarge(
      `Model ${this.#model} sent ${this.#read} bytes that came to no more than a small part of an answer (limit ${this.#maxBytes} bytes).`,
    )
  }

  #tooLarge(what: string): AnswerTooLargeError {
    return new AnswerTooLargeError(
      `${what} It was cut off, and nothing of it is kept. Ask for less, set maxOutputTokens, or raise the agent's maxAnswerBytes.`,
    )
  }
}
