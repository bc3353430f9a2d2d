import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import * as z from 'zod'
import type { ChatRecord } from '../../models/chat.ts'
import { chatNotFound } from '../../models/claims.ts'
import { chatColumns } from '../../models/columns.ts'
import { insertFork, readChat } from '../../models/forking.ts'
import { type Owner, ownerKey } from '../../models/owner.ts'
import type { ChatRow, JsonObject, TranscriptMessage } from '../../models/rows.ts'
import { insertChat } from '../../models/staging.ts'
import { whyUnstorable } from '../../models/storable.ts'
import { lookAtChat, readTranscript } from '../../models/transcript.ts'
import { ArgumentError, MissingAgentError } from '../errors.ts'
import { isRetryable } from '../loop/ending.ts'
import { forked } from '../loop/fork-point.ts'
import type { Agent } from '../tools/agent.ts'
import { checkInputs, storedInstructions } from '../tools/instructions.ts'
import { jsonObject } from '../tools/settings.ts'
import { type SettingsInput, settingsShape, storedSettings } from '../tools/settings-input.ts'
import { Chat } from './chat.ts'
import type { ChatDependencies, InTransaction } from './chat-handle.ts'
import { type ChatsListOptions, type ChatsSearchOptions, readChats } from './chat-lists.ts'
import { ownerInput } from './owner-input.ts'
import { removeChat } from './remove-chat.ts'
import { requireOptions } from './verb-options.ts'

/** What a new chat is made with. */
export interface NewChat extends SettingsInput {
  /** The agent that runs it; left out, the configured model without tools or instructions of its own. */
  readonly agent?: string | Pick<Agent, 'name'> | undefined
  /** The model to ask in place of the agent's. */
  readonly model?: string | undefined
  /** The provider that goes with `model`. Default: the agent's. */
  readonly provider?: string | undefined
  /**
   * What the chat belongs to, in the application's words: a text, or `{ type, id }`. Stored, handed back as given, never interpreted.
   * At most 255 characters; a record's type and id take 19 beside their own. (E50)
   */
  readonly owner?: Owner | undefined
  /** What the agent's instructions are made with: JSON, as its `inputs` schema takes it. No secrets: it is stored. (E94) */
  readonly inputs?: JsonObject | null | undefined
}

/** One page of chats. */
export interface ChatsPage {
  /** Newest first. */
  readonly chats: readonly Chat[]
  /** For `before` of the next page; null after the last one. */
  readonly next: string | null
}

/** How a chat is forked. */
export interface ForkOptions extends InTransaction {
  /** The position or the id of the last message that is copied. Default: the last one. */
  readonly at?: number | string | undefined
}

/** How a chat is made. */
export interface CreateOptions extends InTransaction {
  /**
   * Takes the name of an agent that this process does not know, for a process that runs no chats. Nothing looks whether
   * any worker has it: without one the chat waits, `diagnosis()` says for what, and after ten minutes it has failed.
   * Default false: such a name is refused.
   */
  readonly agentElsewhere?: boolean | undefined
}

const word = z.string().min(1).max(255)
const schema = z.strictObject({
  agent: z.union([word, z.object({ name: word })]).optional(),
  model: word.optional(),
  provider: word.optional(),
  owner: ownerInput.optional(),
  inputs: jsonObject.nullish(),
  ...settingsShape,
})

/** The conversations of a database: `mill.chats`. */
export class Chats {
  readonly #deps: ChatDependencies

  /** @internal */
  constructor(deps: ChatDependencies) {
    this.#deps = deps
  }

  /**
   * Makes a chat.
   * @throws {ArgumentError} for an option that no chat has, or inputs that the agent does not take.
   * @throws {ConfigurationError} when the agent stores its instructions with the chat and could not make them.
   * @throws {MissingAgentError} when this process does not know the agent, and `agentElsewhere` is not set.
   * @throws {ArgumentError} for a transaction that can't be joined.
   */
  async create(options: NewChat = {}, how: CreateOptions = {}): Promise<Chat> {
    requireOptions('chats.create', how)
    const { transaction: join, agentElsewhere = false } = how
    const parsed = schema.safeParse(options)
    if (!parsed.success) {
      const problems = parsed.error.issues
        .map((issue) => `${issue.path.join('.') || 'options'}: ${issue.message}`)
        .join('; ')
      throw new ArgumentError(`chats.create() can't make such a chat. ${problems}`)
    }
    const why = whyUnstorable(parsed.data)
    if (why !== null) throw new ArgumentError(`chats.create() can't make such a chat: an option ${why}.`)
    const { agent, model, provider, owner, inputs = null } = parsed.data
    const name = typeof agent === 'object' ? agent.name : (agent ?? null)
    if (name !== null && !agentElsewhere && this.#deps.ports.agentNamed(name) === null) {
      throw new MissingAgentError(
        `This process has no agent ${JSON.stringify(name)}. Give it to connect({ agents }), or, if only workers elsewhere ` +
          'run its chats, say { agentElsewhere: true }.',
      )
    }
    const id = uuid()
    const { db } = this.#deps
    const row = {
      id,
      agent: name,
      model: model ?? null,
      provider: provider ?? null,
      owner: owner === undefined ? null : ownerKey(owner),
      settings: storedSettings(parsed.data),
      inputs,
    }
    const known = this.#deps.agentOf(row)
    if (known !== null) await checkInputs(known, inputs, 'chats.create()')
    const instructions = known === null ? null : await storedInstructions(known, row, isRetryable)
    const named = row.model === null ? null : await this.#deps.nameModel(row, row.model)
    if (join === undefined) await insertChat(db, { row, named, instructions })
    else await db.transaction((transaction) => insertChat(db, { row, named, instructions }, transaction), join)
    return this.#look(id, join)
  }

  /** @throws {ChatNotFoundError} when there is no such chat. */
  async find(id: string): Promise<Chat> {
    return this.#look(id)
  }

  /**
   * Chats, newest first, a page at a time; a chat that is made meanwhile moves no other to another page. (E51)
   * @throws {ArgumentError} for options that there are not, or a `before` that no page gave.
   */
  async list(options: ChatsListOptions = {}): Promise<ChatsPage> {
    return this.#page('chats.list()', options, null)
  }

  /**
   * Chats of an owner of which a question or an answer has `text` in it, newest first; what matches is as of `chat.search`, which gives
   * the messages. Every message of that owner may be read: for many long chats keep a search index of your own. (E52)
   * @param text 1 to 1 000 characters.
   * @throws {ArgumentError} for options that there are not, no owner, or no text.
   */
  async search(text: string, options: ChatsSearchOptions): Promise<ChatsPage> {
    return this.#page('chats.search()', options, text)
  }

  async #page(verb: string, options: ChatsListOptions, text: string | null): Promise<ChatsPage> {
    const { rows, next } = await readChats(this.#deps, verb, options, text)
    return { chats: rows.map((row) => new Chat(row, this.#deps)), next }
  }

  /**
   * Removes a chat with all of its rows, as `chat.delete()` does. (E53)
   * @throws {ChatNotFoundError} when there is no such chat.
   */
  async delete(id: string): Promise<void> {
    await removeChat(this.#deps, String(id))
  }

  /**
   * A new chat with copies of the messages of an old one up to a point: same agent, model, settings, instructions and owner; whole rounds,
   * and nothing from an open one on. It is idle and wanted by nobody; claim, cancel, queue, usage entries, and what was allowed for
   * the rest of the old chat stay there. The old chat is not locked and may be running: what is stored at one moment is copied. (E54)
   * @throws {ChatNotFoundError} when there is no such chat. {ArgumentError} when it has no such message. {AttachmentError} when a file was
   *   removed at that moment: fork it again. (E64)
   */
  async fork(chat: string | Pick<Chat, 'id'>, options: ForkOptions = {}): Promise<Chat> {
    requireOptions('chats.fork', options)
    const { at, transaction: join } = options
    const { db } = this.#deps
    const source = String(typeof chat === 'string' ? chat : (chat as Pick<Chat, 'id'> | null | undefined)?.id)
    const id = uuid()
    await db.transaction(async (transaction) => {
      const row = await readChat(db, source, transaction)
      if (row === null) throw chatNotFound(source)
      const transcript = await readTranscript(db, source, transaction)
      const copied = forked(transcript, at === undefined ? null : positionOf(source, transcript, at))
      await insertFork(db, { id, source: row, ...copied }, transaction)
    }, join)
    return this.#look(id, join)
  }

  async #look(id: string, transaction?: Transaction): Promise<Chat> {
    const look = typeof id === 'string' ? await lookAtChat(this.#deps.db, id, transaction) : null
    if (look === null) throw chatNotFound(String(id))
    return new Chat(look.chat, this.#deps)
  }

  /**
   * The chat of a row that the application loaded itself, with all columns of ours; others are left out.
   * @throws {ArgumentError} for a row that lacks some.
   */
  from(record: ChatRecord): Chat {
    const given: unknown = typeof (record as ChatRecord | null)?.get === 'function' ? record.get({ plain: true }) : {}
    const values: Readonly<Record<string, unknown>> = { ...(given as object) }
    const missing = Object.keys(chatColumns).filter((key) => values[key] === undefined)
    if (missing.length > 0) {
      throw new ArgumentError(
        `chats.from() takes a whole row of mill.models.Chat; this one lacks ${missing.join(', ')}. Load it without \`attributes\`.`,
      )
    }
    const row = Object.fromEntries(Object.keys(chatColumns).map((key) => [key, values[key]]))
    return new Chat(row as unknown as ChatRow, this.#deps)
  }
}

/** @throws {ArgumentError} when there is no such message. */
function positionOf(chatId: string, transcript: readonly TranscriptMessage[], at: number | string): number {
  const message = transcript.find(({ id, position, role }) => role !== 'system' && (id === at || position === at))
  if (message !== undefined) return message.position
  throw new ArgumentError(
    `Chat ${chatId} has no message ${String(at)} to be forked at: pass the position or the id of one of messages().`,
    { chatId },
  )
}
