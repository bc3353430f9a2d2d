import { BadRequestError } from '../../src/errors.ts'
import { ServerError } from '../../src/index.ts'
import { renderRequest } from '../../src/providers/chat-completions/render.ts'
import type { Answer, AnswerToolCall, AttemptOptions, ModelClient, ModelRequest } from '../../src/providers/provider.ts'
import type { WireRequest } from '../../src/testing/wire.ts'
import type { CallKind, Reply } from './plan.ts'
import type { SimulatedProcess } from './process.ts'
import type { World } from './world.ts'

/** The model as one process reaches it for one chat. */
export function modelOf(world: World, process: SimulatedProcess, chatId: string): ModelClient {
  return { provider: 'openai', attempt: (request, options) => attempt(world, process, chatId, request, options) }
}

async function attempt(
  world: World,
  process: SimulatedProcess,
  chatId: string,
  request: ModelRequest,
  options: AttemptOptions,
): Promise<Answer> {
  const { messages } = renderRequest(request) as unknown as WireRequest
  const reply = await process.call(
    'the model is asked',
    async () => {
      world.monitor.asked(process, chatId, messages)
      return world.nextReply(chatId)
    },
    { statement: false },
  )
  world.trace(process.name, `  the model takes ${reply.ms} ms to answer: ${JSON.stringify(reply)}`)
  const answered = world.monitor.deadlines.waits(process, chatId)
  try {
    const failsAtOnce = reply.kind === 'error'
    if (!failsAtOnce) {
      await unlessAborted(process, reply.ms / 2, options.signal)
      await options.onProgress?.({ type: 'text', text: 'Well' })
    }
    await unlessAborted(process, reply.ms / 2, options.signal)
  } finally {
    answered()
  }
  return answerOf(reply)
}

export function unlessAborted(process: SimulatedProcess, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    process.later(ms, () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
  })
}

function answerOf(reply: Reply): Answer {
  switch (reply.kind) {
    case 'text':
      return answer('Well, an answer', [])
    case 'empty':
      return answer('', [])
    case 'calls':
      return answer('Well', reply.calls.map(callOf))
    case 'error':
    case 'cut':
      throw reply.retryable
        ? new ServerError('overloaded', { retryable: true, status: 500 })
        : new BadRequestError('refused', { status: 400 })
    default:
      return reply satisfies never
  }
}

function callOf(kind: CallKind, at: number): AnswerToolCall {
  const malformed = kind === 'malformed'
  return {
    // The same ids in every answer, as some providers send them.
    providerCallId: `call_${at}`,
    name: malformed ? 'free' : kind,
    argumentsText: malformed ? 'not json' : '{}',
    arguments: malformed ? null : {},
    thoughtSignature: null,
  }
}

function answer(text: string, toolCalls: readonly AnswerToolCall[]): Answer {
  const usage = { input: 10, output: 2, cacheRead: null, cacheWrite: null, thinking: null }
  const nothing = { thinking: null, thinkingSignature: null, rawReasoning: null, citations: null, responseId: null }
  const finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop'
  return { ...nothing, text, toolCalls, usage, finishReason, model: 'any-model' }
}
