import { ConnectionError, type ProviderError, RequestTimeoutError, StreamCutError, StreamIdleError } from '../errors.ts'

/** How far an attempt had come when its connection failed. */
export type AttemptStage = 'request' | 'stream' | 'json'

const NO_CONNECTION = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
])
const TLS =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA)/

/**
 * Turns what `fetch` or a response's body threw into a {@link ProviderError}; all of them may pass when tried again.
 * `reachedProvider` is false where no connection was made: refused, no such host, no route, TLS refused.
 */
export function transportError(error: unknown, stage: AttemptStage): ProviderError {
  const failures = [...causes(error)]
  const code = failures.find((failure) => failure.code !== undefined)?.code
  const details = { cause: error, retryable: true }
  const why = code ?? failures.at(-1)?.message ?? String(error)
  if (stage === 'request' && failures.some(neverConnected)) {
    return new ConnectionError(
      `No connection to the provider could be made (${why}). Check the base URL and the network.`,
      {
        ...details,
        reachedProvider: false,
      },
    )
  }
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new RequestTimeoutError('The provider did not begin to answer in time.', details)
  }
  if (code === 'UND_ERR_BODY_TIMEOUT')
    return new StreamIdleError('The provider fell silent within its answer.', details)
  if (stage === 'stream') {
    return new StreamCutError(`The connection broke within the stream (${why}); nothing of it is kept.`, details)
  }
  return new ConnectionError(`The connection to the provider broke before the answer was there (${why}).`, details)
}

interface Failure {
  readonly code: string | undefined
  readonly syscall: string | undefined
  readonly message: string
}

function neverConnected({ code, syscall }: Failure): boolean {
  if (code === undefined) return false
  return NO_CONNECTION.has(code) || TLS.test(code) || (code === 'ETIMEDOUT' && syscall === 'connect')
}

/** The error and everything below it: causes, and the tries of a connection to several addresses. */
function* causes(error: unknown, depth = 0): Generator<Failure> {
  if (!(error instanceof Error) || depth > 5) return
  const { code, syscall } = error as NodeJS.ErrnoException
  yield { code: typeof code === 'string' ? code : undefined, syscall, message: error.message }
  yield* causes(error.cause, depth + 1)
  if (error instanceof AggregateError) for (const inner of error.errors) yield* causes(inner, depth + 1)
}
