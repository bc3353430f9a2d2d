import type { FallbackSettings } from '../../models/rows.ts'
import { saveSettings } from '../../models/settings.ts'
import type { CompactionOptions } from '../tools/compaction-options.ts'
import type { FallbackModel, FallbackOptions } from '../tools/fallback.ts'
import type { Tool } from '../tools/tool.ts'
import { ChatHooks } from './chat-hooks.ts'

/** Models, then after which errors; or null alone. */
export type FallbackArguments =
  | readonly (string | FallbackModel)[]
  | readonly [...(string | FallbackModel)[], FallbackOptions]
  | readonly [null]

function isOptions(given: unknown): given is FallbackOptions {
  return typeof given === 'object' && given !== null && !('model' in given)
}

/** A chat's settings. They are stored by the next verb, so that every worker runs what this process configured. */
export abstract class ChatSettings extends ChatHooks {
  /** Asks this model from now on; null = as the agent says. */
  withModel(model: string | null, options: { readonly provider?: string } = {}): this {
    this.pending.setModel(model, options.provider)
    return this
  }

  /** Replaces the system messages, or adds one (`append`); null = as the agent says. (S101) */
  withInstructions(text: string | null, options: { readonly append?: boolean } = {}): this {
    this.pending.setInstructions(text, options.append ?? false)
    return this
  }

  /** 0 to 2; null = as the agent says. */
  withTemperature(temperature: number | null): this {
    this.pending.setTemperature(temperature)
    return this
  }

  /** Limit on one answer in tokens; null = as the agent says. */
  withMaxOutputTokens(tokens: number | null): this {
    this.pending.setMaxOutputTokens(tokens)
    return this
  }

  /**
   * Summarises the history by itself before it fills the model's context: true at 0.8 of the context window, or by these
   * options; false = never; null = as the agent says.
   * @throws {ArgumentError} for other options.
   */
  withCompaction(options: CompactionOptions | boolean | null): this {
    this.pending.setCompaction(options)
    return this
  }

  /**
   * Asks these models, ids or `{ model, provider }`, in order where the chat's own fails with an error of `on`; null = as the
   * agent says. Each has retries of its own, and the chat keeps its model. (S87, S90)
   * @throws {ArgumentError} for what names no model, or for no model at all.
   */
  withFallbacks(...given: FallbackArguments): this {
    const last = given.at(-1)
    const options = isOptions(last) ? last : {}
    const models = isOptions(last) ? given.slice(0, -1) : given
    const isNull = models.length === 1 && models[0] === null
    this.pending.setFallbacks(isNull ? null : (models as (string | FallbackModel)[]), options)
    return this
  }

  /** The models that are asked where its own fails, as the chat says or else its agent; null = none. */
  get fallbacks(): FallbackSettings | null {
    return this.pending.settings.fallbacks ?? this.deps.agentOf(this.row)?.fallbacks ?? null
  }

  /**
   * Offers these tools, beside those added before, instead of the agent's; `withTools(null)` returns to the agent's. Names
   * are stored: a worker needs tools of these names, of its agents or from `connect({ tools })`.
   */
  withTools(...tools: readonly (Tool | string | null)[]): this {
    this.pending.addTools(tools, this.deps.toolNames(this.row))
    return this
  }

  /** Stores pending settings now. */
  async save(): Promise<this> {
    const { db } = this.deps
    await this.storePending((pending, transaction) => saveSettings(db, this.id, pending, transaction))
    return this
  }

  /** Reads the chat's row again; settings that were not stored are dropped. */
  async reload(): Promise<this> {
    this.row = (await this.look()).chat
    this.pending.reset(this.row)
    return this
  }
}
