import type { Json, JsonObject } from '../../models/rows.ts'

/** A tool as a model is told of it. `parameters` is a JSON Schema of an object. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
}

/** One message of a request, in no provider's words. The list is always sendable: each call is followed at once by its result. */
export type RequestMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly thinking: string | null
      readonly thinkingSignature: string | null
      /** Opaque items that the provider wants back unchanged. */
      readonly rawReasoning: Json | null
      readonly toolCalls: readonly RequestToolCall[]
    }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly content: string }

export interface RequestToolCall {
  /** The id that the provider knows the call by. */
  readonly id: string
  readonly name: string
  /** The exact text that the model wrote where it was malformed, else the arguments as JSON. */
  readonly argumentsText: string
  readonly thoughtSignature: string | null
}

/** Everything that one request to a model says. */
export interface ModelRequest {
  readonly model: string
  readonly messages: readonly RequestMessage[]
  readonly tools: readonly ToolSpec[]
  readonly temperature?: number | undefined
  readonly maxOutputTokens?: number | undefined
  /**
   * `none`: the model is told of the tools and may not call one. A protocol that can't say so, or whose prompt cache would be
   * lost by it, leaves it out.
   */
  readonly toolChoice?: 'none' | undefined
  /** Passed into the request body as they are; they win over everything above. */
  readonly providerOptions?: JsonObject | undefined
  /** False asks for one JSON answer instead of a stream. */
  readonly streaming: boolean
}

/** Tokens of one attempt, cached input counted apart from `input`. Null = not reported, never 0 by guess. */
export interface TokenUsage {
  readonly input: number | null
  readonly output: number | null
  readonly cacheRead: number | null
  readonly cacheWrite: number | null
  readonly thinking: number | null
}

/** One tool call of an answer. */
export interface AnswerToolCall {
  /** The id that the provider sent, or null if it sent none. */
  readonly providerCallId: string | null
  readonly name: string
  /** The exact text of the arguments, fragments joined. */
  readonly argumentsText: string
  /** What the text means, or null when it is not one JSON object. */
  readonly arguments: JsonObject | null
  readonly thoughtSignature: string | null
}

/** One whole answer of a model. */
export interface Answer {
  /** All text parts joined, `''` if there were none. */
  readonly text: string
  readonly thinking: string | null
  readonly thinkingSignature: string | null
  readonly rawReasoning: Json | null
  readonly citations: Json[] | null
  readonly toolCalls: readonly AnswerToolCall[]
  /** The provider's own word. */
  readonly finishReason: string | null
  readonly usage: TokenUsage | null
  /** The model that answered, as the provider names it. */
  readonly model: string | null
  readonly responseId: string | null
}

/** What can be seen of an answer while it is being made. */
export type AnswerProgress =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string }
  | { readonly type: 'usage'; readonly usage: TokenUsage }

export interface AttemptOptions {
  /** Aborting ends the attempt at once with the signal's reason; it is thrown as it is. */
  readonly signal: AbortSignal
  /** Called in order; an error that it throws ends the attempt and comes out unchanged. */
  readonly onProgress: (progress: AnswerProgress) => void | Promise<void>
  /** Limit on the whole attempt, in ms. */
  readonly timeoutMs: number
  /** Limit on silence within a stream, in ms. */
  readonly idleMs: number
  readonly headers?: Readonly<Record<string, string>> | undefined
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
}

/** USD per million tokens. A bucket without a price makes the cost of an attempt that used it unknown. */
export interface Prices {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
}
