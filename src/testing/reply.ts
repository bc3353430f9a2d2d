import type { Chunking } from './pieces.ts'
import type { LoggedRequest } from './request-log.ts'
import type { WireError, WireUsage } from './wire.ts'

/** A tool call that a reply makes. */
export interface ReplyToolCall {
  /** The tool to call. */
  readonly name: string
  /** An object is sent as its JSON; a string is sent as it is, malformed or not. */
  readonly arguments: object | string
  /** Left out: a fresh unique id for each request. Null: the call is sent without an id. */
  readonly id?: string | null
}

/** A well-formed answer, streamed or whole as the request asks. */
export interface AnswerReply {
  /** Tells replies apart. */
  readonly kind: 'answer'
  /** The answer's text; `''` = none. */
  readonly text: string
  /** Reasoning sent before the text; `''` = none. */
  readonly thinking: string
  /** Tool calls sent after the text. */
  readonly calls: readonly ReplyToolCall[]
  /** Into how many chunks the text is cut. */
  readonly chunks: Chunking
  /** Into how many chunks the arguments of each call are cut. */
  readonly argumentChunks: number
  /** ms before the first byte. */
  readonly delayMs: number
  /** ms before each further chunk. */
  readonly chunkDelayMs: number
  /** Undefined: counted. Null: none is reported. */
  readonly usage: WireUsage | null | undefined
  /** Why the answer ends, in the protocol's words. */
  readonly finishReason: string
  /** The model that the answer names; undefined: the one that the request named. */
  readonly model: string | undefined
}

/** Verbatim bytes under a status and headers of the test's choice. */
export interface RawReply {
  /** Tells replies apart. */
  readonly kind: 'raw'
  /** The HTTP status. */
  readonly status: number
  /** Sent as they are. */
  readonly headers: Readonly<Record<string, string>>
  /** The body. */
  readonly bytes: Uint8Array
  /** Into how many pieces of odd sizes the body is cut. */
  readonly pieces: number
}

/** How an answer that was begun ends badly. */
export type BadEnd =
  /** An error object, inside the stream or as a body with status 200. */
  | {
      readonly type: 'error'
      /** What is sent. */
      readonly error: WireError
    }
  /** The socket is destroyed. */
  | {
      readonly type: 'cut'
      /** Sent before the cut; undefined = none. */
      readonly finishReason: string | undefined
      /** Whether `[DONE]` is sent before the cut. */
      readonly done: boolean
      /** Real time between the last byte and the cut, in ms. */
      readonly delayMs: number
    }
  /** Nothing more is sent until the client goes away. */
  | { readonly type: 'hang' }

/** A reply that goes well up to a point and ends badly there. `after` null: not even the headers are sent. */
export interface BrokenReply {
  /** Tells replies apart. */
  readonly kind: 'broken'
  /** What goes well before the end. */
  readonly after: AnswerReply | RawReply | null
  /** How it ends. */
  readonly end: BadEnd
}

/** A reply that is made when the request is there. */
export interface RulesReply {
  /** Tells replies apart. */
  readonly kind: 'rules'
  /** Makes the reply to the request. */
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
  /** Tells replies apart. */
  readonly kind: 'gate'
  /** What is held back. */
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
