import { ArgumentError } from '../errors.ts'
import type { Chunking } from './pieces.ts'
import type { AnswerReply, BrokenReply, RawReply, ReplyFunction, ReplyToolCall, RulesReply } from './reply.ts'
import type { WireError, WireUsage } from './wire.ts'

/** What every well-formed answer can be given. */
export interface AnswerOptions {
  /** Into how many chunks the text is cut when it is streamed; by default one a word. */
  readonly chunks?: Chunking
  /** Into how many chunks the arguments of each call are cut when they are streamed; 2 by default. */
  readonly argumentChunks?: number
  /** Real time before the first byte, in ms; 0 by default. */
  readonly delayMs?: number
  /** Real time before each further chunk, in ms; 0 by default. */
  readonly chunkDelayMs?: number
  /** The usage to report; by default it is counted (see `defaultUsage`). Null reports none, whatever was asked. */
  readonly usage?: WireUsage | null
  /** By default `stop`, or `tool_calls` if there are calls. */
  readonly finishReason?: string
  /** Reasoning that comes before the text, sent as `reasoning_content`. */
  readonly thinking?: string
  /** The model that the answer names; by default the one that the request named. */
  readonly model?: string
}

function answer(words: string, calls: readonly ReplyToolCall[], options: AnswerOptions): AnswerReply {
  return {
    kind: 'answer',
    text: words,
    thinking: options.thinking ?? '',
    calls,
    chunks: options.chunks ?? 'words',
    argumentChunks: options.argumentChunks ?? 2,
    delayMs: options.delayMs ?? 0,
    chunkDelayMs: options.chunkDelayMs ?? 0,
    usage: options.usage,
    finishReason: options.finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
    model: options.model,
  }
}

/** Answers with text. */
export const text = (words: string, options: AnswerOptions = {}): AnswerReply => answer(words, [], options)

/** Answers with tool calls, and with text before them if `text` is given. */
export const toolCalls = (
  calls: readonly ReplyToolCall[],
  options: AnswerOptions & { readonly text?: string } = {},
): AnswerReply => answer(options.text ?? '', calls, options)

/**
 * Answers with an HTTP error. A text becomes the message of an error object as the API makes them; an object is sent
 * as it is. (A body that isn't JSON is sent with {@link rawBody}.)
 * @throws {ArgumentError} when the status is not from 400 to 599.
 */
export function httpError(
  status: number,
  body: string | object,
  headers: Readonly<Record<string, string>> = {},
): RawReply {
  if (!Number.isInteger(status) || status < 400 || status > 599) {
    throw new ArgumentError(`httpError takes a status from 400 to 599, not ${status}`)
  }
  const json = typeof body === 'string' ? { error: errorObject(body, errorType(status)) } : body
  return rawBody(JSON.stringify(json), { 'content-type': 'application/json', ...headers }, { status })
}

/**
 * Begins well and then sends an error object: inside the stream, or as a 200 body where no stream was asked for.
 * `after` is what is sent before it, a text or a whole reply without its end.
 */
export const streamError = (error: string | WireError, options: After = {}): BrokenReply => ({
  kind: 'broken',
  after: before(options.after ?? ''),
  end: { type: 'error', error: typeof error === 'string' ? errorObject(error, 'server_error') : error },
})

/** What is sent before a reply goes wrong: a text, or another reply, whose end is left out. */
export interface After {
  /** What is sent first. Left out: nothing, not even the headers. */
  readonly after?: string | AnswerReply | RawReply
}

/** How {@link cut} cuts. */
export interface CutOptions extends After {
  /** Sends this finish reason before the cut. */
  readonly finishReason?: string
  /** Sends `[DONE]` before the cut. */
  readonly done?: boolean
  /** Real time between the last byte and the cut, in ms, for the client to read what came; 20 by default. */
  readonly delayMs?: number
}

/**
 * Destroys the socket after that much of an answer; without `after` before even the headers are sent. Where no stream
 * was asked for, the first half of the JSON is sent.
 */
export const cut = (options: CutOptions = {}): BrokenReply => ({
  kind: 'broken',
  after: before(options.after),
  end: {
    type: 'cut',
    finishReason: options.finishReason,
    done: options.done ?? false,
    delayMs: options.delayMs ?? 20,
  },
})

/**
 * Says nothing more until the client goes away (or the server is closed). Without `after` not even the headers are
 * sent; with `after: ''` the headers are, and a first chunk without text.
 */
export const hang = (options: After = {}): BrokenReply => ({
  kind: 'broken',
  after: before(options.after),
  end: { type: 'hang' },
})

/** How raw bytes are sent. */
export interface RawOptions {
  /** 200 by default. */
  readonly status?: number
  /** Into how many pieces of odd sizes the bytes are cut; 1 by default. */
  readonly pieces?: number
}

/** Sends these bytes as an event stream and ends it, whatever the request asked for. */
export const rawSse = (bytes: string | Uint8Array, options: RawOptions = {}): RawReply =>
  rawBody(bytes, { 'content-type': 'text/event-stream; charset=utf-8' }, options)

/** Sends these bytes under these headers (JSON by default), whatever the request asked for. */
export const rawBody = (
  bytes: string | Uint8Array,
  headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
  options: RawOptions = {},
): RawReply => ({
  kind: 'raw',
  status: options.status ?? 200,
  headers,
  bytes: typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes,
  pieces: options.pieces ?? 1,
})

/** A reply that is made when its request is there, for one place in a script or inside a gate. */
export const rules = (make: ReplyFunction): RulesReply => ({ kind: 'rules', make })

function before(after: string | AnswerReply | RawReply | undefined): AnswerReply | RawReply | null {
  if (after === undefined) return null
  return typeof after === 'string' ? text(after) : after
}

const errorObject = (message: string, type: string): WireError => ({ message, type, param: null, code: null })

function errorType(status: number): string {
  const known: Readonly<Record<number, string>> = {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    429: 'rate_limit_error',
  }
  return known[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error')
}
