import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { ProviderError } from '../../src/errors.ts'
import { openAiClient } from '../../src/providers/openai.ts'
import type { Answer } from '../../src/providers/provider.ts'
import { attemptOptions, fetchInPieces, minimalRequest, rejection, ScriptedServer } from './scripted-server.ts'

interface Expected {
  ok: boolean
  text: string
  thinking: string | null
  tool_calls: { id: string | null; name: string; arguments: unknown; arguments_raw: string; malformed?: boolean }[]
  finish_reason: string | null
  usage: Record<'input' | 'output' | 'cached' | 'cache_write' | 'reasoning', number | null> | null
  model: string | null
  response_id: string | null
  error: {
    class: string
    retryable: boolean
    message: string
    status?: number
    hints: string[]
    retry_after?: { seconds?: number; ms?: number }
  } | null
}

interface Exchange {
  request: { base_path: string; path: string; body: { stream?: boolean } }
  response: { status: number; headers: Record<string, string>; sse?: string; raw?: string; body?: unknown }
  expected: Expected
}

const PIECE = 7
const folder = process.env.THREADMILL_WIRE ?? resolve(import.meta.dirname, '../../../shared/wire/dev')
const files = existsSync(folder) ? readdirSync(folder).filter((name) => /\.chat\..*\.json$/.test(name)) : []

describe('Recorded Chat Completions traffic', function () {
  this.timeout(60_000)
  const server = new ScriptedServer()
  let replayed = 0
  let total = 0

  if (files.length === 0) {
    it(`is left out: there are no recordings in ${folder} (set THREADMILL_WIRE to their folder)`)
    return
  }
  before(() => server.start())
  after(async () => {
    await server.stop()
    process.stdout.write(`    ${replayed} of ${total} recorded exchanges were read as expected\n`)
  })

  for (const file of files) {
    const { exchanges } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { exchanges: Exchange[] }
    total += exchanges.length
    it(`reads ${file.replace('.json', '')} as expected`, async () => {
      for (const [index, exchange] of exchanges.entries()) {
        await replay(exchange, `exchange ${index}`)
        replayed += 1
      }
    })
  }

  async function replay({ request, response, expected }: Exchange, label: string): Promise<void> {
    server.answer = (reply) => {
      reply.writeHead(response.status, response.headers)
      reply.end(response.sse ?? response.raw ?? JSON.stringify(response.body))
    }
    const baseURL = server.baseURL.replace('/v1', request.base_path)
    const client = openAiClient({ apiKey: 'recorded-key', baseURL, fetch: fetchInPieces(PIECE) })
    const options = attemptOptions()
    const attempt = client.attempt(minimalRequest({ streaming: request.body.stream === true }), options)
    if (!expected.ok) return compareError(await rejection(attempt), expected, label)
    const answer = await attempt
    compareAnswer(answer, expected, label)
    if (request.body.stream === true) {
      const shown = (type: string) =>
        options.progress.flatMap((step) => (step.type === type && 'text' in step ? step.text : []))
      expect(shown('text').join(''), `${label}: text shown`).to.equal(expected.text)
      expect(shown('thinking').join(''), `${label}: thinking shown`).to.equal(expected.thinking ?? '')
    }
  }
})

function compareAnswer(answer: Answer, expected: Expected, label: string): void {
  expect(answer.text, `${label}: text`).to.equal(expected.text)
  expect(answer.thinking, `${label}: thinking`).to.equal(expected.thinking)
  const calls = answer.toolCalls.map((call) => ({
    id: call.providerCallId,
    name: call.name,
    arguments: call.arguments,
    arguments_raw: call.argumentsText,
  }))
  const wanted = expected.tool_calls.map(({ id, name, arguments: parsed, arguments_raw, malformed }) => ({
    id,
    name,
    arguments: malformed ? null : parsed,
    arguments_raw,
  }))
  expect(calls, `${label}: tool calls`).to.deep.equal(wanted)
  expect(answer.finishReason, `${label}: finish reason`).to.equal(expected.finish_reason)
  expect(answer.model, `${label}: model`).to.equal(expected.model)
  expect(answer.responseId, `${label}: response id`).to.equal(expected.response_id)
  expect(answer.usage, `${label}: usage`).to.deep.equal(usageOf(expected.usage))
}

/** The recordings give the usage as it was sent; ours has the cached part taken off the input. */
function usageOf(sent: Expected['usage']): Answer['usage'] {
  if (sent === null) return null
  const cached = (sent.cached ?? 0) + (sent.cache_write ?? 0)
  return {
    input: sent.input === null ? null : Math.max(0, sent.input - cached),
    output: sent.output,
    cacheRead: sent.cached,
    cacheWrite: sent.cache_write,
    thinking: sent.reasoning,
  }
}

function compareError(error: unknown, { error: expected }: Expected, label: string): void {
  if (!(error instanceof ProviderError)) throw error
  const hopeless = (expected?.hints.length ?? 0) > 0
  const { seconds = 0, ms = 0 } = expected?.retry_after ?? {}
  expect(error.code, `${label}: class`).to.equal(`provider.${expected?.class}`)
  expect(error.retryable, `${label}: retryable`).to.equal(expected?.retryable === true && !hopeless)
  expect(error.status, `${label}: status`).to.equal(expected?.status)
  expect(error.retryAfterMs, `${label}: retry after`).to.equal(ms || seconds * 1000 || undefined)
  if (hopeless) expect(error.hint, `${label}: hint`).to.match(/longer than the model takes|larger than what the rate/)
  if (expected?.message.startsWith('<'))
    expect(error.message).to.contain('401 Authorization Required').and.not.contain('<')
  else expect(error.message, `${label}: message`).to.contain(expected?.message.trim().replace('****-key', '***'))
}
