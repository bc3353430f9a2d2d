/** What every error of Threadmill can be given beside its message. */
export interface ErrorDetails {
  /** What led to it, as it was caught. */
  readonly cause?: unknown
  /** The chat that the error is about, where there is one. */
  readonly chatId?: string
}

/**
 * The root of every error that Threadmill throws. Below it stand three families that share nothing:
 * {@link ProviderError} (the model's side failed), {@link UsageError} (the caller made a mistake) and
 * {@link StateError} (the chat is not in a state that allows this now).
 */
export abstract class ThreadmillError extends Error {
  /** A stable identifier such as `provider.rate_limit`; it never changes between releases. */
  abstract readonly code: string
  /** Whether the same act can succeed later without anyone changing anything. */
  readonly retryable: boolean = false
  /** The chat that the error is about; undefined when it is about none. */
  readonly chatId: string | undefined

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = new.target.name
    this.chatId = details.chatId
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The model's side

/** What is known of a failed attempt at a model. */
export interface ProviderErrorDetails extends ErrorDetails {
  /** The HTTP status, if an answer came back at all. */
  readonly status?: number
  /** The provider's own error type and code, as sent. */
  readonly type?: string
  /** The provider's own error code, as sent. */
  readonly providerCode?: string
  /** The provider's id of the request, for its support. */
  readonly requestId?: string
  /** How long the provider asked us to wait, in ms. */
  readonly retryAfterMs?: number
  /** Whether the same request may pass later. Default false. */
  readonly retryable?: boolean
  /** Why trying the same request again can't help, or what to do. */
  readonly hint?: string
  /** False when the request certainly never reached the provider, so nothing can have been billed. */
  readonly reachedProvider?: boolean
}

/** An attempt at a model failed. Subclasses say how; `retryable` says whether the same request may pass later. */
export abstract class ProviderError extends ThreadmillError {
  override readonly retryable: boolean
  /** The HTTP status; undefined if no answer came back at all. */
  readonly status: number | undefined
  /** The provider's own error type, as sent; undefined where it sent none. */
  readonly type: string | undefined
  /** The provider's own error code, as sent; undefined where it sent none. */
  readonly providerCode: string | undefined
  /** The provider's id of the request, for its support; undefined where it sent none. */
  readonly requestId: string | undefined
  /** How long the provider asked us to wait, in ms; undefined where it did not. */
  readonly retryAfterMs: number | undefined
  /** Why trying again can't help, or what to do; undefined where there is nothing to say. */
  readonly hint: string | undefined
  /** False when the request certainly never reached the provider, so nothing can have been billed. */
  readonly reachedProvider: boolean

  constructor(message: string, details: ProviderErrorDetails = {}) {
    super(message, details)
    this.retryable = details.retryable ?? false
    this.status = details.status
    this.type = details.type
    this.providerCode = details.providerCode
    this.requestId = details.requestId
    this.retryAfterMs = details.retryAfterMs
    this.hint = details.hint
    this.reachedProvider = details.reachedProvider ?? true
  }
}

/** 400: the provider can't read the request. */
export class BadRequestError extends ProviderError {
  readonly code = 'provider.bad_request'
}
/** 401: the API key was refused. */
export class AuthenticationError extends ProviderError {
  readonly code = 'provider.authentication'
}
/** 403: the key may not do this. */
export class PermissionError extends ProviderError {
  readonly code = 'provider.permission'
}
/** 404: no such model or endpoint. */
export class ModelNotFoundError extends ProviderError {
  readonly code = 'provider.not_found'
}
/** 408, or our own limit on the whole attempt. */
export class RequestTimeoutError extends ProviderError {
  readonly code = 'provider.timeout'
}
/** 409. */
export class ConflictError extends ProviderError {
  readonly code = 'provider.conflict'
}
/** 413: the request is larger than the provider takes. */
export class RequestTooLargeError extends ProviderError {
  readonly code = 'provider.request_too_large'
}
/** 422. */
export class UnprocessableError extends ProviderError {
  readonly code = 'provider.unprocessable'
}
/** 429: too many requests or tokens, or the account's quota is spent. */
export class RateLimitError extends ProviderError {
  readonly code = 'provider.rate_limit'
}
/** 529, or a server that says that it is overloaded. */
export class OverloadedError extends ProviderError {
  readonly code = 'provider.overloaded'
}
/** Any other 5xx, or a server error inside a stream. */
export class ServerError extends ProviderError {
  readonly code = 'provider.server_error'
}
/** The connection could not be made, or broke before an answer began. */
export class ConnectionError extends ProviderError {
  readonly code = 'provider.connection'
}
/** The stream ended without a finish reason and without its terminator; nothing of it is kept. */
export class StreamCutError extends ProviderError {
  readonly code = 'provider.stream_cut'
}
/** The stream went silent for longer than the idle limit. */
export class StreamIdleError extends ProviderError {
  readonly code = 'provider.stream_idle'
}
/** The answer could not be read: not JSON, or not the shape that the protocol promises. */
export class MalformedAnswerError extends ProviderError {
  readonly code = 'provider.malformed_answer'
}
/** The model answered with neither text nor tool calls, twice in a row. */
export class EmptyAnswerError extends ProviderError {
  readonly code = 'provider.empty_answer'
}

/** A model's summary can't stand for what it was to replace: it is empty, cut off, no shorter, or asks for tools. */
export class SummaryRefusedError extends ProviderError {
  readonly code = 'provider.summary_refused'
}

// ---------------------------------------------------------------------------------------------------------------------
// The caller's side

/** The caller asked for something that can't be right; no row was changed. */
export abstract class UsageError extends ThreadmillError {}

/** A value passed to a method is not one that it takes. */
export class ArgumentError extends UsageError {
  readonly code: string = 'argument'
}
/** The process is not set up for what was asked: an option, an agent, a tool, a key is missing or wrong. */
export class ConfigurationError extends UsageError {
  readonly code: string = 'configuration'
}
/** The database has no tables, or not all of them: run the migrations. */
export class NotMigratedError extends ConfigurationError {
  override readonly code = 'configuration.not_migrated'
}
/** Redis or the database could not be reached. */
export class UnreachableError extends ConfigurationError {
  override readonly code = 'configuration.unreachable'
}
/** This process lacks the agent or a tool that the chat needs; a process that has it can go on. */
export class MissingAgentError extends ConfigurationError {
  override readonly code = 'configuration.missing_agent'
}
/** The row belongs to Threadmill: read and query it, but don't write it. */
export class ReadOnlyModelError extends UsageError {
  readonly code = 'read_only_model'
}
/** Thrown by a tool to tell the model, not the application, what went wrong: its text becomes the call's result. */
export class ToolError extends UsageError {
  readonly code = 'tool'
}

// ---------------------------------------------------------------------------------------------------------------------
// The chat's state

/** The act is legal, but not in the state that the chat is in now. */
export abstract class StateError extends ThreadmillError {}

/** No chat has this id (any more). */
export class ChatNotFoundError extends StateError {
  readonly code = 'chat.not_found'
}
/** Another process runs the chat, and this act would have to write into its turn. */
export class ChatRunningError extends StateError {
  readonly code = 'chat.running'
  override readonly retryable = true
}
/** The chat has not failed, so there is nothing to try again. */
export class ChatNotFailedError extends StateError {
  readonly code = 'chat.not_failed'
}
/** The chat's last answer asked for tools that have no result yet. */
export class PendingToolCallsError extends StateError {
  readonly code = 'chat.pending_tool_calls'
}
/** The tool call is being executed right now, so it can't be denied any more. */
export class ToolCallRunningError extends StateError {
  readonly code = 'tool_call.running'
}
/** This process no longer holds the chat: whoever holds it now goes on, and nothing more is written here. */
export class ClaimLostError extends StateError {
  readonly code = 'chat.claim_lost'
}
/** The turn was cancelled by `cancel()`. */
export class CancelledError extends StateError {
  readonly code = 'chat.cancelled'
}
/** The turn used up its tool rounds; every call has its result, and an explicit complete() goes on. */
export class ToolRoundLimitError extends StateError {
  readonly code = 'chat.tool_round_limit'
}
/** The turn was begun several times and each process died over it: nobody tries again by themselves. */
export class AttemptsExhaustedError extends StateError {
  readonly code = 'chat.attempts_exhausted'
}
/** What the next request has to say is more than fits, and no summary could make it fit. */
export class ContextTooLargeError extends StateError {
  readonly code = 'chat.context_too_large'
}
/** Nothing can be summarised: the chat has no messages that a summary could stand for. */
export class NothingToCompactError extends StateError {
  readonly code = 'chat.nothing_to_compact'
}
/** A run was stopped between two moves because its process is shutting down. */
export class ShutdownError extends StateError {
  readonly code = 'shutdown'
  override readonly retryable = true
}
