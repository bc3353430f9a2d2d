/** A part of a message's content: text, or an attachment in one of the API's forms. */
export interface WirePart {
  /** `text`, or the form of an attachment. */
  readonly type: string
  /** The text of a text part. */
  readonly text?: string
  readonly [key: string]: unknown
}

/** A tool call in an assistant message, as the API spells it; `arguments` is JSON text. */
export interface WireToolCall {
  /** What its result names as `tool_call_id`. */
  readonly id: string
  /** `function`. */
  readonly type: string
  /** The function and its arguments. */
  readonly function: {
    /** The tool's name. */
    readonly name: string
    /** JSON text. */
    readonly arguments: string
  }
}

/** One message of a Chat Completions request. */
export interface WireMessage {
  /** `system`, `user`, `assistant` or `tool`. */
  readonly role: string
  /** Text, or parts; null for an assistant message of tool calls only. */
  readonly content?: string | readonly WirePart[] | null
  /** The calls of an assistant message. */
  readonly tool_calls?: readonly WireToolCall[]
  /** The call that a tool message answers. */
  readonly tool_call_id?: string
  readonly [key: string]: unknown
}

/** A function that the request offers to the model. */
export interface WireTool {
  /** `function`. */
  readonly type: string
  /** The function, with the JSON Schema of its arguments. */
  readonly function: {
    /** What the model calls it by. */
    readonly name: string
    /** What it does and when to use it. */
    readonly description?: string
    /** JSON Schema of its arguments. */
    readonly parameters?: { readonly [key: string]: unknown }
  }
}

/** The whole body of a Chat Completions request, as it was sent. */
export interface WireRequest {
  /** The model asked. */
  readonly model: string
  /** The conversation. */
  readonly messages: readonly WireMessage[]
  /** What the model may call; left out = nothing. */
  readonly tools?: readonly WireTool[]
  /** True asks for a stream. */
  readonly stream?: boolean | null
  /** Whether the stream ends with the usage. */
  readonly stream_options?: {
    /** True: a last chunk reports the usage. */
    readonly include_usage?: boolean
  } | null
  readonly [key: string]: unknown
}

/** The `usage` object of an answer. Anything more that a provider reports can stand beside the usual fields. */
export interface WireUsage {
  /** Tokens of the request, cached ones included. */
  readonly prompt_tokens?: number
  /** Tokens of the answer. */
  readonly completion_tokens?: number
  /** Both. */
  readonly total_tokens?: number
  readonly [key: string]: unknown
}

/** An error as the API puts it, in a body or inside a stream. */
export interface WireError {
  /** What went wrong, in words. */
  readonly message: string
  /** The kind of error, such as `server_error`. */
  readonly type?: string
  /** A more exact word or number; null = none. */
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
