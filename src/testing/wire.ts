/** A part of a message's content: text, or an attachment in one of the API's forms. */
export interface WirePart {
  readonly type: string
  readonly text?: string
  readonly [key: string]: unknown
}

/** A tool call in an assistant message, as the API spells it; `arguments` is JSON text. */
export interface WireToolCall {
  readonly id: string
  readonly type: string
  readonly function: { readonly name: string; readonly arguments: string }
}

/** One message of a Chat Completions request. */
export interface WireMessage {
  readonly role: string
  readonly content?: string | readonly WirePart[] | null
  readonly tool_calls?: readonly WireToolCall[]
  readonly tool_call_id?: string
  readonly [key: string]: unknown
}

/** A function that the request offers to the model. */
export interface WireTool {
  readonly type: string
  readonly function: {
    readonly name: string
    readonly description?: string
    readonly parameters?: { readonly [key: string]: unknown }
  }
}

/** The whole body of a Chat Completions request, as it was sent. */
export interface WireRequest {
  readonly model: string
  readonly messages: readonly WireMessage[]
  readonly tools?: readonly WireTool[]
  readonly stream?: boolean | null
  readonly stream_options?: { readonly include_usage?: boolean } | null
  readonly [key: string]: unknown
}

/** The `usage` object of an answer. Anything more that a provider reports can stand beside the usual fields. */
export interface WireUsage {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly total_tokens?: number
  readonly [key: string]: unknown
}

/** An error as the API puts it, in a body or inside a stream. */
export interface WireError {
  readonly message: string
  readonly type?: string
  readonly code?: string | number | null
  readonly [key: string]: unknown
}

/** The text of a message: its text parts joined by line breaks, `''` if it has none. */
export function textOf(message: WireMessage | undefined): string {
  const content = message?.content
  if (typeof content === 'string') return content
  const parts = content ?? []
  return parts.flatMap((part) => (part.type === 'text' && part.text !== undefined ? [part.text] : [])).join('\n')
}
