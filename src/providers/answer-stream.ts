import { MalformedAnswerError } from '../errors.ts'
import { AnswerBodyDecoder, type ServerEvent } from './answer-body.ts'
import type { AnswerBudget } from './answer-budget.ts'
import type { AttemptLimits } from './attempt-limits.ts'
import { type ErrorContext, inStreamError } from './errors.ts'
import type { Answer, AnswerProgress, AttemptOptions } from './provider.ts'
import { transportError } from './transport-errors.ts'

/** What a protocol makes of the pieces of an answer; it does no I/O. */
export interface AnswerAssembler {
  /** Whether the answer is known to be whole. */
  readonly isComplete: boolean
  /** How many bytes of the answer are kept so far. */
  readonly keptBytes: number
  /** Takes a chunk of a stream and returns what it adds. */
  push(chunk: unknown): AnswerProgress[]
  /** Takes a JSON document and returns what can be seen of it. */
  readWhole(document: unknown): AnswerProgress[]
  /** Notes that the terminator of the stream came. */
  terminate(): void
  /** The answer, or an error if it isn't whole. */
  finish(): Answer
}

export interface ReadOptions {
  /** Whether a stream was asked for; the server may answer otherwise. */
  readonly streaming: boolean
  readonly attempt: AttemptOptions
  readonly limits: AttemptLimits
  readonly budget: AnswerBudget
  readonly context: ErrorContext
}

/** How long the server gets to close a stream after its terminator, so that the connection can be used again. */
const CLOSE_MS = 100

/**
 * Reads the body of a successful response into an answer, and reports what can be seen of it on the way. A body that is
 * one JSON document is read as such whatever was asked for. Once the finish reason is there, a connection that breaks,
 * falls silent or goes on without end costs nothing but what would have come after it.
 */
export async function readAnswerStream(
  body: ReadableStream<Uint8Array> | null,
  answer: AnswerAssembler,
  options: ReadOptions,
): Promise<Answer> {
  return new BodyReading(body, answer, options).run()
}

class BodyReading {
  readonly #source: ReadableStreamDefaultReader<Uint8Array> | undefined
  readonly #options: ReadOptions
  readonly #decoder = new AnswerBodyDecoder()
  readonly #answer: AnswerAssembler
  #terminated = false

  constructor(body: ReadableStream<Uint8Array> | null, answer: AnswerAssembler, options: ReadOptions) {
    this.#source = body?.getReader()
    this.#options = options
    this.#answer = answer
  }

  async run(): Promise<Answer> {
    try {
      await this.#readEvents()
      const document = this.#decoder.document()
      if (document !== null && !this.#answer.isComplete) await this.#readDocument(document)
      return this.#answer.finish()
    } finally {
      this.#source?.cancel().catch(() => {})
    }
  }

  async #readEvents(): Promise<void> {
    for (;;) {
      const bytes = await this.#nextBytes()
      const events = bytes === null ? this.#decoder.end() : this.#decoder.push(bytes)
      for (const event of events) await this.#take(event, bytes === null)
      if (events.length > 0) this.#options.budget.finished()
      if (bytes === null) return
      if (this.#terminated) return this.#awaitClose()
    }
  }

  /** Null at the end of the body, and where it breaks, falls silent or goes on and on after the finish reason. */
  async #nextBytes(): Promise<Uint8Array | null> {
    const { limits, attempt, streaming, budget } = this.#options
    if (this.#source === undefined) return null
    try {
      const { done, value } = await limits.wait(this.#source.read(), streaming ? attempt.idleMs : undefined)
      if (done) return null
      if (budget.read(value.length, this.#answer.keptBytes)) return value
    } catch (error) {
      if (limits.stoppedByCaller) throw error
      if (this.#answer.isComplete) return null
      throw limits.signal.aborted ? error : transportError(error, streaming ? 'stream' : 'json')
    }
    if (this.#answer.isComplete) return null
    throw budget.tooLong()
  }

  async #take({ name, data }: ServerEvent, isLast: boolean): Promise<void> {
    if (this.#terminated) return
    if (data.trimStart().startsWith('[DONE]')) {
      this.#terminated = true
      this.#answer.terminate()
      return
    }
    const chunk = parse(data)
    if (name === 'error') throw inStreamError(chunk ?? data, this.#options.context)
    if (chunk !== undefined) return this.#report(this.#answer.push(chunk))
    // The last event of a stream that was cut is half an event: whether an answer came before it is seen at the end.
    if (isLast) return
    throw new MalformedAnswerError('The provider sent an event that is not JSON.', { retryable: true })
  }

  async #readDocument(text: string): Promise<void> {
    if (text === '' && this.#options.streaming) return
    const body = parse(text)
    if (body === undefined) throw notJson(text)
    const progress = this.#answer.readWhole(body)
    await this.#report(this.#options.streaming ? progress : [])
  }

  async #report(progress: readonly AnswerProgress[]): Promise<void> {
    const { attempt, limits, budget } = this.#options
    budget.requireRoom(this.#answer.keptBytes)
    for (const step of progress) {
      limits.signal.throwIfAborted()
      const handled = attempt.onProgress(step)
      if (handled !== undefined) await limits.wait(handled)
    }
  }

  async #awaitClose(): Promise<void> {
    const source = this.#source
    if (source === undefined) return
    const closed = async () => {
      while (!(await source.read()).done);
    }
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS)
    })
    await Promise.race([closed().catch(() => {}), enough])
    clearTimeout(timer)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function notJson(text: string): MalformedAnswerError {
  if (text === '') return new MalformedAnswerError('The provider sent an empty answer.', { retryable: true })
  const isPage = text.trimStart().startsWith('<')
  return new MalformedAnswerError('The provider answered with something that is not JSON.', {
    retryable: !isPage,
    ...(isPage ? { hint: 'A web page came back: check the base URL.' } : {}),
  })
}
