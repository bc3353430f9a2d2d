import {
  MissingAgentError,
  NotMigratedError,
  PendingToolCallsError,
  ProviderError,
  ShutdownError,
  StateError,
  ThreadmillError,
  UnreachableError,
} from '../errors.ts'

/** What may be told of an error without telling what was said in a chat. */
export interface ErrorFacts {
  /** The class, such as `RateLimitError`. */
  readonly name: string
  /** Ours, such as `provider.rate_limit`; of other errors their own `code` where it is a word, else `error`. */
  readonly code: string
  /** Whether the same act can succeed later without anyone changing anything. */
  readonly retryable: boolean
  /** The HTTP status of a provider's answer. */
  readonly status: number | null
  /** The provider's name for the request, for its support. */
  readonly requestId: string | null
  /** Null where the text may quote a chat: that of a provider, of a tool, of a statement. */
  readonly message: string | null
}

const CODE = /^[\w.-]{1,64}$/

/**
 * The facts of an error. A provider's message may echo the request, a tool's its arguments, a statement's its values: of
 * those only `content`, when it is given, decides whether the text is passed on.
 */
export function errorFacts(error: unknown, content: (text: string) => string | null = () => null): ErrorFacts {
  const isError = error instanceof Error
  const provider = error instanceof ProviderError ? error : null
  return {
    name: isError ? word(error.name) : typeof error,
    code: errorCode(error),
    retryable: error instanceof ThreadmillError && error.retryable,
    status: provider?.status ?? null,
    requestId: provider?.requestId ?? null,
    message: isError ? (isOurs(error) ? error.message : content(error.message)) : null,
  }
}

/** A word that groups errors: the error's code, else the one that it wraps. */
export function errorCode(error: unknown): string {
  for (let depth = 0, inner = error; depth < 4 && typeof inner === 'object' && inner !== null; depth++) {
    const { code, parent, cause } = inner as { code?: unknown; parent?: unknown; cause?: unknown }
    if (typeof code === 'string' && CODE.test(code)) return code
    inner = parent ?? cause
  }
  return 'error'
}

/** Classes whose texts are written here and quote ids, agents and addresses only. */
function isOurs(error: Error): boolean {
  if (error instanceof StateError) return !(error instanceof PendingToolCallsError)
  return [MissingAgentError, NotMigratedError, UnreachableError, ShutdownError].some((known) => error instanceof known)
}

/** A name is a word; whatever else stands there may be a text. */
function word(name: string): string {
  return CODE.test(name) ? name : 'Error'
}
