import * as z from 'zod'
import type {
  CachingSettings,
  ChatSettings,
  CompactionSettings,
  FallbackSettings,
  JsonObject,
  OutputSchema,
  ThinkingSettings,
  ToolOptions,
} from '../../models/rows.ts'
import { compactionOptions } from './compaction-options.ts'
import { fallbacksSchema } from './fallback.ts'
import { isJsonObject } from './json-schema.ts'
import { readOutputSchema } from './output-schema.ts'

// What a chat and an agent can both be configured with, each setting once: how it is checked, and what is stored. A chat's
// own value beats its agent's; null returns to the agent's.

const flag = (of: string) => z.boolean(`${of} must be true or false`)
const count = (of: string) => z.int(`${of} must be a whole number`).min(1, `${of} must be at least 1`)

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const
const thinkingOptions = z.strictObject({
  effort: z.enum(efforts, `effort must be one of ${efforts.join(', ')}`).optional(),
  budget: count('budget').optional(),
  display: z.enum(['summarized', 'omitted'], 'display must be "summarized" or "omitted"').optional(),
})
const thinking: z.ZodType<ThinkingSettings | false> = z
  .union([flag('thinking'), thinkingOptions], 'must be true, false, or { effort, budget, display }')
  .transform((given): ThinkingSettings | false => (given === true ? {} : defined(given)))

const cachingOptions = z.strictObject({
  key: z.string('key must be a text').min(1, 'key must not be empty').max(512, 'key is too long').optional(),
  retention: z.enum(['in-memory', '24h'], 'retention must be "in-memory" or "24h"').optional(),
})
const caching: z.ZodType<CachingSettings | false> = z
  .union([flag('caching'), cachingOptions], 'must be true, false, or { key, retention }')
  .transform((given): CachingSettings | false => (given === true ? {} : defined(given)))

const toolOptionShape = {
  choice: z.string('choice must be "auto", "none", "required" or the name of a tool').min(1).max(255),
  calls: z.union([z.enum(['many', 'one']), z.int().min(1)], 'calls must be "many", "one" or a whole number from 1 on'),
  concurrency: z.union([z.boolean(), z.int().min(1)], 'concurrency must be true, false or a whole number from 1 on'),
  workers: count('workers'),
  rounds: count('rounds'),
}

const toolOptions: z.ZodType<ToolOptions> = z
  .strictObject(toolOptionShape)
  .partial()
  .transform((given): ToolOptions => defined(given))

/** Some of the tool options; null in place of one resets it. */
export const toolOptionsInput = z
  .strictObject({
    choice: toolOptionShape.choice.nullable(),
    calls: toolOptionShape.calls.nullable(),
    concurrency: toolOptionShape.concurrency.nullable(),
    workers: toolOptionShape.workers.nullable(),
    rounds: toolOptionShape.rounds.nullable(),
  })
  .partial()

/** An object that JSON can hold, copied. */
export const jsonObject: z.ZodType<JsonObject> = z
  // A Map, a Date and the like say something else as JSON than what they hold.
  .custom<object>((value) => Object.prototype.toString.call(value) === '[object Object]', 'must be an object')
  .transform((value, context): JsonObject => {
    try {
      const copy: unknown = JSON.parse(JSON.stringify(value))
      if (isJsonObject(copy)) return copy
    } catch {
      // Said below.
    }
    context.addIssue('must be JSON of an object')
    return z.NEVER
  })

const outputSchema: z.ZodType<OutputSchema> = z.unknown().transform((given, context): OutputSchema => {
  try {
    return readOutputSchema(given)
  } catch (error) {
    context.addIssue(error instanceof Error ? error.message : String(error))
    return z.NEVER
  }
})

/** Every setting but the names of tools, which are resolved by the process that runs the chat. */
export const settingSchemas = {
  temperature: z.number('must be a number from 0 to 2').min(0, 'must be at least 0').max(2, 'must be at most 2'),
  maxOutputTokens: z.int('must be a whole number').min(1, 'must be at least 1'),
  providerOptions: jsonObject,
  endUser: z.string('must be a text').min(1, 'must not be empty').max(255, 'must have at most 255 characters'),
  schema: outputSchema,
  toolOptions,
  thinking,
  citations: flag('it'),
  caching,
  compaction: compactionOptions,
  fallbacks: z.preprocess((given) => (Array.isArray(given) ? { models: given } : given), fallbacksSchema),
} satisfies { readonly [Key in SettingName]: z.ZodType<NonNullable<ChatSettings[Key]>> }

/** The settings by their names, the names of tools apart. */
export type SettingName = Exclude<keyof ChatSettings, 'tools'>

/** Settings as an agent has them, and as they count for a chat; null = nothing was said. */
export interface AgentSettings {
  /** 0 to 2. */
  readonly temperature: number | null
  /** Limit on one answer, in tokens. */
  readonly maxOutputTokens: number | null
  /** Put into the request body as they are. */
  readonly providerOptions: JsonObject | null
  /** Who asks, as the provider is told. */
  readonly endUser: string | null
  /** What answers have to look like. */
  readonly schema: OutputSchema | null
  /** How tools are offered and run. */
  readonly toolOptions: ToolOptions | null
  /** How the model is to reason; false = not at all. */
  readonly thinking: ThinkingSettings | false | null
  /** False: sources that a provider names are not kept. */
  readonly citations: boolean | null
  /** How the provider's prompt cache is used; false = not at all. */
  readonly caching: CachingSettings | false | null
  /** When the history is summarised by itself; false = never. */
  readonly compaction: CompactionSettings | false | null
  /** Models that are asked where the own one fails. */
  readonly fallbacks: FallbackSettings | null
}

/** What counts of each setting: the chat's own, else its agent's; null where neither says anything. */
export function effectiveSettings(chat: ChatSettings, agent: AgentSettings | null): AgentSettings {
  const names = Object.keys(settingSchemas) as SettingName[]
  const settings = Object.fromEntries(names.map((name) => [name, chat[name] ?? agent?.[name] ?? null]))
  const options = { ...agent?.toolOptions, ...chat.toolOptions }
  return { ...settings, toolOptions: Object.keys(options).length === 0 ? null : options } as AgentSettings
}

/** A chat's settings with those of one object over them; of the tool options, each by itself. */
export function withOwn(stored: ChatSettings, own: ChatSettings): ChatSettings {
  const toolOptions = { ...stored.toolOptions, ...own.toolOptions }
  return { ...stored, ...own, ...(Object.keys(toolOptions).length === 0 ? {} : { toolOptions }) }
}

type SomeToolOptions = z.infer<typeof toolOptionsInput>

/** The options with those given; null in place of one takes it away, null alone all. Null: none is left. */
export function toolOptionsWith(before: ToolOptions | undefined, given: SomeToolOptions | null): ToolOptions | null {
  if (given === null) return null
  const left = Object.entries({ ...before, ...defined(given) }).filter(([, value]) => value !== null)
  return left.length === 0 ? null : (Object.fromEntries(left) as ToolOptions)
}

/** What takes away each of the options given. */
export function resettingAll(given: SomeToolOptions): SomeToolOptions {
  return Object.fromEntries(Object.keys(defined(given)).map((name) => [name, null]))
}

/** Whether a choice is one of the words that are no name of a tool. */
export function isChoiceWord(choice: string): choice is 'auto' | 'none' | 'required' {
  return choice === 'auto' || choice === 'none' || choice === 'required'
}

/** How many calls of a round `concurrency: true` lets run at the same time. */
export const DEFAULT_CONCURRENCY = 8

/** How many calls of one round may run at the same time. */
export function concurrencyOf(options: ToolOptions | null, otherwise: number): number {
  const { workers, concurrency } = options ?? {}
  if (concurrency === false) return 1
  if (workers !== undefined) return workers
  if (concurrency === undefined) return otherwise
  if (typeof concurrency === 'number') return concurrency
  return DEFAULT_CONCURRENCY
}

function defined<T extends object>(given: T | false): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const known = Object.entries(given || {}).filter(([, value]) => value !== undefined)
  return (given && Object.fromEntries(known)) as { [Key in keyof T]: Exclude<T[Key], undefined> }
}
