import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Conversation, lastResults, type RecordedMessage } from './recordings.ts'

/** The size of the pieces that a reply is sent in, in bytes: odd, so that events and characters are cut anywhere. */
const PIECE = 1_021

interface Replayed {
  readonly conversation: Conversation
  readonly requests: { readonly messages: readonly RecordedMessage[]; readonly stream?: boolean }[]
}

/**
 * Stands in for the providers and for the tools of recorded conversations: `/<name>/<base path>/chat/completions` gives
 * the next recorded response, byte for byte, and `/<name>/result` what the next recorded request says a call came to.
 */
export class ReplayServer {
  readonly #replayed = new Map<string, Replayed>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }

  /** Gets a conversation ready; its requests, in the order of their arrival, are in the answer. */
  load(conversation: Conversation): Replayed['requests'] {
    const requests: Replayed['requests'] = []
    this.#replayed.set(conversation.file, { conversation, requests })
    return requests
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = JSON.parse(Buffer.concat(parts).toString())
    const [, name = '', ...path] = decodeURIComponent(request.url ?? '').split('/')
    const replayed = this.#replayed.get(name)
    if (replayed === undefined) return refuse(response, `No conversation ${name} is being replayed`)
    if (path.join('/') === 'result') return sendResult(replayed, body.callId, response)
    const exchange = replayed.conversation.exchanges[replayed.requests.length]
    replayed.requests.push(body)
    if (exchange === undefined) return refuse(response, 'No exchange was recorded after the last one')
    if (`/${path.join('/')}` !== `${exchange.request.base_path}/chat/completions`) {
      return refuse(response, `/${path.join('/')} is not where the recorded request went`)
    }
    const { status, headers, sse, raw, body: json } = exchange.response
    response.writeHead(status, headers)
    const bytes = Buffer.from(sse ?? raw ?? JSON.stringify(json))
    for (let at = 0; at < bytes.length; at += PIECE) {
      await new Promise((done) => response.write(bytes.subarray(at, at + PIECE), done))
    }
    response.end()
  }
}

function sendResult({ conversation, requests }: Replayed, callId: string, response: ServerResponse): void {
  const next = conversation.exchanges[requests.length]
  const content = lastResults(next?.request.body.messages ?? []).get(callId)
  if (content === undefined) refuse(response, `No result was recorded for ${callId}`)
  else {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ content }))
  }
}

/** An error that no recording has, so that a test sees it. */
function refuse(response: ServerResponse, why: string): void {
  response.writeHead(418, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { message: why } }))
}
