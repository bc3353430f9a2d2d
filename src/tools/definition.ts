import * as z from 'zod'
import { ArgumentError } from '../errors.ts'
import { pathText, type Segment } from './argument-path.ts'

/** The longest delay that a timer of Node keeps; a longer one would fire at once. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/** The longest wait that a row keeps, in ms: no database counts beyond the year 9999, nor Redis with the times of delayed jobs. */
export const LONGEST_WAIT_MS = 10 * 365 * 86_400_000

/** A wait that rows keep, however long this process lives. */
export const waitMs = z
  .int('must be a whole number of ms')
  .min(1, 'must be at least 1 ms')
  .max(LONGEST_WAIT_MS, 'must be ten years at most')

/**
 * Checks what a `define...` function was passed and returns it with defaults filled in.
 * @throws {ArgumentError} that starts with `what` and names every problem at once.
 */
export function checkDefinition<S extends z.ZodType>(schema: S, definition: unknown, what: string): z.output<S> {
  const checked = schema.safeParse(definition)
  if (checked.success) return checked.data
  throw new ArgumentError(`${what}: ${checked.error.issues.map((issue) => problem(issue, definition)).join('; ')}.`)
}

/** How errors call a definition: by its name, if it has one that can be shown. */
export function definitionLabel(kind: 'Tool' | 'Agent', definition: unknown): string {
  const name = isObject(definition) ? definition.name : undefined
  return typeof name === 'string' && name !== '' ? `${kind} ${JSON.stringify(name)}` : `${kind} without a name`
}

function problem(issue: z.core.$ZodIssue, definition: unknown): string {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${pathText([...segments(issue.path), key])} is not an option`).join('; ')
  }
  if (issue.path.length === 0) return issue.message
  const where = pathText(segments(issue.path))
  const top = issue.path[0]
  const missing = issue.path.length === 1 && isObject(definition) && definition[String(top)] === undefined
  return missing ? `${where} is missing` : `${where} ${issue.message}`
}

function segments(path: readonly PropertyKey[]): Segment[] {
  return path.map((key) => (typeof key === 'number' ? key : String(key)))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
