import { v7 as uuid } from 'uuid'
import { cancelTurn } from '../../models/cancelling.ts'
import { recordOf } from '../../models/index.ts'
import { enqueueMessage, unqueueMessage } from '../../models/queue.ts'
import type { QueuedMessageRecord } from '../../models/queued-message.ts'
import type { Json } from '../../models/rows.ts'
import { saveSettings } from '../../models/settings.ts'
import { whyUnstorable } from '../../models/storable.ts'
import { purgeFiles } from '../attachments/keeping.ts'
import { ArgumentError } from '../errors.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from '../tools/text-limit.ts'
import { ChatDecisions, type WakeOptions } from './chat-decisions.ts'
import type { InTransaction } from './chat-handle.ts'
import { type StoredFiles, type WithAttachments, withStoredFiles } from './stored-files.ts'
import { requireOptions } from './verb-options.ts'

/** How a message is queued. */
export interface QueueOptions extends WakeOptions, InTransaction, WithAttachments {
  /** True (default): it joins the running turn before its next model call; false: it starts the next turn. */
  readonly steer?: boolean | undefined
  /** Any JSON value; stored and handed back, never interpreted. */
  readonly owner?: Json | undefined
}

/** What else can be asked of a chat from any process, whoever runs it: queued messages, a stop. */
export abstract class ChatRequests extends ChatDecisions {
  /**
   * Puts a user message in the queue, from any process, and wakes a worker for it.
   * @param options.steer true (default): it joins the running turn before its next model call; false: it starts the next turn. (S49, S50)
   * @param options.owner any JSON value; stored and handed back, never interpreted.
   * @throws {ArgumentError} for a text that no message has, options that there are not, or an owner that is no JSON.
   */
  async queue(text: string | null, options: QueueOptions = {}): Promise<QueuedMessageRecord> {
    requireOptions('queue', options, this.id)
    requireText(text, this.id, options.attachments)
    return withStoredFiles(this.deps, options.attachments, options.transaction, (files) =>
      this.#queue(text, files, options),
    )
  }

  async #queue(
    content: string | null,
    { attachments, keep }: StoredFiles,
    { steer = true, owner = null, wake = true, transaction: join }: QueueOptions,
  ): Promise<QueuedMessageRecord> {
    const { db, models, ports, publish } = this.deps
    const id = uuid()
    const row = await this.storePending(async (pending, transaction) => {
      if (Object.keys(pending).length > 0) await saveSettings(db, this.id, pending, transaction)
      const queueing = { chatId: this.id, id, content, attachments, steer, owner, wake }
      const queued = await enqueueMessage(db, queueing, transaction)
      await keep()
      return queued
    }, join)
    const record = recordOf(models.QueuedMessage, row)
    await this.afterwards(join, async () => {
      publish(this.id, { type: 'queued', queuedId: id, content, steer })
      if (wake) await ports.bell.ring(this.id, 'complete')
      await this.told(join, 'afterQueue', () => this.callHooks('afterQueue', record, this))
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

  /**
   * Takes a message out of the queue. False: it was taken into the transcript or unqueued before, or is not of this chat. (S29)
   * @throws {ArgumentError} for what is neither a queued message nor an id.
   */
  async unqueue(queued: string | { readonly id: string }): Promise<boolean> {
    const { db, models, publish } = this.deps
    const id: unknown = typeof queued === 'string' ? queued : (queued as typeof queued | null | undefined)?.id
    if (typeof id !== 'string') {
      throw new ArgumentError(`unqueue() takes a queued message of chat ${this.id}, or its id.`, { chatId: this.id })
    }
    const wanted = this.hasHooks('afterUnqueue')
    const record = wanted ? await models.QueuedMessage.findByPk(id, { useMaster: true }) : null
    const { removed, files } = await db.transaction((transaction) => unqueueMessage(db, this.id, id, transaction))
    await purgeFiles(this.deps, files)
    if (removed) publish(this.id, { type: 'unqueued', queuedId: id })
    if (removed && record !== null) await this.callHooks('afterUnqueue', record, this)
    return removed
  }

  /**
   * Stops the turn, from any process: the model and the tools are aborted, what was shown is kept, open calls are closed.
   * Changes nothing when nothing runs, is wanted or is parked. Queued messages stay; sub-chats are stopped too, also those that a turn
   * which was given up has left at work. (S57, S61, S63, E92, E175)
   * @param options.turn only if the chat is still in this turn.
   * @throws {ArgumentError} for a turn that is no number.
   */
  async cancel(options: { readonly turn?: number } = {}): Promise<this> {
    requireOptions('cancel', options, this.id)
    const { db, ports } = this.deps
    const cancelled = await cancelTurn(db, this.id, options.turn ?? null)
    await Promise.all(cancelled.map((id) => ports.bell.ring(id, 'complete')))
    return this
  }
}

/** @throws {ArgumentError} */
export function requireText(text: unknown, chatId: string, attachments?: unknown): asserts text is string | null {
  const hasFiles = Array.isArray(attachments) ? attachments.some(Boolean) : Boolean(attachments)
  if (hasFiles && (text === null || text === '')) return
  if (typeof text !== 'string' || text === '') {
    throw new ArgumentError(`A user message of chat ${chatId} must be a text that is not empty, or have attachments.`, {
      chatId,
    })
  }
  const why = whyUnstorable(text)
  if (why !== null) throw new ArgumentError(`A user message of chat ${chatId} ${why}.`, { chatId })
  if (isWithinLimit(text)) return
  throw new ArgumentError(`A user message of chat ${chatId} may have ${TEXT_LIMIT_BYTES} bytes at most: shorten it.`, {
    chatId,
  })
}
