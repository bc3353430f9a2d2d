import type { Transaction } from 'sequelize'
import * as z from 'zod'
import { fateOf } from '../../config/transaction.ts'
import { boundaryWords, cacheBoundaryOf } from '../../models/cache-boundary.ts'
import type { CacheBoundary, ChatRow, ChatSettings, TranscriptMessage } from '../../models/rows.ts'
import { type Instruction, instructionOf, overlaid, type PendingSettings } from '../../models/settings.ts'
import { whyUnstorable } from '../../models/storable.ts'
import { ArgumentError, InvalidToolChoiceError } from '../errors.ts'
import type { Caller } from '../loop/run-context.ts'
import { problemsOf } from '../tools/compaction-options.ts'
import {
  isChoiceWord,
  jsonObject,
  resettingAll,
  type SettingName,
  settingSchemas,
  toolOptionsInput,
  toolOptionsWith,
  withOwn,
} from '../tools/settings.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from '../tools/text-limit.ts'
import type { Tool } from '../tools/tool.ts'
import type { InstructionOptions, PersistOptions, ToolOptionsInput } from './chat-settings.ts'
import {
  type AssignedChanges,
  assignedIn,
  changedSince,
  type PendingChanges,
  type Snapshot,
  together,
  unchanged,
  withoutModel,
} from './pending-changes.ts'
import { isName, isToolOrName } from './pending-names.ts'
import { previewed } from './preview.ts'

/** System messages of one object alone: behind the stored ones, or in place of them. */
type OwnInstructions = NonNullable<Caller['instructions']>

const persistSchema = z.strictObject({ persist: z.boolean().optional() })
const instructionOptions = persistSchema.extend({
  append: z.boolean().optional(),
  cacheUntilHere: z.union([z.boolean(), z.looseObject({})]).optional(),
})

/** What was configured on a chat object and is not stored yet. */
export class PendingConfiguration {
  readonly #chatId: string
  #settings: ChatSettings
  /** Settings that are not to be stored; they outlive a reload. */
  #own: ChatSettings = {}
  #ownInstructions: OwnInstructions | null = null
  #changes = unchanged
  /** What was stored in a transaction of the application's that may yet be rolled back. */
  #joined: { readonly transaction: Transaction; readonly changes: PendingChanges } | null = null
  /** Tools that came as objects: this object's own runs can use them without their being registered. */
  #tools = new Map<string, Tool>()

  constructor(row: ChatRow) {
    this.#chatId = row.id
    this.#settings = { ...row.settings }
  }

  /** What counts for this object: as they will be stored, and its own over them. */
  get settings(): ChatSettings {
    return withOwn(this.#settings, this.#own)
  }

  /** What is this object's alone. */
  get own(): ChatSettings {
    return this.#own
  }

  get ownInstructions(): OwnInstructions | null {
    return this.#ownInstructions
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()]
  }

  isChanged(): boolean {
    return this.#unstored(undefined) !== unchanged
  }

  /** Columns that were set and are not stored yet; without those that were not. */
  get assigned(): AssignedChanges {
    return assignedIn(this.#unstored(undefined))
  }

  setInputs(inputs: unknown): void {
    const parsed = jsonObject.nullable().safeParse(inputs)
    if (!parsed.success) throw this.#bad(`withInputs takes an object of JSON or null: ${problemsOf(parsed.error)}`)
    this.#requireStorable('withInputs', parsed.data)
    this.#changes = { ...this.#changes, inputs: parsed.data }
  }

  setModel(model: string | null, provider: string | null | undefined): void {
    if (model !== null && !isName(model)) {
      throw this.#bad(`A model is named by its id or null, not ${JSON.stringify(model)?.slice(0, 60)}`)
    }
    if (provider !== undefined && provider !== null && !isName(provider)) {
      throw this.#bad(`A provider is named by a text or null, not ${JSON.stringify(provider)?.slice(0, 60)}`)
    }
    this.#changes = { ...this.#changes, model, provider: provider ?? null }
  }

  setProvider(provider: string | null): void {
    if (provider !== null && !isName(provider)) {
      throw this.#bad(`A provider is named by a text or null, not ${JSON.stringify(provider)?.slice(0, 60)}`)
    }
    this.#changes = { ...this.#changes, provider }
  }

  setInstructions(text: string | null, options: InstructionOptions): void {
    const parsed = instructionOptions.safeParse(options)
    if (!parsed.success) throw this.#bad('withInstructions takes { append, persist, cacheUntilHere } as its options')
    const { append = false, persist = true, cacheUntilHere = false } = parsed.data
    if (text !== null && typeof text !== 'string') throw this.#bad('withInstructions takes a text or null')
    if (text !== null && !isWithinLimit(text)) {
      throw this.#bad(`withInstructions takes ${TEXT_LIMIT_BYTES} bytes of text at most`)
    }
    this.#requireStorable('withInstructions', text)
    const cacheBoundary = typeof cacheUntilHere === 'boolean' ? cacheUntilHere || null : this.boundary(cacheUntilHere)
    const instruction = text === null ? null : { content: text, cacheBoundary }
    if (persist) this.#setStoredInstructions(instruction, append)
    else this.#setOwnInstructions(instruction, append)
  }

  #setStoredInstructions(instruction: Instruction | null, append: boolean): void {
    const { replaced, appended, ...others } = this.#changes
    this.#changes =
      append && instruction !== null
        ? { ...this.#changes, appended: [...appended, instruction] }
        : { ...others, replaced: instruction === null ? [] : [instruction], appended: [] }
  }

  #setOwnInstructions(instruction: Instruction | null, append: boolean): void {
    const before = this.#ownInstructions
    if (instruction === null) this.#ownInstructions = null
    else if (append) {
      this.#ownInstructions = { said: [...(before?.said ?? []), instruction], append: before?.append ?? true }
    } else this.#ownInstructions = { said: [instruction], append: false }
  }

  /** What a boundary of the prompt cache is stored as. @throws {ArgumentError} */
  boundary(options: unknown): CacheBoundary {
    const boundary = cacheBoundaryOf(options)
    if (boundary === null) throw this.#bad(`cacheUntilHere ${boundaryWords}`)
    return boundary
  }

  /** Checks a setting and keeps it: to be stored, or for this object alone. Null: nothing is said. */
  set(key: SettingName, value: unknown, options: PersistOptions): void {
    const persist = this.#persists(options)
    const parsed = (settingSchemas[key] as z.ZodType<NonNullable<ChatSettings[SettingName]>>)
      .nullable()
      .safeParse(value)
    if (!parsed.success) {
      const name = `with${key[0]?.toUpperCase()}${key.slice(1)}`
      throw this.#bad(`${name} can't take this: ${problemsOf(parsed.error)}`)
    }
    this.#requireStorable(key, { [key]: parsed.data })
    this.#keep(key, parsed.data, persist)
  }

  /** @param known the tools that may be named; null where this process can't know. */
  setToolOptions(given: ToolOptionsInput | null, options: PersistOptions, known: ReadonlySet<string> | null): void {
    const persist = this.#persists(options)
    const parsed = toolOptionsInput.nullable().safeParse(given)
    if (!parsed.success) {
      const problem = `withToolOptions can't take this: ${problemsOf(parsed.error)} (chat ${this.#chatId}).`
      const onlyChoice = parsed.error.issues.every(({ path }) => path[0] === 'choice')
      throw new (onlyChoice ? InvalidToolChoiceError : ArgumentError)(problem, { chatId: this.#chatId })
    }
    this.#requireStorable('withToolOptions', parsed.data)
    this.#requireChoice(parsed.data?.choice ?? undefined, known)
    if (persist) this.#set('toolOptions', toolOptionsWith(this.#settings.toolOptions, parsed.data))
    // What is stored now counts, so the object has none of its own of the same name; the others it keeps.
    const own = parsed.data !== null && persist ? resettingAll(parsed.data) : parsed.data
    this.#setOwn('toolOptions', toolOptionsWith(this.#own.toolOptions, own))
  }

  #requireChoice(choice: string | undefined, known: ReadonlySet<string> | null): void {
    if (choice === undefined || isChoiceWord(choice)) return
    if (known === null || known.has(choice) || this.#tools.has(choice)) return
    throw new InvalidToolChoiceError(
      `Chat ${this.#chatId} has no tool ${JSON.stringify(choice)} to be called: name one of its tools, or give it that tool first.`,
      { chatId: this.#chatId },
    )
  }

  #keep(key: SettingName, value: NonNullable<ChatSettings[SettingName]> | null, persist: boolean): void {
    this.#setOwn(key, persist ? null : (value as never))
    if (persist) this.#set(key, value as never)
  }

  addTools(tools: readonly (Tool | string | null)[], options: PersistOptions, known: ReadonlySet<string>): void {
    const persist = this.#persists(options)
    if (tools.length === 1 && tools[0] === null) {
      this.#setOwn('tools', null)
      if (!persist) return
      this.#tools.clear()
      this.#set('tools', null)
      return
    }
    for (const tool of tools) {
      if (tool === null || !isToolOrName(tool)) throw this.#bad('withTools takes tools, their names, or null alone')
      if (typeof tool === 'string' && !known.has(tool) && !this.#tools.has(tool)) {
        throw this.#bad(
          `There is no tool named ${JSON.stringify(tool)}: pass it to connect({ tools }), or hand in the tool itself`,
        )
      }
    }
    const given = tools.filter((tool) => tool !== null)
    for (const tool of given) if (typeof tool !== 'string') this.#tools.set(tool.name, tool)
    const names = given.map((tool) => (typeof tool === 'string' ? tool : tool.name))
    const { tools: own } = this.#own
    const together = (before: readonly string[] = []) => [...new Set([...before, ...names])]
    if (!persist || own !== undefined) this.#setOwn('tools', together(own ?? this.#settings.tools))
    if (persist) this.#set('tools', together(this.#settings.tools))
  }

  /** What a snapshot says in rows. `stored` reads the system messages as they are, where they are needed. */
  async resolve(
    { changes, settings }: Snapshot,
    stored: () => Promise<readonly Instruction[]>,
  ): Promise<PendingSettings> {
    const { settings: changed, replaced, appended } = changes
    const speaks = replaced !== undefined || appended.length > 0
    return {
      ...assignedIn(changes),
      ...(changed === undefined ? {} : { settings, changed }),
      ...(speaks ? { instructions: [...(replaced ?? (await stored())), ...appended] } : {}),
    }
  }

  /** A chat and its messages as they would be once everything pending was stored. */
  async preview(chat: ChatRow, transcript: readonly TranscriptMessage[]): Promise<ReturnType<typeof previewed>> {
    const system = transcript.filter((message) => message.role === 'system')
    return previewed(chat, transcript, await this.resolve(this.snapshot(), async () => system.map(instructionOf)))
  }

  /**
   * What the next verb stores. What an earlier verb stored in the same transaction `join` is left out; what another, open one stored is
   * not certain yet.
   */
  snapshot(join?: Transaction): Snapshot {
    return { changes: this.#unstored(join), settings: this.#settings }
  }

  /** What a snapshot says is stored, or is once the transaction `join` is committed; what was set since then is not. */
  settle(stored: Snapshot, join?: Transaction): void {
    const later = changedSince(stored, this.snapshot(join))
    const before = this.#joined?.transaction === join ? this.#joined?.changes : undefined
    const changes =
      join === undefined ? unchanged : before === undefined ? stored.changes : together(before, stored.changes)
    this.#joined = join === undefined || changes === unchanged ? null : { transaction: join, changes }
    this.#changes = later
  }

  /** What is not stored as far as the transaction `join`, or anyone, can see. */
  #unstored(join: Transaction | undefined): PendingChanges {
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

  /** The chat's row was read anew: what was set since it was stored stands, but for a model and a provider. */
  reset(row: ChatRow): void {
    const { settings } = this.#unstored(undefined)
    this.#settings = overlaid(row.settings, this.#settings, settings)
    this.#changes = withoutModel(this.#changes)
    // What a transaction stored that may yet be rolled back is not to be stored twice.
    if (this.#joined !== null) this.#joined = { ...this.#joined, changes: withoutModel(this.#joined.changes) }
  }

  /** Null removes the key: the agent's value counts again. */
  #set<Key extends keyof ChatSettings>(key: Key, value: NonNullable<ChatSettings[Key]> | null): void {
    const { [key]: _, ...rest } = this.#settings
    this.#settings = value === null ? rest : { ...rest, [key]: value }
    this.#changes = together(this.#changes, { settings: [key], appended: [] })
  }

  #persists(options: PersistOptions): boolean {
    const parsed = persistSchema.safeParse(options)
    if (parsed.success) return parsed.data.persist ?? true
    throw this.#bad('A setter takes { persist: true } or { persist: false } as its options')
  }

  /** Null removes the key: what is stored counts again. */
  #setOwn<Key extends keyof ChatSettings>(key: Key, value: NonNullable<ChatSettings[Key]> | null): void {
    const { [key]: _, ...rest } = this.#own
    this.#own = value === null ? rest : { ...rest, [key]: value }
  }

  #requireStorable(what: string, value: unknown): void {
    const why = whyUnstorable(value)
    if (why !== null) throw this.#bad(`What ${what} was given ${why}`)
  }

  #bad(message: string): ArgumentError {
    return new ArgumentError(`${message} (chat ${this.#chatId}).`, { chatId: this.#chatId })
  }
}
