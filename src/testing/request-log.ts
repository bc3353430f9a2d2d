import type { IncomingHttpHeaders } from 'node:http'
import { ConnectionError } from '../errors.ts'
import type { WireMessage, WireRequest, WireTool } from './wire.ts'

/**
 * How a request ended: its whole reply was sent; the server cut it off; the client went away before the end; the reply
 * was an error (an HTTP status from 400, or an error inside the stream).
 */
export type Ending = 'answered' | 'cut' | 'aborted' | 'failed'

/** One request to the model, as the server saw it. `ended` and `endedAt` change when it ends. */
export interface LoggedRequest {
  /** Also sent back as the header `x-request-id`. */
  readonly id: string
  /** The model that it named. */
  readonly model: string
  /** The conversation that it sent. */
  readonly messages: readonly WireMessage[]
  /** Empty when the request offered none. */
  readonly tools: readonly WireTool[]
  /** The whole body. */
  readonly body: WireRequest
  /** As sent, with every key and token masked. */
  readonly headers: IncomingHttpHeaders
  /** The header `x-threadmill-chat`, else the body's `user`, else null. */
  readonly chat: string | null
  /** Times are ms since 1970 by this process's clock. */
  readonly startedAt: number
  /** Null while it is open. */
  readonly endedAt: number | null
  /** How it ended; null while it is open. */
  readonly ended: Ending | null
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const secretHeaders = ['authorization', 'proxy-authorization', 'api-key', 'x-api-key', 'x-goog-api-key', 'cookie']

/** The headers with `***` in place of everything secret; the scheme of an authorization stays. */
export function maskHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const masked = { ...headers }
  for (const name of secretHeaders) {
    const value = masked[name]
    if (typeof value === 'string') masked[name] = /^\w+ /.exec(value)?.[0].concat('***') ?? '***'
  }
  return masked
}

/** Every request of a server in order of arrival, and who waits for what about them. */
export class RequestLog {
  readonly requests: LoggedRequest[] = []
  #open = new Map<LoggedRequest, Mutable<LoggedRequest>>()
  #overlaps: [LoggedRequest, LoggedRequest][] = []
  #waiting = new Set<{ check: () => boolean; fail: () => void }>()
  #closed = false

  /** Writes a request down as open. */
  begin(body: WireRequest, headers: IncomingHttpHeaders): LoggedRequest {
    const named = headers['x-threadmill-chat'] ?? body.user
    const entry: Mutable<LoggedRequest> = {
      id: `req_${this.requests.length + 1}`,
      model: body.model,
      messages: body.messages,
      tools: body.tools ?? [],
      body,
      headers: maskHeaders(headers),
      chat: typeof named === 'string' ? named : null,
      startedAt: Date.now(),
      endedAt: null,
      ended: null,
    }
    // Kept by order of events, not by clock: two requests within one ms may well be one after the other.
    for (const other of this.#open.keys()) {
      if (entry.chat !== null && other.chat === entry.chat) this.#overlaps.push([other, entry])
    }
    this.#open.set(entry, entry)
    this.requests.push(entry)
    this.#look()
    return entry
  }

  /** Writes down how a request ended; only the first word on a request counts. */
  end(request: LoggedRequest, ended: Ending): void {
    const entry = this.#open.get(request)
    if (entry === undefined) return
    this.#open.delete(request)
    entry.ended = ended
    entry.endedAt = Date.now()
    this.#look()
  }

  /** The pairs of requests of one chat that were open at the same time, the earlier first. */
  overlaps(): [LoggedRequest, LoggedRequest][] {
    return [...this.#overlaps]
  }

  /** Resolves once the condition holds; rejects with a ConnectionError when the server is closed before. */
  until(condition: () => boolean, what: () => string): Promise<void> {
    if (condition()) return Promise.resolve()
    const held = new Promise<void>((resolve, reject) => {
      const fail = (): void =>
        reject(new ConnectionError(`The model server was closed while a test waited for ${what()}`))
      if (this.#closed) return fail()
      this.#waiting.add({
        check: () => {
          const met = condition()
          if (met) resolve()
          return met
        },
        fail,
      })
    })
    held.catch(() => {}) // a wait that the test gave up on is no unhandled rejection
    return held
  }

  /** Ends what is open as `cut` and every wait that can't come true any more. */
  close(): void {
    for (const request of [...this.#open.keys()]) this.end(request, 'cut')
    this.#closed = true
    for (const waiter of this.#waiting) waiter.fail()
    this.#waiting.clear()
  }

  #look(): void {
    for (const waiter of this.#waiting) if (waiter.check()) this.#waiting.delete(waiter)
  }
}
