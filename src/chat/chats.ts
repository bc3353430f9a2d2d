import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import * as z from 'zod'
import type { ChatRecord } from '../../models/chat.ts'
import { chatNotFound } from '../../models/claims.ts'
import { chatColumns } from '../../models/columns.ts'
import type { ChatRow } from '../../models/rows.ts'
import { insertChat } from '../../models/staging.ts'
import { lookAtChat } from '../../models/transcript.ts'
import { ArgumentError, MissingAgentError } from '../errors.ts'
import type { Agent } from '../tools/agent.ts'
import { type SettingsInput, settingsShape, storedSettings } from '../tools/settings-input.ts'
import { Chat } from './chat.ts'
import type { ChatDependencies, InTransaction } from './chat-handle.ts'

/** What a new chat is made with. */
export interface NewChat extends SettingsInput {
  /** The agent that runs it; left out, the configured model without tools or instructions of its own. */
  readonly agent?: string | Pick<Agent, 'name'> | undefined
  /** The model to ask in place of the agent's. */
  readonly model?: string | undefined
  /** The provider that goes with `model`. Default: the agent's. */
  readonly provider?: string | undefined
  /** What the chat belongs to, in the application's words: stored, handed back, never interpreted. At most 255 characters. */
  readonly owner?: string | undefined
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
  owner: word.optional(),
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
   * @throws {ArgumentError} for an option that no chat has.
   * @throws {MissingAgentError} when this process does not know the agent, and `agentElsewhere` is not set.
   * @throws {ArgumentError} for a transaction that can't be joined.
   */
  async create(
    options: NewChat = {},
    { transaction: join, agentElsewhere = false }: CreateOptions = {},
  ): Promise<Chat> {
    const parsed = schema.safeParse(options)
    if (!parsed.success) {
      const problems = parsed.error.issues
        .map((issue) => `${issue.path.join('.') || 'options'}: ${issue.message}`)
        .join('; ')
      throw new ArgumentError(`chats.create() can't make such a chat. ${problems}`)
    }
    const { agent, model, provider, owner } = parsed.data
    const name = typeof agent === 'object' ? agent.name : (agent ?? null)
    if (name !== null && !agentElsewhere && !this.#deps.ports.hasAgent(name)) {
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
      owner: owner ?? null,
      settings: storedSettings(parsed.data),
    }
    const named = row.model === null ? null : await this.#deps.nameModel(row, row.model)
    if (join === undefined) await insertChat(db, row, named)
    else await db.transaction((transaction) => insertChat(db, row, named, transaction), join)
    return this.#look(id, join)
  }

  /** @throws {ChatNotFoundError} when there is no such chat. */
  async find(id: string): Promise<Chat> {
    return this.#look(id)
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
