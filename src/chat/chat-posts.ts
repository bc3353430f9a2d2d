import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import { chatNotFound } from '../../models/claims.ts'
import { recordOf } from '../../models/index.ts'
import { userMessage } from '../../models/new-message.ts'
import { postMessage } from '../../models/posting.ts'
import { readWhereabouts } from '../../models/receipts.ts'
import type { QueuedMessageRow } from '../../models/rows.ts'
import type { PendingSettings } from '../../models/settings.ts'
import { type Staged, type Staging, stageMessage } from '../../models/staging.ts'
import { ArgumentError } from '../errors.ts'
import type { InTransaction } from './chat-handle.ts'
import { ChatRequests, requireText } from './chat-requests.ts'
import { type PostOptions, postOptions } from './post-options.ts'
import { type Receipt, receiptOf } from './receipt.ts'
import { type StoredFiles, type WithAttachments, withStoredFiles } from './stored-files.ts'
import { requireOptions } from './verb-options.ts'

/** What goes with a question. */
export interface AskOptions extends WithAttachments {
  /** Also ask for the chat to be run by a worker, as `jobs.complete.enqueue` does. */
  readonly enqueue?: boolean
}

/** What goes with a question that is answered later. */
export interface AskLaterOptions extends AskOptions, InTransaction {}

/** A message that is being stored: what its rows are made of, and the ids of what leaves the queue before it. */
interface Draft {
  readonly staging: (pending: PendingSettings) => Staging
  readonly messageIds: ReadonlyMap<string, string>
}

const longestId = 36

/** Messages that users write, and what became of them. */
export abstract class ChatPosts extends ChatRequests {
  /**
   * Adds a user message as {@link ask} does, without running anything. (S52)
   * @throws {PendingToolCallsError} while the last answer's calls are open; nothing is written then. (S42)
   * @throws {ArgumentError} for a text that no message has, options that there are not, or a transaction that can't be joined.
   */
  async askLater(text: string | null, options: AskLaterOptions = {}): Promise<this> {
    requireOptions('askLater', options, this.id)
    requireText(text, this.id, options.attachments)
    const { enqueue, transaction: join } = options
    return withStoredFiles(this.deps, options.attachments, join, async (files) => {
      const { staging, messageIds } = this.#draft(text, files, enqueue === true)
      const staged = await this.storePending(async (pending, transaction) => {
        const done = await stageMessage(this.deps.db, staging(pending), transaction)
        await files.keep()
        return done
      }, join)
      await this.afterwards(join, async () => {
        this.#showStaged(staged, messageIds)
        if (staged.kind === 'queued' || enqueue === true) await this.deps.ports.bell.ring(this.id, 'complete')
        await this.#tellStaged(staged, messageIds, join)
      })
      return this
    })
  }

  /**
   * Accepts a user message whatever the chat is doing, wants the chat run, wakes a worker, and returns a receipt: `delivered` where
   * nothing runs and no call is open, so that the message is in the transcript, behind everything queued; else `waiting`. A chat that is
   * wanted, and that nobody has taken yet, counts as one where nothing runs. {@link receipt} tells later what became of it. (E72)
   * @param options.whileRunning what happens to it otherwise: `queue` (default), `steer`, `interrupt` or `reject`. (E73)
   * @param options.wake false: nobody is woken for it. A turn that it interrupts is: somebody has to carry out its cancel.
   * @throws {ChatRunningError} with `reject`, while a process runs the chat; nothing is written then. (E74)
   * @throws {PendingToolCallsError} with `reject`, while calls of the last answer are open and nobody runs them; nothing is written then. (E74)
   * @throws {ArgumentError} for a text that no message has, options that there are not, or a transaction that can't be joined.
   */
  async post(text: string | null, options: PostOptions = {}): Promise<Receipt> {
    const { whileRunning, wake, owner } = postOptions(options, this.id)
    const { attachments, transaction: join } = options
    requireText(text, this.id, attachments)
    return withStoredFiles(this.deps, attachments, join, async (files) => {
      const { staging, messageIds } = this.#draft(text, files, wake)
      const staged = await this.storePending(async (pending, transaction) => {
        const posting = { ...staging(pending), whileRunning, owner }
        const done = await postMessage(this.deps.db, posting, transaction)
        await files.keep()
        return { ...done, id: posting.message.id }
      }, join)
      await this.afterwards(join, async () => {
        this.#showStaged(staged, messageIds)
        const cancels = staged.kind === 'queued' && whileRunning === 'interrupt'
        if (wake || cancels) await this.deps.ports.bell.ring(this.id, 'complete')
        await this.#tellStaged(staged, messageIds, join)
      })
      return receiptOfStaged(staged, staged.id)
    })
  }

  /**
   * What became of a message that was accepted, by any process: by the id of its receipt or in the queue, or by that of a user message
   * of the transcript. Null: the chat has accepted none such. (E70, E71)
   * @param message a queued message, a receipt, or its id.
   * @throws {ArgumentError} for what is no id.
   * @throws {ChatNotFoundError} when the chat was deleted.
   */
  async receipt(message: string | { readonly id: string }): Promise<Receipt | null> {
    const id: unknown = typeof message === 'string' ? message : (message as { id?: unknown } | null | undefined)?.id
    if (typeof id !== 'string') {
      throw new ArgumentError(`A receipt of chat ${this.id} is asked for by the id of a message, or with it.`, {
        chatId: this.id,
      })
    }
    // No id is longer, and a statement may not be of any length.
    const whereabouts = await readWhereabouts(this.deps.db, this.id, id.length > longestId ? '' : id)
    if (whereabouts === null) throw chatNotFound(this.id)
    return receiptOf(id, whereabouts)
  }

  /** Ids are made here, outside of the transaction, which may be tried again. */
  #draft(content: string | null, { attachments }: StoredFiles, want: boolean): Draft {
    const message = { id: uuid(), content, attachments }
    const messageIds = new Map<string, string>()
    const toMessage = (queued: QueuedMessageRow) => {
      const id = messageIds.get(queued.id) ?? uuid()
      messageIds.set(queued.id, id)
      return userMessage(this.id, id, queued)
    }
    return { messageIds, staging: (pending) => ({ chatId: this.id, message, want, pending, toMessage }) }
  }

  /** Before anybody is woken: what a worker does with the message comes later. */
  #showStaged(staged: Staged, messageIds: ReadonlyMap<string, string>): void {
    const { publish } = this.deps
    if (staged.kind === 'queued') {
      const { id, content, steer } = staged.queued
      publish(this.id, { type: 'queued', queuedId: id, content, steer })
      return
    }
    for (const { id } of staged.drained) {
      publish(this.id, { type: 'dequeued', queuedId: id, messageId: messageIds.get(id) ?? '' })
    }
  }

  async #tellStaged(
    staged: Staged,
    messageIds: ReadonlyMap<string, string>,
    join: Transaction | undefined,
  ): Promise<void> {
    const { QueuedMessage, Message } = this.deps.models
    const queued = staged.kind === 'queued' ? [staged.queued] : staged.drained
    const hook = staged.kind === 'queued' ? 'afterQueue' : 'afterDequeue'
    if (!this.hasHooks(hook)) return
    for (const one of queued) {
      await this.told(join, hook, async () => {
        const record = recordOf(QueuedMessage, one)
        if (hook === 'afterQueue') return this.callHooks(hook, record, this)
        const message = await Message.findByPk(messageIds.get(one.id) ?? '', { useMaster: true })
        if (message !== null) await this.callHooks(hook, message, record, this)
      })
    }
  }
}

function receiptOfStaged(staged: Staged, id: string): Receipt {
  if (staged.kind === 'staged') return { id, status: 'delivered', messageId: id, at: staged.at }
  const { createdAt: queuedAt, steer } = staged.queued
  return { id, status: 'waiting', queuedAt, steer }
}
