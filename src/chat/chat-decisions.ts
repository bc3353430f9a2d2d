import type { Transaction } from 'sequelize'
import type { DecisionRecord } from '../../models/decision.ts'
import { answerRequest, type Decided, decide } from '../../models/decisions.ts'
import type { Approval, JsonObject } from '../../models/rows.ts'
import { whyUnstorable } from '../../models/storable.ts'
import { findToolCall } from '../../models/transcript.ts'
import { findChatOfCall } from '../../models/tree.ts'
import type { RequestState } from '../../models/waiting.ts'
import { ArgumentError, ArgumentsChangedError, ToolCallDecidedError, ToolCallRunningError } from '../errors.ts'
import type { LiveEvent } from '../events/event.ts'
import { eventToolCall } from '../events/tool-call.ts'
import { isJsonObject } from '../tools/json-schema.ts'
import { completedAnswer } from '../tools/pausing.ts'
import type { InTransaction } from './chat-handle.ts'
import { ChatReadings } from './chat-readings.ts'
import type { InputRequest } from './pending.ts'
import { requireJson, requireOptions } from './verb-options.ts'

/** Whether workers are told of what was just written. */
export interface WakeOptions {
  /** False: nobody is woken for it; a process that runs the chat sees it all the same. Default true. */
  readonly wake?: boolean | undefined
}

/** Who decides and why; kept as a row of `decisions`, in the same transaction. */
export interface DeciderOptions extends WakeOptions, InTransaction {
  /** Who, in the application's words. At most 255 characters. */
  readonly by?: string | undefined
  /** Why. Of a denial the model is told it. */
  readonly reason?: string | undefined
}

/** How a decision about a tool call is recorded. */
export interface DecideOptions extends DeciderOptions {
  /**
   * True: only if nobody has decided about the call yet; of several people at once one wins, and the others get a
   * {@link ToolCallDecidedError}. False (default): until the call starts the latest decision counts, and one that comes too
   * late for it changes nothing.
   */
  readonly ifUndecided?: boolean | undefined
  /** What `argumentsHash()` of the record said when it was shown: a decision about other arguments than those is refused. */
  readonly argumentsHash?: string | undefined
}

/** How a call is approved. */
export interface ApproveOptions extends DecideOptions {
  /** Also let later calls of the same tool in this chat run without asking. */
  readonly remember?: boolean | undefined
  /** Run it with these in place of the model's arguments, which are kept; the model is told. */
  readonly arguments?: JsonObject | undefined
}

/** A tool call record, its row's id, or its public id. */
export type ToolCallOrId =
  | string
  | {
      /** The id of the row. */
      readonly id: string
    }

/** What people say to a chat that waits for them. */
export abstract class ChatDecisions extends ChatReadings {
  /**
   * Lets a call run, from any process, and wakes a worker for it. A call that runs or is answered stays as it is. (S24, S25, S35)
   * @param call a tool call record, or either of its ids.
   * @param options.remember also lets later calls of the same tool in this chat run without asking. (S38)
   * @throws {ToolCallDecidedError} with `ifUndecided`, when the call was decided, begun or answered before. (S120)
   * @throws {ArgumentsChangedError} with `argumentsHash`, when the call would run with other arguments. (E42)
   * @throws {ArgumentError} when this chat has no such call (S43), its tool can't take `arguments`, or there are no such options.
   */
  async approve(call: ToolCallOrId, options: ApproveOptions = {}): Promise<this> {
    requireOptions('approve', options, this.id)
    if (options.arguments !== undefined) await this.#checkArguments(call, options.arguments)
    const { outcome } = await this.#decide(call, options.remember === true ? 'remembered' : 'approved', options)
    if (outcome === 'running' && options.ifUndecided === true) throw this.#tooLate('it is being executed')
    return this
  }

  /**
   * Refuses a call: the model is told so, and why, instead of the call being run. An answered call stays as it is. (S25, S36)
   * @throws {ToolCallRunningError} when the call is being executed: it goes on, and the model gets its result. (S23)
   * @throws {ToolCallDecidedError} with `ifUndecided`, when the call was decided or answered before. (S120)
   * @throws {ArgumentsChangedError} with `argumentsHash`, when the call would run with other arguments. (E42)
   * @throws {ArgumentError} when this chat has no such call (S43), or there are no such options.
   */
  async deny(call: ToolCallOrId, options: DecideOptions = {}): Promise<this> {
    requireOptions('deny', options, this.id)
    const { outcome } = await this.#decide(call, 'denied', options)
    if (outcome === 'running') {
      throw new ToolCallRunningError(`A call of chat ${this.id} is being executed: it can't be denied any more.`, {
        chatId: this.id,
      })
    }
    return this
  }

  /**
   * Answers a question of a tool, from any process, and wakes a worker: once all questions of its call are answered or declined the
   * tool goes on. The first answer counts; later ones, and those to a call that has its result, change nothing. (S97, S98)
   * @param request of {@link pendingInputs}, or its id.
   * @param values what each field is to be; what is left out takes its default.
   * @throws {ArgumentError} for a question that there is not, or values that its fields do not take.
   */
  async answer(
    request: InputRequest | string,
    values: Readonly<Record<string, unknown>>,
    options: DeciderOptions = {},
  ): Promise<this> {
    requireOptions('answer', options, this.id)
    requireJson('An answer', values, this.id)
    return this.#answer(request, options, { values })
  }

  /**
   * Declines to answer a question of a tool, which is told so. As {@link answer} otherwise.
   * @throws {ArgumentError} for a question that there is not.
   */
  async decline(request: InputRequest | string, options: DeciderOptions = {}): Promise<this> {
    requireOptions('decline', options, this.id)
    return this.#answer(request, options, null)
  }

  /** What was decided about calls of the chat, and answered to their questions, oldest first. (E41) */
  async decisions(): Promise<DecisionRecord[]> {
    const order: [string, string][] = [
      ['createdAt', 'ASC'],
      ['id', 'ASC'],
    ]
    return this.deps.models.Decision.findAll({ where: { chatId: this.id }, order, useMaster: true })
  }

  async #decide(
    call: ToolCallOrId,
    approval: Exclude<Approval, 'pending'>,
    options: DecideOptions & Pick<ApproveOptions, 'arguments'>,
  ): Promise<Decided> {
    const { db, ports } = this.deps
    const id = idOf(call)
    const { ifUndecided = false, argumentsHash = null } = options
    const decider = this.#decider(options)
    const decision = {
      ...decider,
      chatId: this.id,
      call: id,
      approval,
      ifUndecided,
      argumentsHash,
      arguments: options.arguments ?? null,
    }
    const decided = await db.transaction((transaction) => decide(db, decision, transaction), options.transaction)
    if (decided.outcome === 'unknown' || decided.call === null) {
      const below = await this.#below(id)
      if (below === null) throw this.#unknownCall(id)
      return below.#decide(id, approval, options)
    }
    if (decided.outcome === 'decided') throw this.#tooLate(`it is ${decided.call.approval}`)
    if (decided.outcome === 'answered' && ifUndecided) throw this.#tooLate('it has its result')
    if (decided.outcome === 'changed') {
      throw new ArgumentsChangedError(
        `Call ${decided.call.toolCallId} of chat ${this.id} has other arguments than those that were shown: look at it again.`,
        { chatId: this.id },
      )
    }
    const { call: row } = decided
    if (decided.outcome === 'recorded') {
      await this.#tell(options.transaction, decider.wake, () => {
        this.#publish({ type: 'approval.decided', toolCall: eventToolCall(row), approval })
        const tool = this.deps.toolNames(this.row).has(row.name) ? row.name : 'unknown'
        ports.observe({ type: 'approval.decided', chatId: this.id, tool, toolCallId: row.toolCallId, approval })
      })
    }
    return decided
  }

  async #answer(
    request: InputRequest | string,
    options: DeciderOptions,
    given: { readonly values: unknown } | null,
  ): Promise<this> {
    const { db } = this.deps
    const id = String(typeof request === 'string' ? request : (request as InputRequest | null | undefined)?.id)
    const [call = '', key = ''] = split(id)
    const answer = given === null ? null : (asked: RequestState) => completedAnswer(asked, given.values, this.id)
    const decider = this.#decider(options)
    const said = { ...decider, chatId: this.id, call, key, answer }
    const decided = await db.transaction((transaction) => answerRequest(db, said, transaction), options.transaction)
    if (decided.outcome === 'unknown') {
      const below = await this.#below(call)
      if (below !== null) {
        await below.#answer(id, options, given)
        return this
      }
      throw new ArgumentError(
        `Chat ${this.id} has no question ${id.slice(0, 60)}: pass one of pendingInputs(), or its id.`,
        {
          chatId: this.id,
        },
      )
    }
    const toolCallId = decided.call?.toolCallId ?? ''
    if (decided.outcome === 'recorded') {
      await this.#tell(options.transaction, decider.wake, () =>
        this.#publish({ type: 'input.answered', toolCallId, key, declined: given === null }),
      )
    }
    return this
  }

  /** Viewers of the chat at the top are told too. */
  #publish(event: LiveEvent): void {
    const { rootId } = this.row
    this.deps.publish(this.id, event)
    if (rootId !== null) this.deps.publish(rootId, event)
  }

  async #tell(transaction: Transaction | undefined, wake: boolean, tell: () => void): Promise<void> {
    await this.afterwards(transaction, async () => {
      tell()
      if (wake) await this.deps.ports.bell.ring(this.id, 'complete')
    })
  }

  #decider({ by, reason, wake = true }: DeciderOptions) {
    const isText = (value: unknown) => value === undefined || (typeof value === 'string' && value !== '')
    if (!isText(by) || !isText(reason) || (by ?? '').length > 255) {
      throw new ArgumentError(`by (at most 255 characters) and reason of a decision about chat ${this.id} are texts.`, {
        chatId: this.id,
      })
    }
    const why = whyUnstorable([by ?? null, reason ?? null])
    if (why !== null)
      throw new ArgumentError(`by or reason of a decision about chat ${this.id} ${why}.`, { chatId: this.id })
    return { by: by ?? null, reason: reason ?? null, wake }
  }

  /** By the tool's own schema where this process has the tool; elsewhere it is checked when it runs. */
  async #checkArguments(given: ToolCallOrId, edited: unknown): Promise<void> {
    const { db } = this.deps
    const id = idOf(given)
    const call = await findToolCall(db, this.id, id)
    if (call === null) {
      const below = await this.#below(id)
      if (below === null) throw this.#unknownCall(id)
      return below.#checkArguments(id, edited)
    }
    if (!isJsonObject(edited)) {
      throw new ArgumentError(`The arguments of a call of chat ${this.id} are an object.`, { chatId: this.id })
    }
    const why = whyUnstorable(edited)
    if (why !== null) throw new ArgumentError(`An argument for a call of chat ${this.id} ${why}.`, { chatId: this.id })
    const validated = await this.tools.get(call.name)?.validate(edited)
    if (validated === undefined || validated.ok) return
    throw new ArgumentError(`Tool ${call.name} of chat ${this.id} can't take these arguments: ${validated.message}`, {
      chatId: this.id,
    })
  }

  /** The sub-chat that has the call; null where none has. What is decided here about it is recorded there. (E91) */
  async #below(call: string): Promise<ChatDecisions | null> {
    const row = await findChatOfCall(this.deps.db, this.id, call)
    return row === null ? null : (this.deps.ports.chatOf(row) as ChatDecisions)
  }

  #unknownCall(id: string): ArgumentError {
    return new ArgumentError(
      `Chat ${this.id} has no tool call ${id.slice(0, 60)}: pass a record of pendingApprovals(), or its id.`,
      {
        chatId: this.id,
      },
    )
  }

  #tooLate(why: string): ToolCallDecidedError {
    return new ToolCallDecidedError(`Somebody was quicker to decide about a call of chat ${this.id}: ${why}.`, {
      chatId: this.id,
    })
  }
}

function idOf(call: ToolCallOrId): string {
  return String(typeof call === 'string' ? call : call?.id)
}

/** A question's id is that of its call, and its key. */
function split(id: unknown): string[] {
  const text = String(id)
  const at = text.indexOf(':')
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
