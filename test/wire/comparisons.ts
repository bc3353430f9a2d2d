import { createHash } from 'node:crypto'
import { expect } from 'chai'
import type { Chat, Message, Threadmill } from '../../src/index.ts'
import {
  type Conversation,
  contentText,
  type Exchange,
  type ExpectedExchange,
  isSystem,
  lastResults,
  otherParts,
  type RecordedMessage,
} from './recordings.ts'

/** Compares a chat's rows with what is expected of the exchanges that it made, after its latest run. */
export async function compareChat(
  mill: Threadmill,
  chat: Chat,
  { exchanges, provider }: Conversation,
  made: readonly number[],
): Promise<void> {
  const messages = (await chat.messages()).filter((message) => message.role !== 'system')
  const known = made.flatMap((index) => exchanges[index] ?? [])
  const last = known.at(-1)
  if (last === undefined) throw new Error('The chat has made no exchange')
  // The answers as expected, each with its results; before, between and behind them what was added by hand.
  const answers = messages.slice(firstAnswer(known))
  const succeeded = known.filter((exchange) => exchange.expected.ok)
  expect(answers.filter((message) => message.role === 'assistant').map(answerOf), 'answers').to.deep.equal(
    succeeded.map((exchange) => expectedAnswer(exchange.expected)),
  )
  compareResults(messages, exchanges, made)
  await compareUsages(mill, chat, known, provider)
  const failure = await chat.failure()
  const code = last.expected.error === null ? null : `provider.${last.expected.error.class}`
  expect(failure?.code ?? null, 'failure of the chat').to.equal(code)
  const open = last.expected.tool_calls.length > 0
  expect((await chat.pendingApprovals()).length, 'calls left to a person').to.equal(last.expected.tool_calls.length)
  expect(await chat.isComplete(), 'complete').to.equal(last.expected.ok && !open)
  expect(await chat.running(), 'running').to.equal(false)
}

/** Where the transcript goes beyond what its first request held. */
function firstAnswer([first]: readonly Exchange[]): number {
  return first?.request.body.messages.filter((message) => !isSystem(message)).length ?? 0
}

function answerOf(message: Message) {
  return {
    text: message.content ?? '',
    thinking: message.thinkingText,
    finishReason: message.finishReason,
    toolCalls: message.toolCalls.map((call) => ({
      id: call.providerCallId ?? call.toolCallId,
      name: call.name,
      arguments: call.arguments,
      malformed: call.malformedArguments,
    })),
  }
}

function expectedAnswer(expected: ExpectedExchange): ReturnType<typeof answerOf> {
  return {
    text: expected.text,
    thinking: expected.thinking,
    finishReason: expected.finish_reason,
    toolCalls: expected.tool_calls.map((call) => ({
      id: call.id,
      name: call.name,
      arguments: (call.malformed === true ? {} : call.arguments) as Message['toolCalls'][number]['arguments'],
      malformed: call.malformed === true ? call.arguments_raw : null,
    })),
  }
}

/** Every call of the exchanges has the result that the request after it shows, in a message of its own. */
function compareResults(messages: readonly Message[], exchanges: readonly Exchange[], made: readonly number[]): void {
  const contents = new Map(messages.map((message) => [message.id, message.content]))
  const stored = messages
    .filter((message) => message.role === 'assistant')
    .flatMap((message) => message.toolCalls)
    .map((call) => [call.providerCallId ?? call.toolCallId, contents.get(call.resultId ?? '') ?? null])
  const wanted = made.flatMap((index) => {
    const results = lastResults(exchanges[index + 1]?.request.body.messages ?? [])
    return (exchanges[index]?.expected.tool_calls ?? []).map((call) => [call.id, results.get(call.id) ?? null])
  })
  expect(stored, 'results of the calls').to.deep.equal(wanted)
}

async function compareUsages(
  mill: Threadmill,
  chat: Chat,
  known: readonly Exchange[],
  provider: string,
): Promise<void> {
  const rows = await mill.models.Usage.findAll({ where: { chatId: chat.id }, order: ['createdAt', 'id'] })
  const stored = rows.map((row) => ({
    provider: row.provider,
    model: row.model,
    status: row.status,
    errorCode: row.errorCode,
    hasMessage: row.messageId !== null,
    // Of a failed attempt it is only a hint.
    tokens: row.status !== 'succeeded' ? null : tokensOf(row),
  }))
  const wanted = known.map(({ request, expected }) => ({
    provider,
    model: request.body.model,
    status: expected.ok ? 'succeeded' : 'failed',
    errorCode: expected.error === null ? null : `provider.${expected.error.class}`,
    hasMessage: expected.ok,
    tokens: expected.ok ? expectedTokens(expected.usage) : null,
  }))
  expect(stored, 'usage entries').to.deep.equal(wanted)
}

const tokensOf = (row: {
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly cacheReadTokens: number | null
  readonly cacheWriteTokens: number | null
  readonly thinkingTokens: number | null
}) => ({
  input: row.inputTokens,
  output: row.outputTokens,
  cacheRead: row.cacheReadTokens,
  cacheWrite: row.cacheWriteTokens,
  thinking: row.thinkingTokens,
})

/** The recordings give the usage as it was sent; the rows have the cached part taken off the input. */
function expectedTokens(sent: ExpectedExchange['usage']): ReturnType<typeof tokensOf> {
  const cached = (sent?.cached ?? 0) + (sent?.cache_write ?? 0)
  const input = sent?.input ?? null
  return {
    input: input === null ? null : Math.max(0, input - cached),
    output: sent?.output ?? null,
    cacheRead: sent?.cached ?? null,
    cacheWrite: sent?.cache_write ?? null,
    thinking: sent?.reasoning ?? null,
  }
}

/** A request's messages in a form in which every client's are alike: system first, texts joined, arguments parsed. */
export function comparable(messages: readonly RecordedMessage[]): unknown[] {
  return [...messages.filter(isSystem), ...messages.filter((message) => !isSystem(message))].map((message) => ({
    role: isSystem(message) ? 'system' : message.role,
    content: digest(contentText(message.content)),
    files: otherParts(message.content).map((part) => digest(JSON.stringify(comparablePart(part)))),
    answers: message.tool_call_id ?? null,
    calls: (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: parsed(call.function.arguments || '{}'),
    })),
  }))
}

/** How closely a picture is looked at is the provider's choice where nobody says. */
function comparablePart(part: ReturnType<typeof otherParts>[number]): unknown {
  return part.type === 'image_url' ? { type: part.type, url: part.image_url?.url } : part
}

/** Malformed arguments go back as the text that they are. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Keeps a difference between long texts readable. */
function digest(text: string): string {
  if (text.length < 20_000) return text
  return `${text.slice(0, 40)}... ${text.length} characters, ${createHash('sha256').update(text).digest('hex')}`
}
