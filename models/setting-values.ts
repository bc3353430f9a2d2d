import type { JsonObject } from './rows.ts'

/** What a chat was configured with beside its agent. A missing key means "as the agent says". */
export type ChatSettings = {
  /** 0 to 2. */
  temperature?: number
  /** Limit on one answer, in tokens. */
  maxOutputTokens?: number
  /** Names of tools, resolved by the process that runs the chat. */
  tools?: string[]
  /** False: not by itself. */
  compaction?: CompactionSettings | false
  /** Models that are asked where the chat's own fails. */
  fallbacks?: FallbackSettings
  /** Put into the request body as they are. */
  providerOptions?: JsonObject
  /** What the provider is told about who asks. */
  endUser?: string
  /** What answers have to look like. */
  schema?: OutputSchema
  /** How tools are offered and run. */
  toolOptions?: ToolOptions
  /** How the model is to reason; false: not at all. */
  thinking?: ThinkingSettings | false
  /** False: sources that a provider names are not kept. */
  citations?: boolean
  /** How the provider's prompt cache is used; false: not asked for. */
  caching?: CachingSettings | false
}

/** What answers have to look like. */
export type OutputSchema = {
  /** What the provider gets it under. */
  name: string
  /** What it describes, for the model. */
  description?: string
  /** JSON Schema of an object. */
  schema: JsonObject
  /** Whether the provider is to guarantee the shape. */
  strict?: boolean
}

/** How tools are offered and run; what is missing is as the agent says. */
export type ToolOptions = {
  /** `auto`, `none`, `required`, or the name of the tool that must be called. A forced choice holds for the first round of a turn. */
  choice?: string
  /** `one` (or 1): one call an answer. A number above: of an answer's calls so many run. `many`: no limit. */
  calls?: 'many' | 'one' | number
  /** How many calls of one round run at the same time; true = 8, false = 1. */
  concurrency?: boolean | number
  /** The same as a number; it wins. */
  workers?: number
  /** Most tool rounds of one turn. */
  rounds?: number
}

/** How a model is to reason; what is missing is as the provider does it. */
export type ThinkingSettings = {
  /** How hard. */
  effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'
  /** How many tokens at most, where the wire can say so. */
  budget?: number
  /** `omitted`: what the model thinks is neither shown nor kept as text. */
  display?: 'summarized' | 'omitted'
}

/** How the provider's prompt cache is used. */
export type CachingSettings = {
  /** What requests that share a beginning have in common. Default: the chat's id. */
  key?: string
  /** How long the provider is to keep it. */
  retention?: 'in-memory' | '24h'
}

/** A model, as a fallback names it. */
export type FallbackModel = {
  /** Its id, in the provider's words. */
  model: string
  /** Default: the provider that the chat asks anyway. */
  provider?: string
}

/** Models that are asked in order where the chat's own fails, and after which errors. */
export type FallbackSettings = {
  /** In the order in which they are asked. */
  models: FallbackModel[]
  /** Codes of errors; left out: those that another model may mend. */
  on?: string[]
}

/** When and how a chat's history is summarised by itself. */
export type CompactionSettings = {
  /** From 0 to 1: that share of the model's context window; above 1: that many tokens. */
  at: number
  /** What the summary is to keep, in place of the standing instruction. */
  instructions?: string
  /** True: the run ends after the summary; the next complete goes on with the turn. */
  pauseAfter?: boolean
  /** The model that writes the summary, of the same provider; left out, the chat's own. */
  model?: string
  /** So many of the latest messages stay as they are. */
  keep?: number
}
