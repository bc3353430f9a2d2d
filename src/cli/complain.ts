import { UnreachableError, UsageError } from '../errors.ts'
import { exitCodes } from './exit-codes.ts'

/** An error as it is shown: no stack, no secret. */
export interface Complaint {
  readonly code: string
  readonly message: string
}

/** The code is `error` for what is not one of Threadmill's, nor of the system's. */
export function complaintOf(error: unknown): Complaint {
  const message = error instanceof Error ? error.message : String(error)
  return { code: codeOf(error), message: withoutSecrets(message === '' ? 'Something failed without a word.' : message) }
}

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'error'
}

/** The stacks of an error and of what caused it. */
export function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const stack = error.stack ?? `${error.name}: ${error.message}`
  return withoutSecrets(error.cause === undefined ? stack : `${stack}\nCaused by: ${stackOf(error.cause)}`)
}

/** Where Redis or the database does not answer, the same command can succeed later; other mistakes have to be put right. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UnreachableError) return exitCodes.failed
  return error instanceof UsageError ? exitCodes.usage : exitCodes.failed
}

/** Hides user names and passwords of URLs, wherever in a text they stand. */
export function withoutSecrets(text: string): string {
  return text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1***@')
}
