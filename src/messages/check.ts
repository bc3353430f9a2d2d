import { InvalidMessageError } from '../errors.ts'

/** What kinds of messages there are. */
export const messageTypes = ['text', 'tool_call', 'tool_result'] as const satisfies readonly MessageType[]
/** Whose message it is. `tool_result` is the role of results; providers' words are mapped before. */
export const messageRoles = ['system', 'user', 'assistant', 'tool_result'] as const satisfies readonly MessageRole[]
/** Why a message ends. */
export const stopReasons = ['tool', 'stop'] as const satisfies readonly MessageStop[]

/** One of the kinds of messages. */
export type MessageType = 'text' | 'tool_call' | 'tool_result'
/** One of the roles of messages. */
export type MessageRole = 'system' | 'user' | 'assistant' | 'tool_result'
/** One of the reasons why a message ends. */
export type MessageStop = 'tool' | 'stop'

/** @throws {InvalidMessageError} that names the value and the legal ones. */
export function oneOf<Word extends string>(legal: readonly Word[], value: unknown, what: string): Word {
  const found = legal.find((word) => word === value)
  if (found !== undefined) return found
  const given = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : shown(value)
  throw new InvalidMessageError(`${given} is no ${what}: it must be one of ${legal.join(', ')}.`)
}

/** @throws {InvalidMessageError} */
export function stopReason(value: unknown): MessageStop | null {
  return value === null || value === undefined ? null : oneOf(stopReasons, value, 'stop reason of a message')
}

/** An object as a literal or as JSON makes it: no class of anybody's, no list. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/**
 * What a constructor was given, all of it known and all that is needed there.
 * @throws {InvalidMessageError}
 */
export function requireKeys(given: unknown, needed: readonly string[], others: readonly string[], of: string): void {
  if (!isPlainObject(given)) throw new InvalidMessageError(`${of} takes an object, not ${shown(given)}.`)
  const missing = needed.filter((key) => given[key] === undefined)
  if (missing.length > 0) throw new InvalidMessageError(`${of} needs ${missing.join(', ')}.`)
  const unknown = Object.keys(given).filter((key) => ![...needed, ...others].includes(key))
  if (unknown.length > 0) throw new InvalidMessageError(`${of} takes no ${unknown.join(', ')}.`)
}

/** A value in an error: by its kind where it could be what somebody said. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text'
  if (Array.isArray(value)) return 'a list'
  if (value === null || value === undefined || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  return isPlainObject(value) ? 'an object' : `a ${value.constructor?.name ?? 'foreign object'}`
}
