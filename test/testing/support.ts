import OpenAI from 'openai'
import type { ModelServer, ModelServerOptions } from '../../src/testing/index.ts'
import { startModelServer } from '../../src/testing/index.ts'

const open: ModelServer[] = []

/** Starts a server that `closeServers` closes after the test. */
export async function serverWith(
  respond: ModelServerOptions['respond'],
  more: Omit<ModelServerOptions, 'respond'> = {},
) {
  const server = await startModelServer(respond === undefined ? more : { ...more, respond })
  open.push(server)
  return server
}

export async function closeServers(): Promise<void> {
  await Promise.all(open.splice(0).map((server) => server.close()))
}

export const clientOf = (server: { readonly url: string }, headers: Record<string, string> = {}): OpenAI =>
  new OpenAI({ baseURL: server.url, apiKey: 'sk-test-123456', maxRetries: 0, defaultHeaders: headers })

export const user = (content: string) => ({ role: 'user' as const, content })

export const hello = { model: 'test-model', messages: [user('Hello')] }
export const streamedHello = { ...hello, stream: true as const, stream_options: { include_usage: true } }

/** Everything that a stream says, and the error that it ended with, if any. */
export async function readStream(client: OpenAI, request: OpenAI.ChatCompletionCreateParamsStreaming = streamedHello) {
  const chunks: OpenAI.ChatCompletionChunk[] = []
  let error: unknown
  try {
    for await (const chunk of await client.chat.completions.create(request)) chunks.push(chunk)
  } catch (thrown) {
    error = thrown
  }
  const choices = chunks.flatMap((chunk) => chunk.choices)
  const pieces = choices.flatMap((choice) => (choice.delta.content ? [choice.delta.content] : []))
  const finish = choices.map((choice) => choice.finish_reason).find((reason) => reason !== null) ?? null
  const usage = chunks.map((chunk) => chunk.usage).find((reported) => reported) ?? null
  return { chunks, pieces, text: pieces.join(''), finish, usage, error }
}

/** What a promise is rejected with. */
export async function failureOf(work: PromiseLike<unknown>): Promise<Error & Record<string, unknown>> {
  try {
    await work
  } catch (error) {
    return error as Error & Record<string, unknown>
  }
  throw new Error('It should have failed')
}
