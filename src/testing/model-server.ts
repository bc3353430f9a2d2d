import { setMaxListeners } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFault, isWireRequest } from './check-request.ts'
import { play } from './play.ts'
import { playbackOf } from './playback.ts'
import { httpError } from './replies.ts'
import type { AnswerReply, BrokenReply, Passage, RawReply, Reply, ReplyFunction, Respond } from './reply.ts'
import type { Ending, LoggedRequest } from './request-log.ts'
import { RequestLog } from './request-log.ts'

/** How a model server is set up. */
export interface ModelServerOptions {
  /** How it answers; by default it has no reply at all, and every request gets an error that says so. */
  readonly respond?: Respond
  /**
   * Refuses with status 400, as the real API does, a transcript whose tool calls and results don't match, or that is
   * empty; such a request uses up no reply. True by default.
   */
  readonly strict?: boolean
  /** 0, the default, takes a free one. */
  readonly port?: number
}

/** A local server that speaks the OpenAI Chat Completions protocol. */
export interface ModelServer {
  /** The base URL for a client, ending in `/v1`. */
  readonly url: string
  /** Every request to the model in order of arrival; grows while the server lives. */
  readonly requests: readonly LoggedRequest[]
  /**
   * Resolves with the first n requests once so many have arrived, at once if they have already.
   * @throws {ConnectionError} when the server is closed before.
   */
  waitForRequests(n: number): Promise<readonly LoggedRequest[]>
  /**
   * Resolves with how a request ended once it has.
   * @throws {ConnectionError} when the server is closed before.
   */
  waitForEnd(request: LoggedRequest): Promise<Ending>
  /** Pairs of requests that were open at the same time and bear the same chat, the earlier first; none: empty. */
  overlaps(): readonly (readonly [LoggedRequest, LoggedRequest])[]
  /** Cuts what is open and stops listening; leaves no handle behind. Can be called again. */
  close(): Promise<void>
}

/** Starts a model server on 127.0.0.1. */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const log = new RequestLog()
  const respond = replyFunction(options.respond ?? [])
  const closing = new AbortController()
  // Every open request listens, and a load test has many.
  setMaxListeners(0, closing.signal)
  const handle = { log, respond, strict: options.strict ?? true, closing: closing.signal }
  const server = createServer({ keepAliveTimeout: 60_000, noDelay: true }, (request, response) => {
    serve(request, response, handle).catch(() => response.destroy())
  })
  await listen(server, options.port ?? 0)
  const { port } = server.address() as AddressInfo
  let closed: Promise<void> | undefined
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests: log.requests,
    async waitForRequests(n) {
      await log.until(
        () => log.requests.length >= n,
        () => `${n} requests; ${log.requests.length} came`,
      )
      return log.requests.slice(0, n)
    },
    async waitForEnd(request) {
      await log.until(
        () => request.ended !== null,
        () => `the end of ${request.id}`,
      )
      return request.ended ?? 'cut'
    },
    overlaps: () => log.overlaps(),
    close() {
      closed ??= new Promise((resolve) => {
        log.close()
        server.close(() => resolve())
        closing.abort()
        server.closeAllConnections()
      })
      return closed
    },
  }
}

interface Handle {
  readonly log: RequestLog
  readonly respond: ReplyFunction
  readonly strict: boolean
  readonly closing: AbortSignal
}

const listen = (server: Server, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })

/** One function for all forms of `respond`. */
function replyFunction(respond: Respond): ReplyFunction {
  if (typeof respond === 'function') return respond
  if (!isScript(respond)) return () => respond
  let next = 0
  return () => respond[next++] ?? noRetry(httpError(500, 'the script has no reply left'))
}

const isScript = (respond: readonly Reply[] | Reply): respond is readonly Reply[] => Array.isArray(respond)

// The openai client would try a 500 again, and the test would wait for nothing.
const noRetry = (reply: RawReply): RawReply => ({ ...reply, headers: { ...reply.headers, 'x-should-retry': 'false' } })

async function serve(request: IncomingMessage, response: ServerResponse, handle: Handle): Promise<void> {
  const gone = goneSignal(request, response, handle.closing)
  const text = await readAll(request)
  const path = request.url?.split('?')[0]
  if (request.method !== 'POST' || path !== '/v1/chat/completions') {
    return refuse(
      response,
      httpError(404, `There is no ${request.method} ${path} here, only POST /v1/chat/completions`),
    )
  }
  const body = parse(text)
  if (!isWireRequest(body)) {
    return refuse(response, httpError(400, 'The body is not a JSON object with model (text) and messages (a list)'))
  }
  const logged = handle.log.begin(body, request.headers)
  gone.addEventListener('abort', () => handle.log.end(logged, 'aborted'), { once: true })
  const gates: Passage[] = []
  try {
    const reply = await decide(logged, handle, gates)
    if (gone.aborted) return
    await play(playbackOf(reply, logged), {
      response,
      gone,
      gates,
      requestId: logged.id,
      ended: (ending) => handle.log.end(logged, ending),
    })
  } finally {
    for (const gate of gates) gate.leave()
  }
}

/** The reply to a request, out of its gates and rules. A `respond` that throws makes an error reply. */
async function decide(
  request: LoggedRequest,
  handle: Handle,
  gates: Passage[],
): Promise<AnswerReply | RawReply | BrokenReply> {
  const fault = handle.strict ? findFault(request.messages) : null
  if (fault !== null) return httpError(400, fault)
  const index = handle.log.requests.indexOf(request)
  try {
    let reply = await handle.respond(request, index)
    for (;;) {
      if (reply.kind === 'gate') {
        gates.push(reply.enter(request))
        reply = reply.reply
      } else if (reply.kind === 'rules') {
        reply = await reply.make(request, index)
      } else {
        return reply
      }
    }
  } catch (error) {
    return noRetry(httpError(500, `respond threw an error: ${error instanceof Error ? error.message : String(error)}`))
  }
}

/** Aborted once the client is gone before the end of the response, or the server is being closed. */
function goneSignal(request: IncomingMessage, response: ServerResponse, closing: AbortSignal): AbortSignal {
  const gone = new AbortController()
  const leave = (): void => {
    if (!response.writableEnded) gone.abort()
  }
  // The socket's end comes before the response's close, so a client that asks again at once makes no false overlap.
  request.socket.once('end', leave)
  response.once('close', () => {
    request.socket.off('end', leave)
    closing.removeEventListener('abort', leave)
    leave()
  })
  closing.addEventListener('abort', leave)
  return gone.signal
}

async function readAll(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refuse(response: ServerResponse, reply: RawReply): void {
  response.writeHead(reply.status, { ...reply.headers })
  response.end(reply.bytes)
}
