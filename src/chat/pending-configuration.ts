import type { Transaction } from 'sequelize'
import { fateOf } from '../../config/transaction.ts'
import { userMessage } from '../../models/new-message.ts'
import type { ChatRow, ChatSettings, TranscriptMessage } from '../../models/rows.ts'
import type { PendingSettings } from '../../models/settings.ts'
import { ArgumentError } from '../errors.ts'
import { type CompactionOptions, compactionOptions, problemsOf } from '../tools/compaction-options.ts'
import { type FallbackModel, type FallbackOptions, fallbacksSchema } from '../tools/fallback.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from '../tools/text-limit.ts'
import type { Tool } from '../tools/tool.ts'

/** What the setters of a chat object changed since it was stored. */
interface Changes {
  readonly model?: string | null
  readonly provider?: string | null
  readonly settings?: true
  /** The system messages that there are to be; undefined = those that are stored. */
  readonly replaced?: readonly string[]
  readonly appended: readonly string[]
}

const none: Changes = { appended: [] }

/** What was configured on a chat object and is not stored yet. */
export class PendingConfiguration {
  readonly #chatId: string
  #settings: ChatSettings
  #changes: Changes = none
  /** What was stored in a transaction of the application's that may yet be rolled back. */
  #joined: { readonly transaction: Transaction; readonly changes: Changes } | null = null
  /** Tools that came as objects: this object's own runs can use them without their being registered. */
  #tools = new Map<string, Tool>()

  constructor(row: ChatRow) {
    this.#chatId = row.id
    this.#settings = { ...row.settings }
  }

  /** As they will be stored. */
  get settings(): ChatSettings {
    return this.#settings
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()]
  }

  isChanged(): boolean {
    return this.#unstored(undefined) !== none
  }

  setModel(model: string | null, provider: string | undefined): void {
    if (model !== null && (typeof model !== 'string' || model === '')) {
      throw this.#bad(`withModel takes the id of a model or null, not ${JSON.stringify(model)}`)
    }
    this.#changes = { ...this.#changes, model, provider: provider ?? null }
  }

  setInstructions(text: string | null, append: boolean): void {
    if (text !== null && typeof text !== 'string') throw this.#bad('withInstructions takes a text or null')
    if (text !== null && !isWithinLimit(text)) {
      throw this.#bad(`withInstructions takes ${TEXT_LIMIT_BYTES} bytes of text at most`)
    }
    const { replaced, appended, ...others } = this.#changes
    this.#changes =
      append && text !== null
        ? { ...this.#changes, appended: [...appended, text] }
        : { ...others, replaced: text === null ? [] : [text], appended: [] }
  }

  setTemperature(temperature: number | null): void {
    const legal = temperature === null || (typeof temperature === 'number' && temperature >= 0 && temperature <= 2)
    if (!legal) throw this.#bad(`withTemperature takes a number from 0 to 2 or null, not ${String(temperature)}`)
    this.#set('temperature', temperature)
  }

  setMaxOutputTokens(tokens: number | null): void {
    const legal = tokens === null || (Number.isInteger(tokens) && tokens > 0)
    if (!legal) throw this.#bad(`withMaxOutputTokens takes a whole number above 0 or null, not ${String(tokens)}`)
    this.#set('maxOutputTokens', tokens)
  }

  setCompaction(options: CompactionOptions | boolean | null): void {
    const parsed = compactionOptions.nullable().safeParse(options)
    if (!parsed.success) throw this.#bad(`withCompaction can't take this: ${problemsOf(parsed.error)}`)
    this.#set('compaction', parsed.data)
  }

  setFallbacks(models: readonly (string | FallbackModel)[] | null, { on }: FallbackOptions): void {
    const parsed = fallbacksSchema.nullable().safeParse(models === null ? null : { models, ...(on ? { on } : {}) })
    if (!parsed.success) throw this.#bad(`withFallbacks can't take this: ${problemsOf(parsed.error)}`)
    this.#set('fallbacks', parsed.data)
  }

  addTools(tools: readonly (Tool | string | null)[], known: ReadonlySet<string>): void {
    if (tools.length === 1 && tools[0] === null) {
      this.#tools.clear()
      this.#set('tools', null)
      return
    }
    for (const tool of tools) {
      if (tool === null) throw this.#bad('withTools takes tools, or null alone')
      if (typeof tool === 'string' && !known.has(tool) && !this.#tools.has(tool)) {
        throw this.#bad(
          `There is no tool named ${JSON.stringify(tool)}: pass it to connect({ tools }), or hand in the tool itself`,
        )
      }
    }
    const given = tools.filter((tool) => tool !== null)
    for (const tool of given) if (typeof tool !== 'string') this.#tools.set(tool.name, tool)
    const names = given.map((tool) => (typeof tool === 'string' ? tool : tool.name))
    this.#set('tools', [...new Set([...(this.#settings.tools ?? []), ...names])])
  }

  /**
   * What the next verb stores. `stored` reads the system messages as they are, where they are needed. What an earlier verb
   * stored in the same transaction `join` is left out; what another, open one stored is not certain yet.
   */
  async resolve(stored: () => Promise<readonly string[]>, join?: Transaction): Promise<PendingSettings> {
    const { model, provider, settings, replaced, appended } = this.#unstored(join)
    const speaks = replaced !== undefined || appended.length > 0
    return {
      ...(model === undefined ? {} : { model }),
      ...(provider === undefined ? {} : { provider }),
      ...(settings === undefined ? {} : { settings: this.#settings }),
      ...(speaks ? { instructions: [...(replaced ?? (await stored())), ...appended] } : {}),
    }
  }

  /** A chat and its messages as they would be once everything pending was stored. */
  async preview(
    chat: ChatRow,
    transcript: readonly TranscriptMessage[],
  ): Promise<{ readonly row: ChatRow; readonly transcript: readonly TranscriptMessage[] }> {
    const system = transcript.filter((message) => message.role === 'system')
    const { instructions, ...columns } = await this.resolve(async () => system.map(({ content }) => content ?? ''))
    const row = { ...chat, ...columns }
    if (instructions === undefined) return { row, transcript }
    const said = instructions.map((content, position) => ({
      ...userMessage(chat.id, '', content),
      role: 'system' as const,
      position,
      updatedAt: chat.updatedAt,
      toolCalls: [],
    }))
    return { row, transcript: [...said, ...transcript.filter((message) => message.role !== 'system')] }
  }

  /** Everything is stored, or is once the transaction `join` is committed. */
  settle(join?: Transaction): void {
    const changes = join === undefined ? none : this.#unstored(undefined)
    this.#joined = join === undefined || changes === none ? null : { transaction: join, changes }
    this.#changes = none
  }

  /** What is not stored as far as the transaction `join`, or anyone, can see. */
  #unstored(join: Transaction | undefined): Changes {
    if (this.#joined === null) return this.#changes
    const { transaction, changes } = this.#joined
    const fate = fateOf(transaction)
    if (fate === 'committed') this.#joined = null
    if (fate === 'rolledBack') {
      this.#changes = together(changes, this.#changes)
      this.#joined = null
    }
    if (fate === 'open' && transaction !== join) return together(changes, this.#changes)
    return this.#changes
  }

  /** Drops what was not stored; tools that came as objects stay. */
  reset(row: ChatRow): void {
    this.settle()
    this.#settings = { ...row.settings }
  }

  /** Null removes the key: the agent's value counts again. */
  #set<Key extends keyof ChatSettings>(key: Key, value: NonNullable<ChatSettings[Key]> | null): void {
    const { [key]: _, ...rest } = this.#settings
    this.#settings = value === null ? rest : { ...rest, [key]: value }
    this.#changes = { ...this.#changes, settings: true }
  }

  #bad(message: string): ArgumentError {
    return new ArgumentError(`${message} (chat ${this.#chatId}).`, { chatId: this.#chatId })
  }
}

function together(older: Changes, newer: Changes): Changes {
  const appended = newer.replaced === undefined ? [...older.appended, ...newer.appended] : newer.appended
  return { ...older, ...newer, appended }
}
