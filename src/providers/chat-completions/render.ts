import type { ChatCompletionCreateParams, ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type { JsonObject } from '../../../models/rows.ts'
import type { ModelRequest, RequestMessage, RequestToolCall, ToolSpec } from '../provider.ts'
import { type DocumentForm, renderFile } from './files.ts'
import { type RawReasoning, readRawReasoning } from './reasoning.ts'

type AssistantMessage = Extract<RequestMessage, { role: 'assistant' }>
type ToolMessage = Extract<RequestMessage, { role: 'tool' }>

export interface RenderOptions {
  /** OpenAI's newer models take only the first name (the default), most other servers only the second. */
  readonly outputLimitName?: 'max_completion_tokens' | 'max_tokens'
  /** OpenAI takes a word for the effort (the default); OpenRouter an object, which can hold a budget too. */
  readonly reasoning?: 'effort' | 'object'
  /** Whether boundaries of the prompt cache are understood, as by servers that pass them on to Anthropic. Default false. */
  readonly cacheBoundaries?: boolean
  /** How documents are sent. Default `file`. */
  readonly documents?: DocumentForm
}

/**
 * Renders a request as the body of a Chat Completions request. Streams ask for a usage report. Reasoning goes back
 * under the names that it came with (see {@link RawReasoning}), and `providerOptions` win over everything.
 */
export function renderRequest(request: ModelRequest, options: RenderOptions = {}): ChatCompletionCreateParams {
  const marked = options.cacheBoundaries === true ? latestBoundaries(request.messages) : new Set()
  const body: Record<string, unknown> = {
    model: request.model,
    messages: renderMessages(request.messages, marked, options.documents ?? 'file'),
    ...renderTools(request),
    ...renderReasoning(request.thinking, options.reasoning ?? 'effort'),
  }
  if (request.temperature !== undefined) body.temperature = request.temperature
  if (request.maxOutputTokens !== undefined) {
    body[options.outputLimitName ?? 'max_completion_tokens'] = request.maxOutputTokens
  }
  if (request.schema !== undefined) body.response_format = { type: 'json_schema', json_schema: request.schema }
  if (request.endUser !== undefined) body.user = request.endUser
  if (request.caching?.key !== undefined) body.prompt_cache_key = request.caching.key
  if (request.caching?.retention !== undefined) body.prompt_cache_retention = request.caching.retention
  if (request.streaming) {
    body.stream = true
    body.stream_options = { include_usage: true }
  }
  // The reasoning fields and the caller's own options are beyond what the SDK's types know.
  return { ...body, ...request.providerOptions } as unknown as ChatCompletionCreateParams
}

/** Servers refuse choices where there are no tools. */
function renderTools({ tools, toolChoice, parallelToolCalls }: ModelRequest): Record<string, unknown> {
  if (tools.length === 0) return {}
  const choice = typeof toolChoice === 'object' ? { type: 'function', function: { name: toolChoice.name } } : toolChoice
  return {
    tools: tools.map(renderTool),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(parallelToolCalls === undefined ? {} : { parallel_tool_calls: parallelToolCalls }),
  }
}

function renderReasoning(thinking: ModelRequest['thinking'], form: 'effort' | 'object'): Record<string, unknown> {
  if (thinking === undefined) return {}
  const effort = thinking === false ? 'none' : thinking.effort
  if (form === 'effort') return effort === undefined ? {} : { reasoning_effort: effort }
  const budget = thinking === false ? undefined : thinking.budget
  const hidden = thinking !== false && thinking.display === 'omitted'
  const reasoning = {
    ...(effort === undefined ? {} : { effort }),
    ...(budget === undefined ? {} : { max_tokens: budget }),
    ...(hidden ? { exclude: true } : {}),
  }
  return Object.keys(reasoning).length === 0 ? {} : { reasoning }
}

/** Anthropic refuses a request with more boundaries than this. Of a chat that is marked in each turn the latest serve the longest prompt. */
const MOST_BOUNDARIES = 4

function latestBoundaries(messages: readonly RequestMessage[]): ReadonlySet<unknown> {
  return new Set(messages.filter((message) => message.cacheUntilHere !== undefined).slice(-MOST_BOUNDARIES))
}

/** A boundary stands at the end of a message's parts. */
function withBoundary(message: RequestMessage, rendered: ChatCompletionMessageParam): ChatCompletionMessageParam {
  if (message.cacheUntilHere === undefined) return rendered
  const { content } = rendered
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : [...(content ?? [])]
  const last = parts.at(-1)
  if (last === undefined) return rendered
  const ttl = message.cacheUntilHere === true ? {} : { ttl: message.cacheUntilHere.ttl }
  const marked = { ...last, cache_control: { type: 'ephemeral', ...ttl } }
  return { ...rendered, content: [...parts.slice(0, -1), marked] } as unknown as ChatCompletionMessageParam
}

/** Results hold texts alone, so the files of a round stand behind the last of them: anything between would part calls from results. */
function renderMessages(
  messages: readonly RequestMessage[],
  marked: ReadonlySet<unknown>,
  documents: DocumentForm,
): ChatCompletionMessageParam[] {
  let round: ToolMessage[] = []
  return messages.flatMap((message, at) => {
    const plain = renderMessage(message, documents)
    const rendered = marked.has(message) ? withBoundary(message, plain) : plain
    if (message.role !== 'tool') return [rendered]
    round.push(message)
    if (messages[at + 1]?.role === 'tool') return [rendered]
    const parts = round.flatMap((result) => renderResultFiles(result, documents))
    round = []
    return parts.length === 0 ? [rendered] : [rendered, userParts(parts)]
  })
}

function renderResultFiles({ name, callId, files = [] }: ToolMessage, documents: DocumentForm): JsonObject[] {
  if (files.length === 0) return []
  const names = files.map(({ filename }) => filename).join(', ')
  const said = { type: 'text', text: `Attached by ${name} (call ${callId}): ${names}` }
  return [said, ...files.map((file) => renderFile(file, documents))]
}

function userParts(content: readonly JsonObject[]): ChatCompletionMessageParam {
  return { role: 'user', content } as unknown as ChatCompletionMessageParam
}

function renderMessage(message: RequestMessage, documents: DocumentForm): ChatCompletionMessageParam {
  if (message.role === 'assistant') return renderAssistant(message)
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content: message.content }
  if (message.files === undefined || message.files.length === 0) return { role: message.role, content: message.content }
  const said = message.content === '' ? [] : [{ type: 'text', text: message.content }]
  return userParts([...said, ...message.files.map((file) => renderFile(file, documents))])
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
