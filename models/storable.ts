import { ArgumentError } from '../src/errors.ts'
import { isNestedDeeperThan, STORED_NESTING } from './nesting.ts'
import type { Json } from './rows.ts'

const HALF = /\p{Surrogate}/u
/** How JSON writes half of a character; a text that says so itself has two backslashes there. */
const HALF_AS_JSON = /\\u[dD][89a-fA-F]/

/**
 * Why a text, or a value of JSON, is one that some database refuses or changes: what is wrong with it, to follow its name; null
 * where nothing is. (E108, E109)
 */
export function whyUnstorable(value: unknown): string | null {
  if (isNestedDeeperThan(STORED_NESTING, value)) return `is nested more than ${STORED_NESTING} levels`
  return hasHalf(value)
    ? 'has half of a character in it (a surrogate without its other half), which databases refuse: toWellFormed() mends a text'
    : null
}

/**
 * A value as the text of a JSON column.
 * @param name what errors call it.
 * @throws {ArgumentError} for a value that not every database stores.
 */
export function storableJson(name: string, value: Json): string {
  if (isNestedDeeperThan(STORED_NESTING, value)) throw unstorable(name, whyUnstorable(value))
  const json = jsonOf(value)
  if (json === undefined) throw unstorable(name, 'is no JSON')
  if (HALF_AS_JSON.test(json) && hasHalf(value)) throw unstorable(name, whyUnstorable(value))
  return json
}

/**
 * What is bound to a statement must come back as it is: a driver would write U+FFFD for half of a character, and say nothing.
 * @throws {ArgumentError} that names the value.
 */
export function requireStorable(bind: Readonly<Record<string, string | number | null>>): void {
  for (const [name, value] of Object.entries(bind)) {
    if (typeof value === 'string' && HALF.test(value)) throw unstorable(name.replace(/\d+$/, ''), whyUnstorable(value))
  }
}

function jsonOf(value: Json): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    // A bigint, or a toJSON() that throws.
    return undefined
  }
}

function unstorable(name: string, why: string | null): ArgumentError {
  return new ArgumentError(`This can't be stored: ${name} ${why}. No row was changed.`)
}

function hasHalf(value: unknown): boolean {
  if (typeof value === 'string') return HALF.test(value)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, inner]) => HALF.test(key) || hasHalf(inner))
}
