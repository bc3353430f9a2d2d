import * as z from 'zod'
import type { JsonObject } from '../../models/rows.ts'
import { transferChat } from '../../models/transferring.ts'
import { readSubChats } from '../../models/tree.ts'
import { ArgumentError, MissingAgentError } from '../errors.ts'
import { leavesInstructions, newTransfer } from '../loop/transfer.ts'
import type { Agent } from '../tools/agent.ts'
import { checkInputs } from '../tools/instructions.ts'
import { jsonObject } from '../tools/settings.ts'
import type { Chat } from './chat.ts'
import type { InTransaction } from './chat-handle.ts'
import { ChatModel } from './chat-model.ts'

/** How a chat becomes another agent's. */
export interface TransferToOptions extends InTransaction {
  /** What the new agent's instructions are made with, in place of what there is. Default: nothing. */
  readonly inputs?: JsonObject | null | undefined
  /** Takes the name of an agent that this process does not know. Default false: such a name is refused. */
  readonly agentElsewhere?: boolean | undefined
}

const word = z.string().min(1).max(255)
const transferSchema = z.strictObject({
  agent: z.union([word, z.looseObject({ name: word }).transform(({ name }) => name)]),
  inputs: jsonObject.nullish(),
  agentElsewhere: z.boolean().optional(),
})

/** Which agent a chat has, what that is given for it, and which other agents work for it. */
export abstract class ChatAgent extends ChatModel {
  /**
   * What the agent's instructions are made with from the next run on, in place of all that was given before; null = nothing. Stored by
   * the next verb. Instructions that were stored with the chat stay as they are. (E94)
   * @param inputs JSON, as the agent's `inputs` schema takes it; the verb that stores it throws {@link ArgumentError} where it does not.
   * @throws {ArgumentError} for what is no object of JSON.
   */
  withInputs(inputs: JsonObject | null): this {
    this.pending.setInputs(inputs)
    return this
  }

  /** What the agent's instructions are made with, as it was given; null = nothing. (E94) */
  get inputs(): JsonObject | null {
    const { inputs } = this.pending.assigned
    return inputs === undefined ? this.row.inputs : inputs
  }

  /** The chat whose tool call this one answers; null for a chat of its own. (E90) */
  get parent(): {
    /** That chat. */
    readonly chatId: string
    /** The id of the call's row. */
    readonly callId: string
  } | null {
    const { parentId, parentCallId } = this.row
    return parentId === null || parentCallId === null ? null : { chatId: parentId, callId: parentCallId }
  }

  /** The chats in which other agents answer calls of this one, and calls of those, ended ones too; oldest first. (E90) */
  async subChats(): Promise<Chat[]> {
    const rows = await readSubChats(this.deps.db, this.id)
    return rows.map((row) => this.deps.ports.chatOf(row) as Chat)
  }

  /**
   * Makes the chat another agent's, from any process: at once, or, while a process runs it or calls are open, once its round is whole.
   * Messages and settings stay, without the names of tools; instructions that the old agent stored with the chat go with it. Nobody is
   * woken. (E98)
   * @param agent made by `defineAgent`, or its name.
   * @throws {MissingAgentError} when this process does not know the agent, and `agentElsewhere` is not set.
   * @throws {ArgumentError} for other options, inputs that the agent does not take, or a transaction that can't be joined.
   */
  async transferTo(agent: string | Pick<Agent, 'name'>, options: TransferToOptions = {}): Promise<this> {
    const { transaction: join, ...given } = options
    const parsed = transferSchema.safeParse({ ...given, agent })
    if (!parsed.success) {
      const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'options'}: ${issue.message}`)
      throw new ArgumentError(`Chat ${this.id} can't be transferred so. ${problems.join('; ')}`, { chatId: this.id })
    }
    const { agent: name, inputs = null, agentElsewhere = false } = parsed.data
    const to = this.deps.ports.agentNamed(name)
    if (to === null && !agentElsewhere) {
      throw new MissingAgentError(
        `This process has no agent ${JSON.stringify(name)} to transfer chat ${this.id} to. Give it to connect({ agents }), or, if only ` +
          'workers elsewhere run its chats, say { agentElsewhere: true }.',
        { chatId: this.id },
      )
    }
    if (to !== null) await checkInputs(to, inputs, `Chat ${this.id}`)
    const { db } = this.deps
    // Instructions may be the application's own work, which must not hold up the row.
    const made = await newTransfer(this.row, { agent: name, inputs }, { from: null, to })
    const when = await db.transaction(async (transaction) => {
      const { chat, claimed } = await this.look(transaction)
      const transfer = { ...made, leavesInstructions: leavesInstructions(this.deps.agentOf(chat)) }
      return transferChat(db, { id: this.id, claimed }, transfer, transaction)
    }, join)
    if (when === 'later') return this
    this.row = { ...this.row, agent: name, inputs }
    await this.afterwards(join, async () => this.deps.publish(this.id, { type: 'transferred', agent: name }))
    return this
  }
}
