import type { Transaction } from 'sequelize'
import { onceCommitted } from '../../config/transaction.ts'
import { chatNotFound } from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import type { Models } from '../../models/index.ts'
import { findModel, type NamedModel } from '../../models/model-rows.ts'
import { type Owner, ownerOf } from '../../models/owner.ts'
import type { ChatRow, TranscriptMessage } from '../../models/rows.ts'
import { type Instruction, instructionOf, type PendingSettings } from '../../models/settings.ts'
import { type ChatLook, lookAtChat, readRecent, readSystemMessages, readTranscript } from '../../models/transcript.ts'
import type { AttachmentLimits } from '../attachments/source.ts'
import type { BlobStore } from '../attachments/store.ts'
import { UnknownModelError } from '../errors.ts'
import type { LiveEvent } from '../events/event.ts'
import type { EventsOptions } from '../events/options.ts'
import type { EventReader } from '../events/reader.ts'
import type { LoopPorts } from '../loop/run-context.ts'
import type { Agent } from '../tools/agent.ts'
import { checkInputs } from '../tools/instructions.ts'
import type { Tool } from '../tools/tool.ts'
import { asMessage, type Message } from './message.ts'
import { type TranscriptValue, valuesOf } from './message-values.ts'
import { type AssignedChanges, assignedIn } from './pending-changes.ts'
import { PendingConfiguration } from './pending-configuration.ts'

/** What a chat object works with. */
export interface ChatDependencies {
  readonly db: Database
  readonly models: Models
  readonly ports: LoopPorts
  /** Tells viewers of what happens outside a run. */
  readonly publish: (chatId: string, event: LiveEvent) => void
  readonly readEvents: (chatId: string, options: EventsOptions) => EventReader
  /** The agent of a chat; null where this process lacks it. */
  readonly agentOf: (chat: Pick<ChatRow, 'agent'>) => Agent | null
  /** Where files are kept, and what may be attached. */
  readonly files: AttachmentLimits & { readonly store: BlobStore }
  /** What is known of a model that a chat names. */
  readonly nameModel: (chat: Pick<ChatRow, 'agent' | 'provider'>, model: string) => Promise<NamedModel>
  /** The tools that this process has for a chat, by name. */
  readonly toolsOf: (chat: ChatRow) => ReadonlyMap<string, Tool>
  /** The names of the tools that may stand in a chat's settings. */
  readonly toolNames: (chat: ChatRow) => ReadonlySet<string>
}

/** What an act of a chat can be made part of. */
export interface InTransaction {
  /**
   * A transaction of the application's, of `mill.sequelize`, that reads committed data: `mill.transaction()` begins such a
   * one. What is written is part of it; workers are woken and viewers are told once it is committed.
   */
  readonly transaction?: Transaction | undefined
}

/** What every part of a chat's API stands on: the row, and the way to the rest. */
export abstract class ChatHandle {
  /** A UUIDv7: what `chats.find` and `jobs.complete.enqueue` take. */
  readonly id: string
  protected row: ChatRow
  protected readonly deps: ChatDependencies
  protected readonly pending: PendingConfiguration
  /**
   * False: only a model that some chat named before, or that the catalogue knows, may be stored. Default true, since a server of
   * one's own may serve any name; one that the provider does not know is its own error. Never stored.
   */
  assumeModelExists = true
  /** Whether a verb of this very object runs the chat: it does not wait for itself. */
  protected isRunningHere = false

  /** @internal */
  constructor(row: ChatRow, deps: ChatDependencies) {
    this.id = row.id
    this.row = row
    this.deps = deps
    this.pending = new PendingConfiguration(row)
  }

  /** The name of its agent, as of loading; null for a chat without one. */
  get agent(): string | null {
    return this.row.agent
  }

  /** What the application said the chat belongs to, in the form in which it did, or null. (E50) */
  get owner(): Owner | null {
    return ownerOf(this.row.owner)
  }

  /** Which chat this one was forked from, and up to which of its messages; null for a chat that was not. (E54) */
  get forkedFrom(): {
    /** The old chat, which may be gone. */
    readonly chatId: string
    /** The position of the last message that was copied; null where none was. */
    readonly position: number | null
  } | null {
    const { forkedFrom, forkedPosition } = this.row
    return forkedFrom === null ? null : { chatId: forkedFrom, position: forkedPosition }
  }

  /** The transcript in its order; summaries, whose `summaryThrough` is not null, among the messages that they came after. */
  async messages(): Promise<Message[]> {
    const transcript = await readTranscript(this.deps.db, this.id)
    return transcript.map((message) => asMessage(message, this.deps.files.store))
  }

  /**
   * The transcript as values, which `addMessage` takes back; summaries are left out. (M16)
   * @throws {OrphanedResultError} for a result whose call is not there. (M19)
   */
  async transcript(): Promise<TranscriptValue[]> {
    return valuesOf(await readTranscript(this.deps.db, this.id))
  }

  /**
   * Runs `store` in a transaction, or as part of the one given, with the settings that are not stored yet; what fails, or
   * is rolled back later, leaves them pending.
   * @internal
   */
  async storePending<T>(
    store: (pending: PendingSettings, transaction: Transaction) => Promise<T>,
    join?: Transaction,
  ): Promise<T> {
    // What is set meanwhile is for the next verb.
    const snapshot = this.pending.snapshot(join)
    const assigned = assignedIn(snapshot.changes)
    await this.#checkInputs(assigned)
    const named = await this.#namedModel(assigned)
    const stored = await this.deps.db.transaction(async (transaction) => {
      const resolved = await this.pending.resolve(snapshot, () => this.#systemTexts(transaction))
      const pending = resolved.model === undefined ? resolved : { ...resolved, named }
      return store(pending, transaction)
    }, join)
    this.pending.settle(snapshot, join)
    return stored
  }

  /** Where this process has the agent; elsewhere the worker finds out. */
  async #checkInputs({ inputs }: AssignedChanges): Promise<void> {
    const agent = this.deps.agentOf(this.row)
    if (inputs !== undefined && agent !== null) await checkInputs(agent, inputs, `Chat ${this.id}`)
  }

  /** What is known of the model that is about to be stored. Looked up before the transaction, which it would hold up. */
  async #namedModel({ model, provider }: AssignedChanges): Promise<NamedModel | null> {
    if (!model) return null
    const named = await this.deps.nameModel({ agent: this.row.agent, provider: provider ?? null }, model)
    const isKnown =
      this.assumeModelExists || named.contextWindow != null || (await findModel(this.deps.db, named)) !== null
    if (isKnown) return named
    throw new UnknownModelError(
      `Nobody knows model ${JSON.stringify(model)} of ${named.provider}: no chat has named it, and the catalogue does not. ` +
        'Check the name, or set assumeModelExists.',
      { chatId: this.id },
    )
  }

  /** What the world outside the database is told of: now, or once the transaction is committed, or never. */
  protected async afterwards(transaction: Transaction | undefined, tell: () => Promise<void>): Promise<void> {
    if (transaction === undefined) await tell()
    else onceCommitted(transaction, tell)
  }

  /** Those that others are about to add are waited for, or they would be taken back. */
  async #systemTexts(transaction: Transaction): Promise<Instruction[]> {
    await this.look(transaction)
    return (await readSystemMessages(this.deps.db, this.id, transaction)).map(instructionOf)
  }

  /** In a transaction the chat row is locked until its end. */
  protected async look(transaction?: Transaction): Promise<ChatLook> {
    const look = await lookAtChat(this.deps.db, this.id, transaction)
    if (look === null) throw chatNotFound(this.id)
    return look
  }

  /** What decisions rest on: what a summary stands for is not read. */
  protected async read(): Promise<{ look: ChatLook; transcript: TranscriptMessage[] }> {
    const look = await this.look()
    return { look, transcript: await readRecent(this.deps.db, this.id, look.summaryThrough) }
  }
}
