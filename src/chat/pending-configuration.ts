import type { ChatRow, ChatSettings } from '../../models/rows.ts'
import type { PendingSettings } from '../../models/settings.ts'
import { ArgumentError } from '../errors.ts'
import { type CompactionOptions, compactionOptions, problemsOf } from '../tools/compaction-options.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from '../tools/text-limit.ts'
import type { Tool } from '../tools/tool.ts'

/** What was configured on a chat object and is not stored yet. */
export class PendingConfiguration {
  readonly #chatId: string
  #settings: ChatSettings
  #changes: { model?: string | null; provider?: string | null; settings?: true } = {}
  /** Null = no system message; each text is one. Undefined = as stored. */
  #replaced: readonly string[] | undefined
  #appended: string[] = []
  /** Tools that came as objects: this object's own runs can use them without their being registered. */
  #tools = new Map<string, Tool>()

  constructor(row: ChatRow) {
    this.#chatId = row.id
    this.#settings = { ...row.settings }
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()]
  }

  isChanged(): boolean {
    return Object.keys(this.#changes).length > 0 || this.#replaced !== undefined || this.#appended.length > 0
  }

  setModel(model: string | null, provider: string | undefined): void {
    if (model !== null && (typeof model !== 'string' || model === '')) {
      throw this.#bad(`withModel takes the id of a model or null, not ${JSON.stringify(model)}`)
    }
    this.#changes.model = model
    this.#changes.provider = provider ?? null
  }

  setInstructions(text: string | null, append: boolean): void {
    if (text !== null && typeof text !== 'string') throw this.#bad('withInstructions takes a text or null')
    if (text !== null && !isWithinLimit(text)) {
      throw this.#bad(`withInstructions takes ${TEXT_LIMIT_BYTES} bytes of text at most`)
    }
    if (append && text !== null) {
      this.#appended.push(text)
      return
    }
    this.#replaced = text === null ? [] : [text]
    this.#appended = []
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

  /** What the next verb stores. `stored` reads the system messages as they are, where they are needed. */
  async resolve(stored: () => Promise<readonly string[]>): Promise<PendingSettings> {
    const { model, provider, settings } = this.#changes
    const speaks = this.#replaced !== undefined || this.#appended.length > 0
    return {
      ...(model === undefined ? {} : { model }),
      ...(provider === undefined ? {} : { provider }),
      ...(settings === undefined ? {} : { settings: this.#settings }),
      ...(speaks ? { instructions: [...(this.#replaced ?? (await stored())), ...this.#appended] } : {}),
    }
  }

  /** Everything is stored. */
  settle(): void {
    this.#changes = {}
    this.#replaced = undefined
    this.#appended = []
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
    this.#changes.settings = true
  }

  #bad(message: string): ArgumentError {
    return new ArgumentError(`${message} (chat ${this.#chatId}).`, { chatId: this.#chatId })
  }
}
