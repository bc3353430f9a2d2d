import type { Json, JsonObject } from '../../models/rows.ts'
import { isNestedTooDeep } from './nesting.ts'

/**
 * What the argument text of a tool call means: blank text and `null` are `{}`, one JSON object is itself, and one object
 * inside a Markdown code fence is that object.
 * @returns null for everything else: arrays, bare values, two objects, text that was cut, what is nested too deep to be stored.
 * Such a call must not run.
 */
export function parseArguments(text: string): JsonObject | null {
  const inner = withoutFence(text.trim())
  if (inner === '' || inner === 'null') return {}
  const value = parseJson(inner)
  return isJsonObject(value) && !isNestedTooDeep(value) ? value : null
}

/** By hand, since a pattern for it takes for ever over a long run of blanks. */
function withoutFence(text: string): string {
  const isFenced = text.length >= 6 && text.startsWith('```') && text.endsWith('```')
  return isFenced
    ? text
        .slice(3, -3)
        .replace(/^[\w-]*/, '')
        .trim()
    : text
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
