import type { CacheBoundary, FallbackModel, ChatSettings as Stored, ToolOptions } from '../../models/rows.ts'
import { saveSettings } from '../../models/settings.ts'
import { ArgumentError } from '../errors.ts'
import type { Caller } from '../loop/run-context.ts'
import type { CompactionOptions } from '../tools/compaction-options.ts'
import type { FallbackOptions } from '../tools/fallback.ts'
import { headersSchema } from '../tools/headers.ts'
import { type ModelContext, modelContextSchema } from '../tools/model-context.ts'
import type { SchemaInput } from '../tools/output-schema.ts'
import { type AgentSettings, concurrencyOf, effectiveSettings, type SettingName } from '../tools/settings.ts'
import type { SettingsInput } from '../tools/settings-input.ts'
import type { Tool } from '../tools/tool.ts'
import { ChatAgent } from './chat-agent.ts'

/** Models, then after which errors; or null alone. */
export type FallbackArguments =
  | readonly (string | FallbackModel)[]
  | readonly [...(string | FallbackModel)[], FallbackOptions & PersistOptions]
  | readonly [null]
  | readonly [null, PersistOptions]

/** Tools or their names, then where they are kept; or null in place of tools. */
export type ToolArguments = readonly (Tool | string | null)[] | readonly [...(Tool | string | null)[], PersistOptions]

/** Where a setting is kept. */
export interface PersistOptions {
  /** False: for this object's own runs alone, over what is stored. Default true: stored with the chat by the next verb. */
  readonly persist?: boolean | undefined
}

/** How instructions are set. */
export interface InstructionOptions extends PersistOptions {
  /** True: behind those that there are. Default false: in their place. */
  readonly append?: boolean | undefined
  /** The provider is to keep the prompt up to here in its cache; `{ ttl }` for how long, as `5m` or `1h`. */
  readonly cacheUntilHere?: CacheBoundary | false | undefined
}

/** Some of the tool options; null resets one. */
export type ToolOptionsInput = { readonly [Key in keyof ToolOptions]?: ToolOptions[Key] | null | undefined }

/**
 * A chat's settings. They are stored by the next verb, so that every worker runs what this process configured; null returns
 * to the agent's. Each reader says what counts: the chat's own, else its agent's, else null.
 */
export abstract class ChatSettings extends ChatAgent {
  #headers: Readonly<Record<string, string>> | null = null
  #context: ModelContext | null = null

  /**
   * Replaces the system messages, or adds one (`append`); null = as the agent says, whose instructions are sent as long as none are
   * stored with the chat. The same text again writes nothing. With
   * `persist: false` they are this object's alone, survive {@link reload}, and stand behind the stored ones or in place of
   * them. (S101, S102)
   * @throws {ArgumentError} for what is no text, or other options.
   */
  withInstructions(text: string | null, options: InstructionOptions = {}): this {
    this.pending.setInstructions(text, options)
    return this
  }

  /** 0 to 2; null = as the agent says. @throws {ArgumentError} */
  withTemperature(temperature: number | null, options: PersistOptions = {}): this {
    return this.#with('temperature', temperature, options)
  }

  /** The sampling temperature; null = not sent. */
  get temperature(): number | null {
    return this.setting('temperature')
  }

  /** Limit on one answer in tokens; null = as the agent says. @throws {ArgumentError} */
  withMaxOutputTokens(tokens: number | null, options: PersistOptions = {}): this {
    return this.#with('maxOutputTokens', tokens, options)
  }

  /** Limit on one answer in tokens; null = not sent. */
  get maxOutputTokens(): number | null {
    return this.setting('maxOutputTokens')
  }

  /** Put into the request body as they are, over everything else. They are stored: no secrets. @throws {ArgumentError} */
  withProviderOptions(options: SettingsInput['providerOptions'], how: PersistOptions = {}): this {
    return this.#with('providerOptions', options, how)
  }

  /** What is put into the request body as it is; null = nothing. */
  get providerOptions(): Stored['providerOptions'] | null {
    return this.setting('providerOptions')
  }

  /** Who asks, as the provider is told; use an opaque id. @throws {ArgumentError} */
  withEndUser(id: string | null, options: PersistOptions = {}): this {
    return this.#with('endUser', id, options)
  }

  /** Who asks, as the provider is told; null = not said. */
  get endUser(): string | null {
    return this.setting('endUser')
  }

  /**
   * What answers have to look like: a Zod schema, any Standard Schema that yields JSON Schema, JSON Schema, or
   * `{ name, schema, strict }`. The text stays a text; `message.parsed` reads it. @throws {ArgumentError}
   */
  withSchema(schema: SchemaInput | null, options: PersistOptions = {}): this {
    return this.#with('schema', schema, options)
  }

  /** What answers have to look like, as it is sent; null = anything. */
  get schema(): Stored['schema'] | null {
    return this.setting('schema')
  }

  /**
   * How tools are offered and run; what is left out stays as it is, null resets it, and null alone resets all. A forced choice (`required`, a tool's name) holds
   * for the first round of each turn. (S81, S82)
   * @throws {InvalidToolChoiceError} for a name that no tool of the chat has. {ArgumentError} for other options.
   */
  withToolOptions(options: ToolOptionsInput | null, how: PersistOptions = {}): this {
    const agentMissing = this.deps.agentOf(this.row) === null
    this.pending.setToolOptions(options, how, agentMissing ? null : this.deps.toolNames(this.row))
    return this
  }

  /** How tools are offered and run; null = nothing was said. */
  get toolOptions(): Readonly<ToolOptions> | null {
    const options = { ...this.deps.agentOf(this.row)?.toolOptions, ...this.pending.settings.toolOptions }
    return Object.keys(options).length === 0 ? null : options
  }

  /** How many calls of one round may run at the same time. */
  get concurrency(): number {
    return concurrencyOf(this.toolOptions, this.deps.agentOf(this.row)?.concurrency ?? 1)
  }

  /**
   * How the model is to reason: true as the provider does it, false not at all, or `{ effort, budget, display }`. A `budget` is sent
   * where the wire has a word for it (OpenRouter). @throws {ArgumentError}
   */
  withThinking(thinking: SettingsInput['thinking'], options: PersistOptions = {}): this {
    return this.#with('thinking', thinking, options)
  }

  /** How the model is to reason; false = not at all, null = nothing was said. */
  get thinking(): Stored['thinking'] | null {
    return this.setting('thinking')
  }

  /** False: sources that a provider names are not kept. @throws {ArgumentError} */
  withCitations(citations: boolean | null, options: PersistOptions = {}): this {
    return this.#with('citations', citations, options)
  }

  /** Whether sources are kept; null = nothing was said, and they are. */
  get citations(): boolean | null {
    return this.setting('citations')
  }

  /**
   * How the provider's prompt cache is used: true with the chat's id as key, `{ key, retention }`, or false: nothing is sent about it,
   * boundaries included. @throws {ArgumentError}
   */
  withCaching(caching: SettingsInput['caching'], options: PersistOptions = {}): this {
    return this.#with('caching', caching, options)
  }

  /** How the provider's prompt cache is used; false = not at all, null = nothing was said. */
  get caching(): Stored['caching'] | null {
    return this.setting('caching')
  }

  /**
   * Summarises the history by itself before it fills the model's context: true at 0.8 of the context window, or by these
   * options; false = never; null = as the agent says.
   * @throws {ArgumentError} for other options.
   */
  withCompaction(compaction: CompactionOptions | boolean | null, options: PersistOptions = {}): this {
    return this.#with('compaction', compaction, options)
  }

  /** When the history is summarised by itself; false = never, null = nothing was said, and it is not. */
  get compaction(): Stored['compaction'] | null {
    return this.setting('compaction')
  }

  /**
   * Asks these models, ids or `{ model, provider }`, in order where the chat's own fails with an error of `on`; null = as the
   * agent says. Each has retries of its own, and the chat keeps its model. (S87, S90)
   * @throws {ArgumentError} for what names no model, or for no model at all, and for an `on` that names no error.
   */
  withFallbacks(...given: FallbackArguments): this {
    const last = given.at(-1)
    const { persist, ...options }: FallbackOptions & PersistOptions = isOptions(last, 'model') ? last : {}
    const models = isOptions(last, 'model') ? given.slice(0, -1) : given
    const isNull = models.length === 1 && models[0] === null
    return this.#with('fallbacks', isNull ? null : { models, ...options }, { persist })
  }

  /** The models that are asked where its own fails, as the chat says or else its agent; null = none. */
  get fallbacks(): Stored['fallbacks'] | null {
    return this.setting('fallbacks')
  }

  /**
   * Sends these headers with each request of this object's own runs, beside the agent's; null = none. Never stored or logged:
   * workers get theirs from the agent or `contextFor`. @throws {ArgumentError}
   */
  withHeaders(headers: Readonly<Record<string, string>> | null): this {
    const parsed = headersSchema.nullable().safeParse(headers)
    if (!parsed.success)
      throw this.#bad('withHeaders takes names and texts, printable and without line breaks, or null')
    this.#headers = parsed.data
    return this
  }

  /** The agent's headers with those of this object over them; null = none. What a context adds is not shown. */
  get headers(): Readonly<Record<string, string>> | null {
    const headers = { ...this.deps.agentOf(this.row)?.headers, ...this.#headers }
    return Object.keys(headers).length === 0 ? null : headers
  }

  /**
   * Asks models with this key, endpoint, headers or client in this object's own runs; null = as the process is configured. Model
   * and provider stay. Never stored: workers get theirs from `connect({ contextFor })`. @throws {ArgumentError}
   */
  withContext(context: ModelContext | null): this {
    const parsed = modelContextSchema.nullable().safeParse(context)
    if (!parsed.success) {
      const fields = [...new Set(parsed.error.issues.map((issue) => issue.path[0] ?? 'it'))].join(', ')
      throw this.#bad(
        `withContext takes { apiKey, baseURL, organization, project, headers, client } or null; check ${fields}`,
      )
    }
    this.#context = parsed.data
    return this
  }

  /**
   * Offers these tools, beside those added before, instead of the agent's; `withTools(null)` returns to the agent's. Names
   * are stored: a worker needs tools of these names, of its agents or from `connect({ tools })`. With `{ persist: false }` as
   * the last argument they are offered by this object's own runs alone. (E20)
   * @throws {ArgumentError} for a name that this process does not know.
   */
  withTools(...given: ToolArguments): this {
    const last = given.at(-1)
    const options = isOptions(last, 'name') ? last : {}
    const tools = (isOptions(last, 'name') ? given.slice(0, -1) : given) as readonly (Tool | string | null)[]
    this.pending.addTools(tools, options, this.deps.toolNames(this.row))
    return this
  }

  /** The tools that the chat offers, by name, as far as this process has them. */
  get tools(): ReadonlyMap<string, Tool> {
    const known = this.deps.toolsOf(this.row)
    const own = this.pending.tools.map((tool) => [tool.name, tool] as const)
    const names = this.pending.settings.tools ?? this.deps.agentOf(this.row)?.tools.map(({ name }) => name) ?? []
    return new Map([...known, ...own].filter(([name]) => names.includes(name)))
  }

  /** Stores pending settings now. */
  async save(): Promise<this> {
    const { db } = this.deps
    await this.storePending((pending, transaction) => saveSettings(db, this.id, pending, transaction))
    return this
  }

  /**
   * Reads the chat's row again. What was set on this object stays, stored or not: settings, instructions, tools, hooks, headers,
   * context. Only a model and a provider that were not stored yet are dropped. (S104)
   */
  async reload(): Promise<this> {
    this.row = (await this.look()).chat
    this.pending.reset(this.row)
    return this
  }

  /** What this object brings along for its own runs. */
  protected caller(): Caller {
    const { tools, own, ownInstructions } = this.pending
    return {
      chat: this,
      hooks: this.ownHooks,
      tools,
      settings: own,
      instructions: ownInstructions,
      headers: this.#headers,
      context: this.#context,
      converters: this.converters,
    }
  }

  protected setting<Key extends SettingName>(key: Key): AgentSettings[Key] {
    return effectiveSettings(this.pending.settings, this.deps.agentOf(this.row))[key]
  }

  #with(key: SettingName, value: unknown, options: PersistOptions): this {
    this.pending.set(key, value, options)
    return this
  }

  #bad(message: string): ArgumentError {
    return new ArgumentError(`${message} (chat ${this.id}).`, { chatId: this.id })
  }
}

/** Whether the last argument is no more of what comes before it, which has that key. */
function isOptions<T>(given: T, key: string): given is Extract<T, PersistOptions> {
  return typeof given === 'object' && given !== null && !(key in given)
}
