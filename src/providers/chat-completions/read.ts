import type { Json, JsonObject } from '../../../models/rows.ts'
import { MalformedAnswerError, ServerError, StreamCutError } from '../../errors.ts'
import { type ErrorContext, errorInAnswer, inStreamError } from '../errors.ts'
import { isNestedTooDeep, MAX_NESTING } from '../nesting.ts'
import type { Answer, AnswerProgress, TokenUsage } from '../provider.ts'
import { jsonBytes, ReasoningCollector } from './reasoning.ts'
import { type AnswerBody, type AnswerChoice, type AnswerMessage, answerBody, isOverfull } from './schema.ts'
import { ToolCallAssembler } from './tool-calls.ts'
import { readUsage } from './usage.ts'

/**
 * Reads a JSON answer.
 * @param body The parsed body of a response with status 200.
 * @throws {ProviderError} The error that the body reports, or a {@link MalformedAnswerError} when it holds no answer.
 */
export function readAnswer(body: unknown, context: ErrorContext = {}): Answer {
  const reader = new AnswerReader(context)
  reader.readWhole(body)
  return reader.finish()
}

/**
 * Reads a streamed answer, chunk by chunk. It does no I/O: whoever holds the stream pushes parsed chunks, says when the
 * terminator came, and asks for the answer once the stream has ended.
 */
export class AnswerReader {
  readonly #context: ErrorContext
  readonly #calls = new ToolCallAssembler()
  readonly #reasoning = new ReasoningCollector()
  readonly #noted: Json[] = []
  #sources: Json[] = []
  #sourceBytes = 0
  #notedBytes = 0
  #text = ''
  #textBytes = 0
  #finishReason: string | null = null
  #usage: TokenUsage | null = null
  #model: string | null = null
  #responseId: string | null = null
  #terminated = false

  /** @param context What errors should say beside what the provider says. */
  constructor(context: ErrorContext = {}) {
    this.#context = context
  }

  /** Whether the answer is known to be whole: its finish reason or the stream's terminator came. */
  get isComplete(): boolean {
    return this.#terminated || this.#finishReason !== null
  }

  /** How many bytes of the answer are kept so far: text, reasoning, tool calls, sources. */
  get keptBytes(): number {
    return this.#textBytes + this.#reasoning.keptBytes + this.#calls.keptBytes + this.#notedBytes + this.#sourceBytes
  }

  /**
   * Takes the next chunk and returns what it adds, in order; an empty list when it adds nothing to see.
   * @throws {ProviderError} The error that the chunk reports.
   */
  push(chunk: unknown): AnswerProgress[] {
    const body = this.#open(chunk)
    const choice = firstChoice(body)
    const progress = choice?.delta ? this.#readDelta(choice.delta) : []
    return [...progress, ...this.#close(body, choice)]
  }

  /** Takes a whole JSON answer, and returns what can be seen of it. */
  readWhole(body: unknown): AnswerProgress[] {
    const answer = this.#open(body)
    const choice = firstChoice(answer)
    const message = choice?.message ?? choice?.delta
    if (!choice || !message) {
      throw new MalformedAnswerError('The provider answered with JSON that holds no message.', { retryable: true })
    }
    this.#terminated = true
    const progress = this.#readMessage(message)
    for (const call of message.tool_calls ?? []) if (call) this.#calls.addWhole(call)
    return [...progress, ...this.#close(answer, choice)]
  }

  /** Notes that the terminator of the stream came. */
  terminate(): void {
    this.#terminated = true
  }

  /**
   * The whole answer. Complete without a terminator if it has a finish reason, and the other way round.
   * @throws {StreamCutError} when neither came: what was read may be half an answer.
   */
  finish(): Answer {
    if (!this.isComplete) {
      throw new StreamCutError('The stream ended before the answer was complete; nothing of it is kept.', {
        retryable: true,
      })
    }
    if (this.#finishReason === 'error') {
      throw new ServerError('The provider gave up in the middle of its answer (finish reason "error").', {
        ...(this.#context.requestId === undefined ? {} : { requestId: this.#context.requestId }),
        retryable: true,
      })
    }
    const citations = [...this.#noted, ...this.#sources]
    return {
      text: this.#text,
      thinking: this.#reasoning.text,
      thinkingSignature: null,
      rawReasoning: this.#reasoning.raw(),
      citations: citations.length === 0 ? null : citations,
      toolCalls: this.#calls.finish(),
      finishReason: this.#finishReason,
      usage: this.#usage,
      model: this.#model,
      responseId: this.#responseId,
    }
  }

  #open(value: unknown): AnswerBody {
    if (isNestedTooDeep(value) || isOverfull(value)) {
      throw new MalformedAnswerError(
        `The provider sent JSON that is nested more than ${MAX_NESTING} levels, or lists more choices or tool calls than any answer has.`,
        { retryable: true },
      )
    }
    const error = errorInAnswer(value)
    if (error !== null) throw inStreamError(error, this.#context)
    const body = answerBody.safeParse(value)
    if (!body.success) {
      throw new MalformedAnswerError('The provider sent JSON that is not an object.', { retryable: true })
    }
    this.#model ??= body.data.model || null
    this.#responseId ??= body.data.id || null
    return body.data
  }

  #close(body: AnswerBody, choice: AnswerChoice | null): AnswerProgress[] {
    this.#finishReason ??= choice?.finish_reason || null
    this.#keepSources(body)
    const usage = readUsage(body.usage ?? choice?.usage)
    if (usage === null) return []
    // Reports are running totals: the last one replaces the others.
    this.#usage = usage
    return [{ type: 'usage', usage }]
  }

  #readDelta(delta: AnswerMessage): AnswerProgress[] {
    for (const piece of delta.tool_calls ?? []) if (piece) this.#calls.addPiece(piece)
    return this.#readMessage(delta)
  }

  #readMessage(message: AnswerMessage): AnswerProgress[] {
    const progress: { type: 'text' | 'thinking'; text: string }[] = []
    const add = (type: 'text' | 'thinking', text: string) => {
      if (text === '') return
      const last = progress.at(-1)
      if (last?.type === type) last.text += text
      else progress.push({ type, text })
      if (type === 'thinking') return
      this.#text += text
      this.#textBytes += Buffer.byteLength(text)
    }
    add('thinking', this.#reasoning.add(message))
    if (typeof message.content === 'string') add('text', message.content)
    else for (const part of message.content ?? []) this.#readPart(part, add)
    add('text', message.refusal ?? '')
    for (const annotation of message.annotations ?? []) this.#note(annotation as Json)
    return progress
  }

  #readPart(part: unknown, add: (type: 'text' | 'thinking', text: string) => void): void {
    if (typeof part === 'string') add('text', part)
    if (!isObject(part)) return
    if (part.type === 'thinking') add('thinking', this.#reasoning.addPart(part))
    else if (part.type === 'reference') this.#note(part)
    else if (typeof part.text === 'string') add('text', part.text)
    else if (typeof part.refusal === 'string') add('text', part.refusal)
  }

  #note(source: Json): void {
    this.#noted.push(source)
    this.#notedBytes += jsonBytes(source)
  }

  /** Sources stand beside the choices, and streams repeat the list; `search_results` says more than `citations`. */
  #keepSources(body: AnswerBody): void {
    const sources = [body.search_results, body.citations].find((list) => list && list.length > 0)
    if (!sources) return
    this.#sources = sources as Json[]
    this.#sourceBytes = jsonBytes(this.#sources)
  }
}

function firstChoice(body: AnswerBody): AnswerChoice | null {
  return body.choices?.find((choice) => choice !== null && (choice.index ?? 0) === 0) ?? null
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
