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

/** 400: the provider can't read the request. Other statuses from 400 to 499 that have no class of their own are this
 * too.
 * @remarks Not tried again. Read the message: a wrong parameter or message of the application's, or, with a `hint`,
 * a conversation that is too long: `chat.compact()`. */
export class BadRequestError extends ProviderError {
  readonly code = 'provider.bad_request'
}
/** 401: the API key was refused.
 * @remarks Not tried again. Set the right OPENAI_API_KEY, then `threadmill retry --all-failed --code
 * provider.authentication`. */
export class AuthenticationError extends ProviderError {
  readonly code = 'provider.authentication'
}
/** 402 or 403: the account has no credit, or the key may not do this.
 * @remarks Not tried again. Check the account, the project and the rights of the key. */
export class PermissionError extends ProviderError {
  readonly code = 'provider.permission'
}
/** 404: no such model or endpoint.
 * @remarks Not tried again. Check the model's name and OPENAI_BASE_URL. */
export class ModelNotFoundError extends ProviderError {
  readonly code = 'provider.not_found'
}
/** 408, or an attempt that took longer than the agent's `timeoutMs`.
 * @remarks Tried again by itself. If it lasts: raise `timeoutMs`, or ask for shorter answers. */
export class RequestTimeoutError extends ProviderError {
  readonly code = 'provider.timeout'
}
/** 409: the provider could not do this beside something else.
 * @remarks Tried again by itself. */
export class ConflictError extends ProviderError {
  readonly code = 'provider.conflict'
}
/** 413: the request is larger than the provider takes.
 * @remarks Not tried again. Shorten the conversation: `chat.compact()`, or an agent with `compaction`. */
export class RequestTooLargeError extends ProviderError {
  readonly code = 'provider.request_too_large'
}
/** 422: the provider understood the request and refused it.
 * @remarks Not tried again. Read the message: a schema or a parameter that this model does not take. */
export class UnprocessableError extends ProviderError {
  readonly code = 'provider.unprocessable'
}
/** 429: too many requests or tokens, or the account's quota is spent.
 * @remarks Tried again by itself, after the wait that the provider asks for; not when the request alone is larger
 * than the limit (`hint`). If it lasts: fewer `--complete`, or a higher limit. */
export class RateLimitError extends ProviderError {
  readonly code = 'provider.rate_limit'
}
/** 529, or a server that says that it is overloaded.
 * @remarks Tried again by itself. */
export class OverloadedError extends ProviderError {
  readonly code = 'provider.overloaded'
}
/** Any other 5xx, or a server error inside a stream.
 * @remarks Tried again by itself. If it lasts, give the provider `requestId`. */
export class ServerError extends ProviderError {
  readonly code = 'provider.server_error'
}
/** The connection could not be made, or broke before an answer began.
 * @remarks Tried again by itself. If it lasts: check OPENAI_BASE_URL, DNS, proxies and certificates. */
export class ConnectionError extends ProviderError {
  readonly code = 'provider.connection'
}
/** The stream ended without a finish reason and without its terminator; nothing of it is kept. (R31)
 * @remarks Tried again by itself. If it lasts: a proxy on the way closes streams. */
export class StreamCutError extends ProviderError {
  readonly code = 'provider.stream_cut'
}
/** The stream went silent for longer than the agent's `idleMs`.
 * @remarks Tried again by itself. If it lasts: raise `idleMs` for models that think long without a word. */
export class StreamIdleError extends ProviderError {
  readonly code = 'provider.stream_idle'
}
/** The answer could not be read: not JSON, or not the shape that the protocol promises.
 * @remarks Tried again by itself, but for a web page in place of an answer: check OPENAI_BASE_URL. */
export class MalformedAnswerError extends ProviderError {
  readonly code = 'provider.malformed_answer'
}
/** The answer, or what was sent around it, is larger than the agent's `maxAnswerBytes` allows; it was cut off, and nothing of it
 * is kept. (E100)
 * @remarks Not tried again. Ask for less, set `maxOutputTokens`, or raise `maxAnswerBytes`; if the model repeats itself without
 * end, another model. */
export class AnswerTooLargeError extends ProviderError {
  readonly code = 'provider.answer_too_large'
}
/** The model answered with neither text nor tool calls, twice in a row.
 * @remarks Not tried again. Change the question or the model, then enqueue the chat. */
export class EmptyAnswerError extends ProviderError {
  readonly code = 'provider.empty_answer'
}

/** The provider has no way to do this at all.
 * @remarks Not tried again. Do without, or ask a provider that can. */
export class UnsupportedByProviderError extends ProviderError {
  readonly code = 'provider.unsupported'
}

/** A model's summary can't stand for what it was to replace: it is empty, cut off, no shorter, or asks for tools.
 * @remarks Not tried again. Give other `instructions` or another `model` for the summary. */
export class SummaryRefusedError extends ProviderError {
  readonly code = 'provider.summary_refused'
}

// ---------------------------------------------------------------------------------------------------------------------
// The caller's side

/** The caller asked for something that can't be right; no row was changed. */
export abstract class UsageError extends ThreadmillError {}

/** A value passed to a method is not one that it takes.
 * @remarks Correct the call: the message names the value and what it must be. */
export class ArgumentError extends UsageError {
  readonly code: string = 'argument'
}
/** The process is not set up for what was asked: an option, an agent, a tool, a key is missing or wrong.
 * @remarks Set what the message names, and start again. */
export class ConfigurationError extends UsageError {
  readonly code: string = 'configuration'
}
/** Whoever was asked by a tool declined to answer, or did not in time. Thrown into the tool by `ask()`.
 * @remarks Not caught by the tool, it is an error of the tool that the model is told of. */
export class InputDeclinedError extends ArgumentError {
  override readonly code = 'argument.input_declined'
}
/** A call would run with other arguments than those that were shown when it was decided about.
 * @remarks Show the call again, with its arguments as they are now, and decide about those. */
export class ArgumentsChangedError extends ArgumentError {
  override readonly code = 'argument.arguments_changed'
}
/** A file can't be attached, or read again: it is not there, too large, or on a host that is not allowed.
 * @remarks The message says which, and nothing was stored. Allow the host, raise the limit, or attach the bytes. */
export class AttachmentError extends ArgumentError {
  override readonly code: string = 'argument.attachment'
}
/** The chat holds a file that its model can't take, and nobody converts it; nothing was sent.
 * @remarks Not tried again. Give the agent a `convertUnsupportedAttachments`, or choose a model that takes it. */
export class UnsupportedAttachmentError extends AttachmentError {
  override readonly code = 'argument.unsupported_attachment'
}
/** A stored tool result belongs to a call that is not there, so it can't be read as a value.
 * @remarks Only a transcript from elsewhere can hold one. Read `chat.messages()`, or delete the row. */
export class OrphanedResultError extends ArgumentError {
  override readonly code = 'argument.orphaned_result'
}
/** A message value, or a list of them, that can't be: an unknown role, a tool that is none, a result without its call.
 * @remarks The message names the part; nothing was stored. */
export class InvalidMessageError extends ArgumentError {
  override readonly code = 'argument.message'
}
/** Nobody knows the model: no chat has named it, and the catalogue does not.
 * @remarks Check its name, or leave `assumeModelExists: false` out. */
export class UnknownModelError extends ArgumentError {
  override readonly code = 'argument.unknown_model'
}
/** The tool that a chat must call is none that it offers.
 * @remarks Name one of its tools, or offer the tool. */
export class InvalidToolChoiceError extends ArgumentError {
  override readonly code = 'argument.tool_choice'
}
/** The database has no tables, not all of them, or lacks columns that `connect({ extend })` names.
 * @remarks Run `threadmill migrate`, or the application's own migration, then start the process again. */
export class NotMigratedError extends ConfigurationError {
  override readonly code = 'configuration.not_migrated'
}
/** Redis or the database could not be reached.
 * @remarks Check address, network and credentials; start the process again once they answer. */
export class UnreachableError extends ConfigurationError {
  override readonly code = 'configuration.unreachable'
}
/** This process lacks the agent or a tool that the chat needs; a process that has it can go on. (R26)
 * @remarks Give the agent or tool to `connect({ agents, tools })`, or start a worker that has it: the chat then goes
 * on by itself. */
export class MissingAgentError extends ConfigurationError {
  override readonly code = 'configuration.missing_agent'
}
/** The row belongs to Threadmill: read and query it, but don't write it.
 * @remarks Use `chat.approve()` and `chat.deny()`. */
export class ReadOnlyModelError extends UsageError {
  readonly code = 'read_only_model'
}
/** Thrown by a tool to tell the model, not the application, what went wrong: its text becomes the call's result.
 * @remarks Nothing: the run goes on. Only a tool throws it. */
export class ToolError extends UsageError {
  readonly code = 'tool'
}

// ---------------------------------------------------------------------------------------------------------------------
// The chat's state

/** The act is legal, but not in the state that the chat is in now. */
export abstract class StateError extends ThreadmillError {}

/** No chat has this id (any more).
 * @remarks Check the id, the database and `tablePrefix`. After a deletion there is nothing to do. */
export class ChatNotFoundError extends StateError {
  readonly code = 'chat.not_found'
}
/** Another process runs the chat, and this act would have to write into its turn. (R20)
 * @remarks Try again after its turn, or use `queue()` or `askLater()`, which wait. */
export class ChatRunningError extends StateError {
  readonly code = 'chat.running'
  override readonly retryable = true
}
/** The chat has not failed, so there is nothing to try again.
 * @remarks Nothing, or `threadmill retry --force`. */
export class ChatNotFailedError extends StateError {
  readonly code = 'chat.not_failed'
}
/** The chat's last answer asked for tools that have no result yet.
 * @remarks Run the turn on (`complete()`), decide about `pendingApprovals()`, or `queue()` the message. */
export class PendingToolCallsError extends StateError {
  readonly code = 'chat.pending_tool_calls'
}
/** Somebody was quicker: the tool call was decided, begun or answered before, and stays as it is. (S120)
 * @remarks Tell whoever decided. Without `ifUndecided` the latest decision before the start counts. */
export class ToolCallDecidedError extends StateError {
  readonly code = 'tool_call.decided'
}
/** The tool call is being executed right now, so it can't be denied any more. (S23)
 * @remarks Nothing: its result goes to the model. `cancel()` stops the turn. */
export class ToolCallRunningError extends StateError {
  readonly code = 'tool_call.running'
}
/** A tool attached a file when its execution was over: it had returned, taken too long, or lost its chat. Nothing is attached. (E81)
 * @remarks Await `context.attach()` before the tool returns, and hand its `signal` on. */
export class ToolCallEndedError extends StateError {
  readonly code = 'tool_call.ended'
}
/** This process no longer holds the chat: whoever holds it now goes on, and nothing more is written here. (R15)
 * @remarks Nothing for the chat. If it is frequent: blocked event loops, frozen machines, or a database that does
 * not answer. */
export class ClaimLostError extends StateError {
  readonly code = 'chat.claim_lost'
}
/** Rows of the chat hold what can't be read (a restored backup, a script), so that its turn would not be what it was meant to
 * be; nobody runs it. (E104)
 * @remarks Not tried again. The message names the columns: put them right, set the settings anew, or deny the call, then
 * `threadmill retry ID`. */
export class DamagedChatError extends StateError {
  readonly code = 'chat.damaged'
}
/** The turn was cancelled by `cancel()`.
 * @remarks Nothing. An explicit `complete()` or `enqueue()` asks an unanswered turn again. */
export class CancelledError extends StateError {
  readonly code = 'chat.cancelled'
}
/** The turn used up its tool rounds; every call has its result. (S80)
 * @remarks `complete()` or `enqueue()` goes on with as many rounds again; raise the agent's `rounds` if turns need
 * more. */
export class ToolRoundLimitError extends StateError {
  readonly code = 'chat.tool_round_limit'
}
/** Several processes died over the chat, the last of them while they ran nothing else: nobody runs it until somebody tries again. (E123)
 * @remarks Find what kills them (memory, a tool that exits or crashes), then `threadmill retry ID`: it runs alone until it
 * commits a move. */
export class QuarantinedError extends StateError {
  readonly code = 'chat.quarantined'
}
/** The turn was begun more often than the agent's `attempts` allow, and failed each time in a way that may pass. (R25)
 * @remarks Find what fails it, then `threadmill retry ID`. */
export class AttemptsExhaustedError extends StateError {
  readonly code = 'chat.attempts_exhausted'
}
/** What the next request has to say is more than fits, and no summary could make it fit.
 * @remarks Send a smaller message, take a model with a larger context, or shorten what tools return. */
export class ContextTooLargeError extends StateError {
  readonly code = 'chat.context_too_large'
}
/** Nothing can be summarised: the chat has no messages that a summary could stand for.
 * @remarks Nothing. */
export class NothingToCompactError extends StateError {
  readonly code = 'chat.nothing_to_compact'
}
/** A run was stopped between two moves because its process is shutting down. (R27)
 * @remarks Nothing: another worker goes on. */
export class ShutdownError extends StateError {
  readonly code = 'shutdown'
  override readonly retryable = true
  /** Whether it ends since something threw that nobody caught: a death of the chats that it could not finish. (E126) */
  readonly failing: boolean

  constructor(message: string, details: ErrorDetails & { readonly failing?: boolean } = {}) {
    super(message, details)
    this.failing = details.failing ?? false
  }
}
