import type {
  AttachmentValue,
  CacheBoundary,
  CachingSettings,
  Json,
  JsonObject,
  OutputSchema,
  ThinkingSettings,
} from '../../models/rows.ts'

/** A tool as a model is told of it. `parameters` is a JSON Schema of an object. */
export interface ToolSpec {
  /** What the model calls it by. */
  readonly name: string
  /** What it does and when to use it. */
  readonly description: string
  /** JSON Schema of its arguments. */
  readonly parameters: JsonObject
}

/** One message of a request, in no provider's words. The list is always sendable: each call is followed at once by its result. */
export type RequestMessage =
  | {
      readonly role: 'system' | 'user'
      /** The text. */
      readonly content: string
      /** The files of a user's message, as they are stored; undefined = none. */
      readonly attachments?: readonly AttachmentValue[] | undefined
      /** The same as they are sent. */
      readonly files?: readonly RequestAttachment[] | undefined
      /** The provider is to keep the prompt up to here in its cache; undefined = not asked for. */
      readonly cacheUntilHere?: CacheBoundary | undefined
    }
  | {
      readonly role: 'assistant'
      /** The text; null for an answer of tool calls only. */
      readonly content: string | null
      /** Reasoning to send back; null where there is none. */
      readonly thinking: string | null
      /** The provider's proof of the reasoning; null where it sent none. */
      readonly thinkingSignature: string | null
      /** Opaque items that the provider wants back unchanged. */
      readonly rawReasoning: Json | null
      /** The calls that it made, in its order; empty = none. */
      readonly toolCalls: readonly RequestToolCall[]
      /** As of the other messages. */
      readonly cacheUntilHere?: CacheBoundary | undefined
    }
  | {
      readonly role: 'tool'
      /** The call that it answers: the id that the provider knows it by. */
      readonly callId: string
      /** The tool's name. */
      readonly name: string
      /** The result; as it is sent, with a line for each of its files. */
      readonly content: string
      /** The files of the result, as they are stored; undefined = none. */
      readonly attachments?: readonly AttachmentValue[] | undefined
      /** Those that the model can take, as they are sent. A protocol whose results hold texts alone sends them behind the round's results. */
      readonly files?: readonly RequestAttachment[] | undefined
      /** As of the other messages. */
      readonly cacheUntilHere?: CacheBoundary | undefined
    }

/** A file, as a request carries it. */
export interface RequestAttachment {
  /** What it is called. */
  readonly filename: string
  /** Its media type. */
  readonly contentType: string
  /** Its bytes. */
  readonly base64: string
}

/** A tool call of an assistant message, as a request repeats it. */
export interface RequestToolCall {
  /** The id that the provider knows the call by. */
  readonly id: string
  /** The tool's name. */
  readonly name: string
  /** The exact text that the model wrote where it was malformed, else the arguments as JSON. */
  readonly argumentsText: string
  /** The provider's proof of the reasoning behind the call; null where it sent none. */
  readonly thoughtSignature: string | null
}

/** Everything that one request to a model says. */
export interface ModelRequest {
  /** The model to ask, in the provider's words. */
  readonly model: string
  /** The conversation, system messages first. */
  readonly messages: readonly RequestMessage[]
  /** What the model may call; empty = nothing. */
  readonly tools: readonly ToolSpec[]
  /** 0 to 2; undefined = not sent. */
  readonly temperature?: number | undefined
  /** Limit on the answer, in tokens; undefined = not sent. */
  readonly maxOutputTokens?: number | undefined
  /**
   * What the model may do with the tools; undefined = as it likes. `none`: it is told of them and may not call one; a protocol
   * that can't say so, or whose prompt cache would be lost by it, leaves it out.
   */
  readonly toolChoice?:
    | 'auto'
    | 'none'
    | 'required'
    | {
        /** The tool that must be called. */
        readonly name: string
      }
    | undefined
  /** Whether one answer may hold several calls; undefined = not sent. */
  readonly parallelToolCalls?: boolean | undefined
  /** What the answer has to look like; undefined = free. */
  readonly schema?: OutputSchema | undefined
  /** How the model is to reason, false = not at all; undefined = not sent. */
  readonly thinking?: ThinkingSettings | false | undefined
  /** How the provider's prompt cache is to be used; undefined = not sent. */
  readonly caching?: CachingSettings | undefined
  /** Who asks; undefined = not sent. */
  readonly endUser?: string | undefined
  /** Passed into the request body as they are; they win over everything above. */
  readonly providerOptions?: JsonObject | undefined
  /** False asks for one JSON answer instead of a stream. */
  readonly streaming: boolean
  /** The whole body as it is to be sent, in place of what everything above comes to. */
  readonly payload?: JsonObject | undefined
}

/** Tokens of one attempt, cached input counted apart from `input`. Null = not reported, never 0 by guess. */
export interface TokenUsage {
  /** Tokens of the request that did not come from a cache. */
  readonly input: number | null
  /** Tokens of the answer. */
  readonly output: number | null
  /** Tokens of the request that came from the provider's cache. */
  readonly cacheRead: number | null
  /** Tokens of the request that were written to the provider's cache. */
  readonly cacheWrite: number | null
  /** The part of `output` that was reasoning. */
  readonly thinking: number | null
}

/** One tool call of an answer. */
export interface AnswerToolCall {
  /** The id that the provider sent, or null if it sent none. */
  readonly providerCallId: string | null
  /** The tool's name, as the model wrote it. */
  readonly name: string
  /** The exact text of the arguments, fragments joined. */
  readonly argumentsText: string
  /** What the text means, or null when it is not one JSON object. */
  readonly arguments: JsonObject | null
  /** The provider's proof of the reasoning behind the call; null where it sent none. */
  readonly thoughtSignature: string | null
}

/** One whole answer of a model. */
export interface Answer {
  /** All text parts joined, `''` if there were none. */
  readonly text: string
  /** Reasoning that the provider showed; null where it showed none. */
  readonly thinking: string | null
  /** The provider's proof of the reasoning, to be sent back; null where it sent none. */
  readonly thinkingSignature: string | null
  /** Reasoning items that the provider wants back unchanged; null where there are none. */
  readonly rawReasoning: Json | null
  /** Sources, in the provider's form; null where it named none. */
  readonly citations: Json[] | null
  /** The tools that it asks for, in its order; empty = none. */
  readonly toolCalls: readonly AnswerToolCall[]
  /** The provider's own word. */
  readonly finishReason: string | null
  /** Null where the provider reported none. */
  readonly usage: TokenUsage | null
  /** The model that answered, as the provider names it. */
  readonly model: string | null
  /** The provider's id of the answer; null where it sent none. */
  readonly responseId: string | null
}

/** What can be seen of an answer while it is being made. */
export type AnswerProgress =
  | {
      readonly type: 'text'
      /** The text that is new. */
      readonly text: string
    }
  | {
      readonly type: 'thinking'
      /** The reasoning that is new. */
      readonly text: string
    }
  | {
      readonly type: 'usage'
      /** Tokens as last reported: totals, not an addition. */
      readonly usage: TokenUsage
    }

/** What one attempt at a model goes by. */
export interface AttemptOptions {
  /** Aborting ends the attempt at once with the signal's reason; it is thrown as it is. */
  readonly signal: AbortSignal
  /** Called in order; an error that it throws ends the attempt and comes out unchanged. */
  readonly onProgress: (progress: AnswerProgress) => void | Promise<void>
  /** Limit on the whole attempt, in ms. */
  readonly timeoutMs: number
  /** Limit on silence within a stream, in ms. */
  readonly idleMs: number
  /** Limit on text, reasoning and tool arguments of the answer together, in bytes of UTF-8; it is for the client to keep. (E100) */
  readonly maxAnswerBytes: number
  /** Sent beside those of the protocol; they win over them. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** With which key a provider is asked, and where. */
export interface ModelAccess {
  /** The key. */
  readonly apiKey?: string | undefined
  /** Up to and without `/chat/completions`. */
  readonly baseURL?: string | undefined
  /** OpenAI's organization. */
  readonly organization?: string | undefined
  /** OpenAI's project. */
  readonly project?: string | undefined
}

/** A way to ask a model once. No retries: every physical attempt is a call of its own. */
export interface ModelClient {
  /** The provider's name, as stored with each usage entry. */
  readonly provider: string
  /**
   * Asks once and returns the whole answer.
   * @throws {ProviderError} for everything that the model's side does wrong, a cut or silent stream included.
   */
  attempt(request: ModelRequest, options: AttemptOptions): Promise<Answer>
  /** Whether a model can be sent files of a media type; left out: none can. */
  supportsAttachment?(contentType: string): boolean
  /** How many input tokens a request would carry; left out where the provider has no way to say. */
  countTokens?(request: ModelRequest, options: Pick<AttemptOptions, 'headers'>): Promise<number>
  /** The body that a request comes to. Needed for `beforeRequest` hooks and `chat.render()`. */
  render?(request: ModelRequest): JsonObject
  /**
   * The same client with another key or endpoint; what is left out stays as it is. Needed where a chat's context gives one and
   * its agent brings this client.
   */
  withAccess?(access: ModelAccess): ModelClient
}

/** USD per million tokens. A bucket without a price makes the cost of an attempt that used it unknown. */
export interface Prices {
  /** Of input that did not come from a cache. */
  readonly input: number
  /** Of output, reasoning included. */
  readonly output: number
  /** Of input that came from a cache. */
  readonly cacheRead?: number
  /** Of input that was written to a cache. */
  readonly cacheWrite?: number
}
