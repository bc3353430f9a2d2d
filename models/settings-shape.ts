import type { ChatSettings, Json } from './rows.ts'
import { isObject } from './shapes.ts'

type Check = (value: Json) => boolean

const text: Check = (value) => typeof value === 'string'
const number: Check = (value) => typeof value === 'number'
const flag: Check = (value) => typeof value === 'boolean'
const no: Check = (value) => value === false
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const either =
  (...checks: Check[]): Check =>
  (value) =>
    checks.some((check) => check(value))
/** An object with these keys, where it has them; `needed` ones it must have. What a later release adds is let through. */
const having =
  (checks: Readonly<Record<string, Check>>, needed: readonly string[] = []): Check =>
  (value) => {
    if (!isObject(value)) return false
    const isSound = (key: string, inner: Json) => checks[key]?.(inner) ?? true
    return (
      needed.every((key) => Object.hasOwn(value, key)) &&
      Object.entries(value).every(([key, inner]) => isSound(key, inner))
    )
  }

const checks: { readonly [Key in keyof Required<ChatSettings>]: Check } = {
  temperature: number,
  maxOutputTokens: number,
  tools: listOf(text),
  compaction: either(no, having({ at: number, instructions: text, model: text, keep: number }, ['at'])),
  fallbacks: having({ models: listOf(having({ model: text, provider: text }, ['model'])), on: listOf(text) }, [
    'models',
  ]),
  providerOptions: isObject,
  endUser: text,
  schema: having({ name: text, schema: isObject }, ['name', 'schema']),
  toolOptions: having({
    choice: text,
    calls: either(text, number),
    concurrency: either(flag, number),
    workers: number,
    rounds: number,
  }),
  thinking: either(no, having({ effort: text, budget: number, display: text })),
  citations: flag,
  caching: either(no, having({ key: text, retention: text })),
}

/** Whether stored settings can be gone by. */
export const isSettings: Check = having(checks)
