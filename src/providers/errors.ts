import {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  MalformedAnswerError,
  ModelNotFoundError,
  OverloadedError,
  PermissionError,
  type ProviderError,
  type ProviderErrorDetails,
  RateLimitError,
  RequestTimeoutError,
  RequestTooLargeError,
  ServerError,
  UnprocessableError,
} from '../errors.ts'
import { type ProviderComplaint, readComplaint } from './error-body.ts'
import { readRetryAfter } from './retry.ts'

export { errorInAnswer, maskKeys } from './error-body.ts'

type ProviderErrorClass = new (message: string, details: ProviderErrorDetails) => ProviderError

/** What is known around an error that a provider reported. */
export interface ErrorContext {
  readonly requestId?: string
  /** Strings that may not stand in a message, such as the API key that was sent. */
  readonly secrets?: readonly string[]
}

/** A response that is not a success. */
export interface FailedResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  /** The body as text, `''` if there was none. */
  readonly body: string
}

/** The hints of failures that the same request meets again however long it waits; they are never retried. */
export const HOPELESS = {
  contextLength:
    'The request is longer than the model takes: compact or shorten the conversation, or use another model.',
  largerThanRateLimit:
    'The request alone is larger than what the rate limit allows in a minute: shorten it, or raise the limit.',
} as const

const CLASSES: ReadonlyMap<number, ProviderErrorClass> = new Map<number, ProviderErrorClass>([
  [400, BadRequestError],
  [401, AuthenticationError],
  [402, PermissionError],
  [403, PermissionError],
  [404, ModelNotFoundError],
  [408, RequestTimeoutError],
  [409, ConflictError],
  [413, RequestTooLargeError],
  [422, UnprocessableError],
  [429, RateLimitError],
  [529, OverloadedError],
])

/** The status that a provider would have answered with, had its answer not begun already. */
const STATUS_OF_TYPE: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['context_length_exceeded', 400],
  ['content_filter', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['permission_denied', 403],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['timeout_error', 408],
  ['timeout', 408],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['rate_limited', 429],
  ['insufficient_quota', 429],
  ['too_many_requests', 429],
  ['tokens', 429],
  ['requests', 429],
  ['overloaded_error', 529],
  ['overloaded', 529],
  ['api_error', 500],
  ['server_error', 500],
  ['internal_server_error', 500],
])

const TOO_LONG =
  /context[_ ](?:length|window)[_ ]exceeded|maximum (?:context|prompt) length|exceed\w*(?: [\w']+){0,3} context|(?:prompt|input) is too long|too_many_prompt_tokens|input tokens? exceeds?|length limit exceeded|reduce the length of the messages/i
const LARGER_THAN_LIMIT = /request too large for|request is too large for|\bLimit \d+, Requested \d+/i

const ADVICE: ReadonlyMap<number, string> = new Map([
  [401, 'Check the API key.'],
  [402, 'Check the credit of the account.'],
  [403, 'Check what the API key is allowed to do.'],
  [404, 'Check the name of the model and the base URL.'],
  [413, HOPELESS.contextLength],
])

/**
 * Turns a response that is not a success into the error of its status, with the provider's own words in the message.
 * @param now The time that a `retry-after` date is compared with, in ms since the epoch.
 */
export function httpError(response: FailedResponse, context: ErrorContext = {}, now = Date.now()): ProviderError {
  const { status, headers } = response
  const complaint = readComplaint(response.body, context.secrets)
  const hint = hintFor(status, complaint)
  const retryAfterMs = readRetryAfter(headers, now)
  const requestId = requestIdOf(headers)
  return new (classOf(status))(compose(`The provider answered with status ${status}`, complaint, hint), {
    status,
    retryable: !isHopeless(hint) && isRetryable(status, headers.get('x-should-retry')),
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...detailsOf(complaint, hint),
  })
}

/**
 * Turns an error that came inside a response with status 200 into the error of its type, else of its numeric code, else
 * a {@link ServerError}. It carries no status: the HTTP status said success.
 */
export function inStreamError(body: unknown, context: ErrorContext = {}): ProviderError {
  const complaint = readComplaint(body, context.secrets)
  const status = impliedStatus(complaint)
  const hint = hintFor(status, complaint)
  return new (classOf(status))(compose('The provider reported an error in its answer', complaint, hint), {
    retryable: !isHopeless(hint) && isRetryable(status, null),
    ...(context.requestId === undefined ? {} : { requestId: context.requestId }),
    ...detailsOf(complaint, hint),
  })
}

/** The request id of a response, undefined if it has none. */
export function requestIdOf(headers: FailedResponse['headers']): string | undefined {
  return headers.get('x-request-id') ?? headers.get('request-id') ?? undefined
}

function classOf(status: number): ProviderErrorClass {
  if (status < 400) return MalformedAnswerError
  return CLASSES.get(status) ?? (status >= 500 ? ServerError : BadRequestError)
}

function isRetryable(status: number, shouldRetry: string | null): boolean {
  if (shouldRetry === 'true' || shouldRetry === 'false') return shouldRetry === 'true'
  return status === 408 || status === 409 || status === 429 || status >= 500
}

function impliedStatus({ type, code }: ProviderComplaint): number {
  const named = STATUS_OF_TYPE.get(type?.toLowerCase() ?? '') ?? STATUS_OF_TYPE.get(code?.toLowerCase() ?? '')
  const numeric = Number(code)
  return named ?? (Number.isInteger(numeric) && numeric >= 400 && numeric <= 599 ? numeric : 500)
}

function hintFor(status: number, { message, type, code }: ProviderComplaint): string | undefined {
  const said = `${type ?? ''} ${code ?? ''} ${message}`
  if (status === 429) return LARGER_THAN_LIMIT.test(said) ? HOPELESS.largerThanRateLimit : undefined
  if (TOO_LONG.test(said)) return HOPELESS.contextLength
  return ADVICE.get(status)
}

function isHopeless(hint: string | undefined): boolean {
  return hint === HOPELESS.contextLength || hint === HOPELESS.largerThanRateLimit
}

function detailsOf({ type, code }: ProviderComplaint, hint: string | undefined): ProviderErrorDetails {
  return {
    ...(type === undefined ? {} : { type }),
    ...(code === undefined ? {} : { providerCode: code }),
    ...(hint === undefined ? {} : { hint }),
  }
}

function compose(lead: string, { message, code, type }: ProviderComplaint, hint: string | undefined): string {
  const said = message || code || type
  const sentence = said ? `${lead}: ${said}` : `${lead}.`
  return hint === undefined ? sentence : `${sentence} ${hint}`
}
