import type * as z from 'zod'
import type {
  CachingSettings,
  ChatSettings,
  FallbackModel,
  JsonObject,
  ThinkingSettings,
  ToolOptions,
} from '../../models/rows.ts'
import type { CompactionOptions } from './compaction-options.ts'
import type { FallbackOptions } from './fallback.ts'
import type { SchemaInput } from './output-schema.ts'
import { type AgentSettings, type SettingName, settingSchemas } from './settings.ts'

/** Models that stand in for one that fails: in order, or with what they follow. */
export type FallbacksInput =
  | readonly (string | FallbackModel)[]
  | ({
      /** In the order in which they are asked. */
      readonly models: readonly (string | FallbackModel)[]
    } & FallbackOptions)

/** What agents and new chats can be configured with; a chat's own beats its agent's. Left out or null: not said. */
export interface SettingsInput {
  /** 0 to 2. Not sent if left out. */
  readonly temperature?: number | null | undefined
  /** Limit on one answer, in tokens. Not sent if left out. */
  readonly maxOutputTokens?: number | null | undefined
  /** Put into the request body as they are; they win over everything else. No secrets: they are stored with chats. */
  readonly providerOptions?: JsonObject | null | undefined
  /** Who asks, as the provider is told. Use an opaque id. */
  readonly endUser?: string | null | undefined
  /** What answers have to look like. */
  readonly schema?: SchemaInput | null | undefined
  /** How tools are offered and run. */
  readonly toolOptions?: ToolOptions | null | undefined
  /** How the model is to reason: true as the provider does, false not at all. */
  readonly thinking?: ThinkingSettings | boolean | null | undefined
  /** False: sources that a provider names are not kept. */
  readonly citations?: boolean | null | undefined
  /** How the provider's prompt cache is used: true with the chat's id as key; false sends nothing about it. */
  readonly caching?: CachingSettings | boolean | null | undefined
  /**
   * Summarises the history before it fills the context: true at 0.8 of the context window, or by these options; false =
   * never.
   */
  readonly compaction?: CompactionOptions | boolean | null | undefined
  /** Models that are asked where the chat's own fails. (S87, S90) */
  readonly fallbacks?: FallbacksInput | null | undefined
}

type Shape = { readonly [Key in SettingName]: z.ZodOptional<z.ZodNullable<(typeof settingSchemas)[Key]>> }

/** The settings as part of a larger schema, each of them optional. */
export const settingsShape = Object.fromEntries(
  Object.entries(settingSchemas).map(([key, schema]) => [key, (schema as z.ZodType).nullish()]),
) as unknown as Shape

type Checked = { readonly [Key in SettingName]?: NonNullable<ChatSettings[Key]> | null | undefined }

/** Every setting, null where nothing was said. */
export function settingsOf(checked: Checked): AgentSettings {
  const keys = Object.keys(settingSchemas) as SettingName[]
  return Object.fromEntries(keys.map((key) => [key, frozen(checked[key] ?? null)])) as unknown as AgentSettings
}

/** What was said, ready to be stored with a chat. */
export function storedSettings(checked: Checked): ChatSettings {
  const keys = Object.keys(settingSchemas) as SettingName[]
  const said = keys
    .map((key) => [key, checked[key]] as const)
    .filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(said) as ChatSettings
}

function frozen<T>(value: T): T {
  return typeof value === 'object' && value !== null ? Object.freeze(value) : value
}
