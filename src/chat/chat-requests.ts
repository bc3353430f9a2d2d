import { v7 as uuid } from 'uuid'
import { decide } from '../../models/decisions.ts'
import { recordOf } from '../../models/index.ts'
import { enqueueMessage, unqueueMessage } from '../../models/queue.ts'
import type { QueuedMessageRecord } from '../../models/queued-message.ts'
import type { Json } from '../../models/rows.ts'
import { saveSettings } from '../../models/settings.ts'
import { cancelTurn } from '../../models/wishes.ts'
import { ArgumentError, ToolCallDecidedError, ToolCallRunningError } from '../errors.ts'
import { eventToolCall } from '../events/tool-call.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from '../tools/text-limit.ts'
import type { InTransaction } from './chat-handle.ts'
import { ChatReadings } from './chat-readings.ts'

/** Whether workers are told of what was just written. */
export interface WakeOptions {
  /** False: nobody is woken for it; a process that runs the chat sees it all the same. Default true. */
  readonly wake?: boolean
}

/** How a decision about a tool call is recorded. */
export interface DecideOptions extends WakeOptions {
  /**
   * True: only if nobody has decided about the call yet; of several people at once one wins, and the others get a
   * {@link ToolCallDecidedError}. False (default): until the call starts the latest decision counts, and one that comes too
   * late for it changes nothing.
   */
  readonly ifUndecided?: boolean
}

/** A tool call record, its row's id, or its public id. */
export type ToolCallOrId =
  | string
  | {
      /** The id of the row. */
      readonly id: string
    }

/** What can be asked of a chat from any process, whoever runs it: decisions, queued messages, a stop. */
export abstract class ChatRequests extends ChatReadings {
  /**
   * Lets a call run, from any process, and wakes a worker for it. A call that runs or is answered stays as it is. (S24, S25, S35)
   * @param call a tool call record, or either of its ids.
   * @param options.remember also lets later calls of the same tool in this chat run without asking. (S38)
   * @throws {ToolCallDecidedError} with `ifUndecided`, when the call was decided, begun or answered before. (S120)
   * @throws {ArgumentError} when this chat has no such call. (S43)
   */
  async approve(call: ToolCallOrId, options: DecideOptions & { readonly remember?: boolean } = {}): Promise<this> {
    const approval = options.remember === true ? 'remembered' : 'approved'
    const outcome = await this.#decide(call, approval, options)
    if (outcome === 'running' && options.ifUndecided === true) throw this.#tooLate('it is being executed')
    return this
  }

  /**
   * Refuses a call: the model is told so instead of the call being run. An answered call stays as it is. (S25, S36)
   * @throws {ToolCallRunningError} when the call is being executed: it goes on, and the model gets its result. (S23)
   * @throws {ToolCallDecidedError} with `ifUndecided`, when the call was decided or answered before. (S120)
   * @throws {ArgumentError} when this chat has no such call. (S43)
   */
  async deny(call: ToolCallOrId, options: DecideOptions = {}): Promise<this> {
    const outcome = await this.#decide(call, 'denied', options)
    if (outcome === 'running') {
      throw new ToolCallRunningError(`A call of chat ${this.id} is being executed: it can't be denied any more.`, {
        chatId: this.id,
      })
    }
    return this
  }

  async #decide(call: ToolCallOrId, approval: 'approved' | 'remembered' | 'denied', options: DecideOptions) {
    const { db, ports, publish } = this.deps
    const id = typeof call === 'string' ? call : call.id
    const wake = options.wake ?? true
    const ifUndecided = options.ifUndecided ?? false
    const decision = { chatId: this.id, call: id, approval, wake, ifUndecided } as const
    const decided = await db.transaction((transaction) => decide(db, decision, transaction))
    if (decided.outcome === 'unknown' || decided.call === null) {
      throw new ArgumentError(
        `Chat ${this.id} has no tool call ${id}: pass a record of pendingApprovals(), or its id.`,
        {
          chatId: this.id,
        },
      )
    }
    if (decided.outcome === 'decided') throw this.#tooLate(`it is ${decided.call.approval}`)
    if (decided.outcome === 'answered' && ifUndecided) throw this.#tooLate('it has its result')
    if (decided.outcome === 'recorded') {
      publish(this.id, { type: 'approval.decided', toolCall: eventToolCall(decided.call), approval })
      const { name, toolCallId } = decided.call
      const tool = this.deps.toolNames(this.row).has(name) ? name : 'unknown'
      ports.observe({ type: 'approval.decided', chatId: this.id, tool, toolCallId, approval })
      if (wake) await ports.bell.ring(this.id, 'complete')
    }
    return decided.outcome
  }

  #tooLate(why: string): ToolCallDecidedError {
    return new ToolCallDecidedError(`Somebody was quicker to decide about a call of chat ${this.id}: ${why}.`, {
      chatId: this.id,
    })
  }

  /**
   * Puts a user message in the queue, from any process, and wakes a worker for it.
   * @param options.steer true (default): it joins the running turn before its next model call; false: it starts the next turn. (S49, S50)
   * @param options.owner any JSON value; stored and handed back, never interpreted.
   */
  async queue(
    text: string,
    options: WakeOptions & InTransaction & { readonly steer?: boolean; readonly owner?: Json } = {},
  ): Promise<QueuedMessageRecord> {
    requireText(text, this.id)
    const { db, models, ports, publish } = this.deps
    const { steer = true, owner = null, wake = true, transaction: join } = options
    const id = uuid()
    const row = await this.storePending(async (pending, transaction) => {
      if (Object.keys(pending).length > 0) await saveSettings(db, this.id, pending, transaction)
      return enqueueMessage(db, { chatId: this.id, id, content: text, steer, owner, wake }, transaction)
    }, join)
    const record = recordOf(models.QueuedMessage, row)
    await this.afterwards(join, async () => {
      publish(this.id, { type: 'queued', queuedId: id, content: text, steer })
      if (wake) await ports.bell.ring(this.id, 'complete')
      await this.callHooks('afterQueue', record, this)
    })
    return record
  }

  /** What waits in the queue, oldest first. (S59) */
  async queuedMessages(): Promise<QueuedMessageRecord[]> {
    return this.deps.models.QueuedMessage.findAll({
      where: { chatId: this.id },
      order: [['position', 'ASC']],
      useMaster: true,
    })
  }

  /** Takes a message out of the queue. False: it was taken into the transcript or unqueued before, or is not of this chat. (S29) */
  async unqueue(queued: string | { readonly id: string }): Promise<boolean> {
    const { db, models, publish } = this.deps
    const id = typeof queued === 'string' ? queued : queued.id
    const wanted = this.hasHooks('afterUnqueue')
    const record = wanted ? await models.QueuedMessage.findByPk(id, { useMaster: true }) : null
    const removed = await db.transaction((transaction) => unqueueMessage(db, this.id, id, transaction))
    if (removed) publish(this.id, { type: 'unqueued', queuedId: id })
    if (removed && record !== null) await this.callHooks('afterUnqueue', record, this)
    return removed
  }

  /**
   * Stops the turn, from any process: the model and the tools are aborted, what was shown is kept, open calls are closed.
   * Changes nothing when nothing runs, is wanted or is parked. Queued messages stay. (S57, S61, S63)
   * @param options.turn only if the chat is still in this turn.
   */
  async cancel(options: { readonly turn?: number } = {}): Promise<this> {
    const { db, ports } = this.deps
    if (await cancelTurn(db, this.id, options.turn ?? null)) await ports.bell.ring(this.id, 'complete')
    return this
  }
}

/** @throws {ArgumentError} */
export function requireText(text: unknown, chatId: string): asserts text is string {
  if (typeof text !== 'string' || text === '') {
    throw new ArgumentError(`A user message of chat ${chatId} must be a text that is not empty.`, { chatId })
  }
  if (isWithinLimit(text)) return
  throw new ArgumentError(`A user message of chat ${chatId} may have ${TEXT_LIMIT_BYTES} bytes at most: shorten it.`, {
    chatId,
  })
}
