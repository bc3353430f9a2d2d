import type { Json, JsonObject } from '../../models/rows.ts'

const FENCED = /^```[\w-]*\s*([\s\S]*?)\s*```$/

/**
 * What the argument text of a tool call means: blank text and `null` are `{}`, one JSON object is itself, and one object
 * inside a Markdown code fence is that object.
 * @returns null for everything else: arrays, bare values, two objects, text that was cut. Such a call must not run.
 */
export function parseArguments(text: string): JsonObject | null {
  const trimmed = text.trim()
  const inner = (FENCED.exec(trimmed)?.[1] ?? trimmed).trim()
  if (inner === '' || inner === 'null') return {}
  const value = parseJson(inner)
  return isJsonObject(value) ? value : null
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
