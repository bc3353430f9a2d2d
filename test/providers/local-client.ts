import { ProviderError } from '../../src/errors.ts'
import { openAiClient } from '../../src/providers/openai.ts'
import type { Answer, AttemptOptions, ModelRequest } from '../../src/providers/provider.ts'
import { attemptOptions, chunk, minimalRequest, rejection, ScriptedServer } from './scripted-server.ts'

export const SUM = [chunk({ content: 'The sum ' }), chunk({ content: 'is 4' })]
export const STOP = chunk({}, { finish_reason: 'stop' })
export const EVENT_STREAM = { 'content-type': 'text/event-stream' }

/** A local server and a client of it, for the tests of one `describe`. */
export function clientOfLocalServer() {
  const server = new ScriptedServer()
  before(() => server.start())
  after(() => server.stop())
  beforeEach(() => {
    server.requests.length = 0
  })

  function attempt(options: Partial<AttemptOptions> = {}, request: Partial<ModelRequest> = {}): Promise<Answer> {
    const client = openAiClient({ apiKey: 'secret-key-1', baseURL: server.baseURL })
    return client.attempt(minimalRequest(request), attemptOptions(options))
  }

  /** Answers every request with this body, whole. */
  function answerWith(body: string, headers: Record<string, string> = EVENT_STREAM, status = 200): void {
    server.answer = (response) => void response.writeHead(status, headers).end(body)
  }

  /** Begins every answer with this body, and then breaks the connection or stays silent. */
  function beginWith(body: string, then: 'breaks' | 'is silent'): void {
    server.answer = (response) => {
      response.writeHead(200, EVENT_STREAM).write(body, () => {
        if (then === 'breaks') setImmediate(() => response.destroy())
      })
    }
  }

  async function failure(promise: Promise<unknown>): Promise<ProviderError> {
    const error = await rejection(promise)
    if (!(error instanceof ProviderError)) throw error
    return error
  }

  return { server, attempt, answerWith, beginWith, failure }
}
