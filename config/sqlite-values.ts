import { ArgumentError } from '../src/errors.ts'

/*
 * The native driver ends a text that it reads at the first NUL character, and the engine ends a statement there. So NUL
 * travels as a pair that begins with U+FDD0, a code point that Unicode keeps free for private use inside programs; a
 * U+FDD0 of the application's own travels as a pair too, which makes the mapping exact in both directions.
 */
const MARK = '\uFDD0'
const NUL_PAIR = `${MARK}0`
const MARK_PAIR = `${MARK}1`

/** Text in the form in which SQLite can hold it; equal to the text itself unless it has a NUL or U+FDD0. */
export function encodeText(text: string): string {
  if (!text.includes('\0') && !text.includes(MARK)) return text
  return text.replaceAll(MARK, MARK_PAIR).replaceAll('\0', NUL_PAIR)
}

/** The inverse of {@link encodeText}. */
export function decodeText(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replaceAll(NUL_PAIR, '\0').replaceAll(MARK_PAIR, MARK)
}

/** What the native driver takes. Anything else, even a boolean, may end the whole process, so nothing else gets there. */
export type NativeValue = null | number | bigint | string | Uint8Array

/**
 * A value as the driver takes it: booleans as 0 and 1, whole numbers as integers (the driver would make them floats), dates as the UTC text that
 * Sequelize writes, `undefined` as null. Throws a TypeError for what SQLite can't hold.
 */
export function encodeValue(value: unknown): NativeValue {
  switch (typeof value) {
    case 'string':
      return encodeText(value)
    case 'number':
      return Number.isSafeInteger(value) ? BigInt(value) : value
    case 'bigint':
      return value
    case 'boolean':
      return value ? 1n : 0n
    case 'undefined':
      return null
    case 'object':
      if (value === null || value instanceof Uint8Array) return value
      if (value instanceof Date) return dateText(value)
      if (value instanceof ArrayBuffer) return new Uint8Array(value)
  }
  throw new ArgumentError(`SQLite cannot store a ${value?.constructor?.name ?? typeof value}: convert it to text first`)
}

function dateText(date: Date): string {
  return date.toISOString().replace('T', ' ').replace('Z', ' +00:00')
}

/** Parameters as the driver takes them: a list as a list, names without the sign that they begin with in SQL. */
export function encodeParameters(parameters: unknown): NativeValue[] | Record<string, NativeValue> {
  if (parameters === null || parameters === undefined) return []
  if (Array.isArray(parameters)) return parameters.map(encodeValue)
  if (typeof parameters !== 'object') return [encodeValue(parameters)]
  const named: Record<string, NativeValue> = {}
  for (const [key, value] of Object.entries(parameters)) named[key.replace(/^[$:@]/, '')] = encodeValue(value)
  return named
}

/** A value as the driver gave it, for Sequelize: integers beyond 2^53 as strings (as MySQL gives them), blobs as Buffers. */
export function decodeValue(value: unknown): unknown {
  if (typeof value === 'string') return decodeText(value)
  if (typeof value === 'bigint') {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : value.toString()
  }
  if (value instanceof ArrayBuffer) return Buffer.from(value)
  if (value instanceof Uint8Array && !Buffer.isBuffer(value)) return Buffer.from(value)
  return value
}

/** A row with each of its values decoded in place. */
export function decodeRow(row: Record<string, unknown>): Record<string, unknown> {
  for (const key of Object.keys(row)) row[key] = decodeValue(row[key])
  return row
}
