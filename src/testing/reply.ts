import type { Chunking } from './pieces.ts'
import type { LoggedRequest } from './request-log.ts'
import type { WireError, WireUsage } from './wire.ts'

/** A tool call that a reply makes. */
export interface ReplyToolCall {
  readonly name: string
  /** An object is sent as its JSON; a string is sent as it is, malformed or not. */
  readonly arguments: object | string
  /** Left out: a fresh unique id for each request. Null: the call is sent without an id. */
  readonly id?: string | null
}

/** A well-formed answer, streamed or whole as the request asks. */
export interface AnswerReply {
  readonly kind: 'answer'
  readonly text: string
  readonly thinking: string
  readonly calls: readonly ReplyToolCall[]
  readonly chunks: Chunking
  readonly argumentChunks: number
  /** ms before the first byte. */
  readonly delayMs: number
  /** ms before each further chunk. */
  readonly chunkDelayMs: number
  /** Undefined: counted. Null: none is reported. */
  readonly usage: WireUsage | null | undefined
  readonly finishReason: string
  /** The model that the answer names; undefined: the one that the request named. */
  readonly model: string | undefined
}

/** Verbatim bytes under a status and headers of the test's choice. */
export interface RawReply {
  readonly kind: 'raw'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
  readonly pieces: number
}

/** How an answer that was begun ends badly. */
export type BadEnd =
  | { readonly type: 'error'; readonly error: WireError }
  | {
      readonly type: 'cut'
      readonly finishReason: string | undefined
      readonly done: boolean
      readonly delayMs: number
    }
  | { readonly type: 'hang' }

/** A reply that goes well up to a point and ends badly there. `after` null: not even the headers are sent. */
export interface BrokenReply {
  readonly kind: 'broken'
  readonly after: AnswerReply | RawReply | null
  readonly end: BadEnd
}

/** A reply that is made when the request is there. */
export interface RulesReply {
  readonly kind: 'rules'
  readonly make: ReplyFunction
}

/** One request's way through a gate. */
export interface Passage {
  /** Waits for leave to send one chunk. */
  pass(): Promise<void>
  /** The chunk is on its way. */
  passed(): void
  /** The request is over, however it ended. */
  leave(): void
}

/** A reply that waits for the test; it can stand wherever a reply can. */
export interface Gate {
  readonly kind: 'gate'
  readonly reply: Reply
  /** Resolves with the first request that gets here. Stays pending if none does. */
  readonly reached: Promise<LoggedRequest>
  /** Lets out everything that is still held back, and whatever comes later. */
  release(): void
  /**
   * Lets one more chunk out; the headers go with the first. The end of a stream (finish reason, usage and `[DONE]`, or
   * the cut, or the error) is one chunk, and so is an answer that isn't streamed.
   * @returns a promise that resolves when the chunk was handed to the socket, or when there is nothing left to send.
   */
  step(): Promise<void>
  /** Called by the server when a request gets here. */
  enter(request: LoggedRequest): Passage
}

/** Whatever one request can be answered with; made by the builders of `replies.ts`. */
export type Reply = AnswerReply | RawReply | BrokenReply | RulesReply | Gate

/** Decides the reply to a request. `index` counts the server's requests from 0. */
export type ReplyFunction = (request: LoggedRequest, index: number) => Reply | Promise<Reply>

/** How a server answers: by a function, by a script whose replies are used in order, or always by the same reply. */
export type Respond = ReplyFunction | readonly Reply[] | Reply
