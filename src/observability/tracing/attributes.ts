import type { Attributes } from '@opentelemetry/api'
import type { RequestMessage } from '../../providers/provider.ts'
import { contentLimit, type Step } from '../instruments.ts'
import type { ModelEnded, RunEnded, RunTaken, ToolEnded } from '../observation.ts'

// Names and meanings are those of OpenTelemetry's conventions for generative AI; what those have no name for begins
// with `threadmill.`.

/** The name of a step's span, and what is known of it before it begins. */
export function beginning(step: Step): { readonly name: string; readonly attributes: Attributes } {
  const conversation = { 'gen_ai.conversation.id': step.chatId }
  switch (step.kind) {
    case 'run':
      return {
        name: 'invoke_agent',
        attributes: {
          'gen_ai.operation.name': 'invoke_agent',
          ...conversation,
          'threadmill.run.verb': step.verb,
          'threadmill.run.by': step.by,
        },
      }
    case 'model':
      return {
        name: `chat ${step.model}`,
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.provider.name': step.provider,
          'gen_ai.request.model': step.model,
          ...conversation,
          ...(step.streaming ? { 'gen_ai.request.stream': true } : {}),
          ...present({
            'gen_ai.request.temperature': step.temperature,
            'gen_ai.request.max_tokens': step.maxOutputTokens,
          }),
        },
      }
    case 'tool':
      return {
        name: `execute_tool ${step.tool}`,
        attributes: {
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': step.tool,
          'gen_ai.tool.type': 'function',
          'gen_ai.tool.call.id': step.toolCallId,
          ...conversation,
        },
      }
    default:
      return step satisfies never
  }
}

export function ofRunTaken({ agent, turn, claimToken, waitedMs }: RunTaken): Attributes {
  return present({
    'gen_ai.agent.name': agent,
    'threadmill.turn': turn,
    'threadmill.claim_token': claimToken,
    'threadmill.waited_ms': waitedMs,
  })
}

export function ofRunEnded({ outcome, moves, retryInMs }: RunEnded): Attributes {
  return {
    'threadmill.run.outcome': outcome,
    'threadmill.run.moves': moves,
    ...present({ 'threadmill.run.retry_in_ms': retryInMs }),
  }
}

export function ofModelEnded(ended: ModelEnded): Attributes {
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = ended
  // The convention counts cached tokens in, Threadmill counts them apart.
  const input = inputTokens === null ? null : inputTokens + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0)
  return {
    'threadmill.attempt': ended.attempt,
    ...(ended.finishReason === null ? {} : { 'gen_ai.response.finish_reasons': [ended.finishReason] }),
    ...present({
      'gen_ai.response.model': ended.responseModel,
      'gen_ai.response.id': ended.responseId,
      'gen_ai.response.time_to_first_chunk': ended.firstTokenMs === null ? null : ended.firstTokenMs / 1_000,
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': ended.outputTokens,
      'gen_ai.usage.cache_read.input_tokens': cacheReadTokens,
      'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens,
      'gen_ai.usage.reasoning.output_tokens': ended.thinkingTokens,
      'threadmill.cost_usd': ended.costUsd === null ? null : Number(ended.costUsd),
      'http.response.status_code': ended.error?.status ?? null,
      'gen_ai.output.messages':
        ended.content === null ? null : outputMessages(ended.content, ended.finishReason ?? 'error'),
    }),
  }
}

export function ofToolEnded({ outcome, arguments: given, result }: ToolEnded): Attributes {
  return {
    'threadmill.tool.outcome': outcome,
    ...present({ 'gen_ai.tool.call.arguments': given, 'gen_ai.tool.call.result': result }),
  }
}

/** The messages of a request in the JSON of the convention, each text cut. Only for those who asked for content. */
export function inputMessages(messages: readonly RequestMessage[]): string {
  return JSON.stringify(messages.map((message) => ({ role: message.role, parts: partsOf(message) })))
}

function partsOf(message: RequestMessage): object[] {
  switch (message.role) {
    case 'system':
    case 'user':
      return [textPart(message.content)]
    case 'assistant':
      return [
        ...(message.content === null ? [] : [textPart(message.content)]),
        ...message.toolCalls.map(({ id, name, argumentsText }) => ({
          type: 'tool_call',
          id,
          name,
          arguments: argumentsText.slice(0, contentLimit),
        })),
      ]
    case 'tool':
      return [{ type: 'tool_call_response', id: message.callId, response: message.content.slice(0, contentLimit) }]
    default:
      return message satisfies never
  }
}

function outputMessages(text: string, finishReason: string): string {
  return JSON.stringify([{ role: 'assistant', parts: [textPart(text)], finish_reason: finishReason }])
}

function textPart(content: string): object {
  return { type: 'text', content: content.slice(0, contentLimit) }
}

function present(values: Readonly<Record<string, string | number | null>>): Attributes {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as Attributes
}
