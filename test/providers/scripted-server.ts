import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AnswerProgress, AttemptOptions, ModelRequest } from '../../src/providers/provider.ts'

/** Answers one request. The request's body has been read. */
export type Answerer = (response: ServerResponse, request: IncomingMessage, body: string) => void | Promise<void>

/** A local HTTP server whose answer each test sets. */
export class ScriptedServer {
  answer: Answerer = (response) => void response.end()
  readonly requests: { url: string; headers: IncomingMessage['headers']; body: string }[] = []
  /** Connections made so far. */
  connections = 0
  /** Answers that were begun and neither ended nor given up by the client. */
  open = 0
  readonly #server = createServer((request, response) => this.#handle(request, response))

  async start(): Promise<void> {
    this.#server.on('connection', () => {
      this.connections += 1
    })
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get baseURL(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    if (this.#server.listening) await once(this.#server, 'close')
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open += 1
    response.on('close', () => {
      this.open -= 1
    })
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = Buffer.concat(pieces).toString()
    this.requests.push({ url: request.url ?? '', headers: request.headers, body })
    await this.answer(response, request, body)
  }
}

/** Sends a body in pieces of so many bytes, each a write of its own that leaves before the next one. */
export async function sendInPieces(response: ServerResponse, body: string, size: number): Promise<void> {
  const bytes = Buffer.from(body)
  for (let at = 0; at < bytes.length; at += size) {
    const piece = bytes.subarray(at, at + size)
    await new Promise((resolve) => response.write(piece, resolve))
  }
  response.end()
}

/** A `fetch` whose response bodies arrive in pieces of so many bytes, however the network joined them. */
export function fetchInPieces(size: number): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const pieces = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size))
      },
    })
    return new Response(response.body?.pipeThrough(pieces) ?? null, response)
  }
}

export function minimalRequest(changes: Partial<ModelRequest> = {}): ModelRequest {
  return { model: 'm-test', messages: [{ role: 'user', content: 'hi' }], tools: [], streaming: true, ...changes }
}

/** Attempt options that collect the progress. */
export function attemptOptions(changes: Partial<AttemptOptions> = {}): AttemptOptions & { progress: AnswerProgress[] } {
  const progress: AnswerProgress[] = []
  return {
    signal: new AbortController().signal,
    onProgress: (step) => void progress.push(step),
    timeoutMs: 20_000,
    idleMs: 10_000,
    maxAnswerBytes: 4 * 1024 * 1024,
    ...changes,
    progress,
  }
}

/** What a promise rejects with; fails when it doesn't. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    () => ({ rejected: false as const }),
    (error: unknown) => ({ rejected: true as const, error }),
  )
  if (!outcome.rejected) throw new Error('The promise was fulfilled, although a rejection was expected.')
  return outcome.error
}

/** Waits until a condition holds; mocha's time limit ends the wait. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2))
}

/** A stream of chunks, as events. */
export function sse(...chunks: readonly unknown[]): string {
  return chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join('')
}

/** One chunk with a delta of choice 0. */
export function chunk(delta: Record<string, unknown>, rest: Record<string, unknown> = {}): Record<string, unknown> {
  const { finish_reason = null, ...outer } = rest
  return { id: 'cc-1', model: 'm-1', choices: [{ index: 0, delta, finish_reason }], ...outer }
}
