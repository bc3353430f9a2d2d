import type { ChatCompletionCreateParams, ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type { JsonObject } from '../../../models/rows.ts'
import type { ModelRequest, RequestMessage, RequestToolCall, ToolSpec } from '../provider.ts'
import { type RawReasoning, readRawReasoning } from './reasoning.ts'

type AssistantMessage = Extract<RequestMessage, { role: 'assistant' }>

export interface RenderOptions {
  /** OpenAI's newer models take only the first name (the default), most other servers only the second. */
  readonly outputLimitName?: 'max_completion_tokens' | 'max_tokens'
}

/**
 * Renders a request as the body of a Chat Completions request. Streams ask for a usage report. Reasoning goes back
 * under the names that it came with (see {@link RawReasoning}), and `providerOptions` win over everything.
 */
export function renderRequest(request: ModelRequest, options: RenderOptions = {}): ChatCompletionCreateParams {
  const body: Record<string, unknown> = { model: request.model, messages: request.messages.map(renderMessage) }
  if (request.tools.length > 0) body.tools = request.tools.map(renderTool)
  // Servers refuse a choice where there are no tools.
  if (request.tools.length > 0 && request.toolChoice !== undefined) body.tool_choice = request.toolChoice
  if (request.temperature !== undefined) body.temperature = request.temperature
  if (request.maxOutputTokens !== undefined) {
    body[options.outputLimitName ?? 'max_completion_tokens'] = request.maxOutputTokens
  }
  if (request.streaming) {
    body.stream = true
    body.stream_options = { include_usage: true }
  }
  // The reasoning fields and the caller's own options are beyond what the SDK's types know.
  return { ...body, ...request.providerOptions } as unknown as ChatCompletionCreateParams
}

function renderMessage(message: RequestMessage): ChatCompletionMessageParam {
  if (message.role === 'assistant') return renderAssistant(message)
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content: message.content }
  return { role: message.role, content: message.content }
}

function renderAssistant(message: AssistantMessage): ChatCompletionMessageParam {
  const reasoning = readRawReasoning(message.rawReasoning)
  const { content_parts: parts, ...fields } = reasoning ?? {}
  const rendered: Record<string, unknown> = { role: 'assistant', content: renderContent(message, parts), ...fields }
  if (message.toolCalls.length > 0) rendered.tool_calls = message.toolCalls.map(renderToolCall)
  return rendered as unknown as ChatCompletionMessageParam
}

function renderContent(message: AssistantMessage, parts: RawReasoning['content_parts']): string | JsonObject[] | null {
  if (parts && parts.length > 0) {
    return message.content ? [...parts, { type: 'text', text: message.content }] : parts
  }
  if (message.content) return message.content
  return message.toolCalls.length > 0 ? null : ''
}

function renderToolCall(call: RequestToolCall): JsonObject {
  const rendered: JsonObject = {
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.argumentsText },
  }
  if (call.thoughtSignature !== null) {
    rendered.extra_content = { google: { thought_signature: call.thoughtSignature } }
  }
  return rendered
}

function renderTool({ name, description, parameters }: ToolSpec): JsonObject {
  return { type: 'function', function: { name, description, parameters } }
}
