import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import { addMessage } from '../../models/adding.ts'
import { chatNotFound } from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import { decide as recordDecision } from '../../models/decisions.ts'
import type { Models } from '../../models/index.ts'
import type { MessageRecord } from '../../models/message.ts'
import { userMessage } from '../../models/new-message.ts'
import { enqueueMessage, unqueueMessage } from '../../models/queue.ts'
import type { QueuedMessageRecord } from '../../models/queued-message.ts'
import type { ChatRow, Failure, Json, QueuedMessageRow, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { type PendingSettings, saveSettings } from '../../models/settings.ts'
import { type Staged, stageMessage } from '../../models/staging.ts'
import type { ToolCallRecord } from '../../models/tool-call.ts'
import { type ChatLook, lookAtChat, readTranscript } from '../../models/transcript.ts'
import { readUsages } from '../../models/usages.ts'
import { cancelTurn } from '../../models/wishes.ts'
import { ArgumentError, MissingAgentError, ToolCallRunningError } from '../errors.ts'
import type { ChatEvent, LiveEvent } from '../events/event.ts'
import { type RunResult, run } from '../loop/run.ts'
import { eventToolCall, type LoopPorts, type OnChunk, type Verb } from '../loop/run-context.ts'
import { hasPendingWork, isPaused, isWaiting, latestMessage, openCalls } from '../loop/transcript.ts'
import type { Tool } from '../tools/tool.ts'
import { type ChatCost, type ChatTokens, sumCost, sumTokens } from '../usage/totals.ts'
import { type AddedMessageInput, messageToAdd } from './added-message.ts'
import { PendingConfiguration } from './pending-configuration.ts'

/** What a chat object works with. */
export interface ChatDependencies {
  readonly db: Database
  readonly models: Models
  readonly ports: LoopPorts
  /** Tells viewers of what happens outside a run. */
  readonly publish: (chatId: string, event: LiveEvent) => void
  readonly readEvents: (chatId: string, options: EventsOptions) => AsyncIterableIterator<ChatEvent>
  /** The names of the tools that may stand in a chat's settings. */
  readonly toolNames: (chat: ChatRow) => ReadonlySet<string>
}

export interface EventsOptions {
  /** Start right behind this event; '0' = everything that is kept. Default: what happens from now on. */
  readonly after?: string
  /** Ends the iteration when it is aborted. */
  readonly signal?: AbortSignal
}

/** One message of a transcript, with the calls that it requested. */
export type Message = TranscriptMessage

export interface AskOptions {
  /** Also ask for the chat to be run by a worker, as `jobs.complete.enqueue` does. */
  readonly enqueue?: boolean
}

export interface WakeOptions {
  /** False: nobody is woken for it; a process that runs the chat sees it all the same. Default true. */
  readonly wake?: boolean
}

/**
 * One conversation. The object is a handle: what it says is read from the database each time, except `id`, `agent`,
 * `owner` and the settings, which are as of loading.
 */
export class Chat {
  readonly id: string
  #row: ChatRow
  readonly #deps: ChatDependencies
  readonly #pending: PendingConfiguration
  /** Whether a verb of this very object runs the chat: it does not wait for itself. */
  #running = false

  /** Made by `mill.chats`; not meant to be constructed elsewhere. */
  constructor(row: ChatRow, deps: ChatDependencies) {
    this.id = row.id
    this.#row = row
    this.#deps = deps
    this.#pending = new PendingConfiguration(row)
  }

  /** The name of the agent that the chat was made with, or null. */
  get agent(): string | null {
    return this.#row.agent
  }

  /** What the application said the chat belongs to, or null. */
  get owner(): string | null {
    return this.#row.owner
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Verbs

  /**
   * Adds a user message behind everything queued, runs the loop, and returns the latest message: the answer, unless
   * {@link waiting} is true. While another process runs the chat the message is queued for the next turn. (S52)
   * @throws {PendingToolCallsError} while the last answer's calls are open; nothing is written then. (S42)
   * @throws everything that {@link complete} throws.
   */
  async ask(text: string, options: AskOptions = {}, onChunk?: OnChunk): Promise<Message | null> {
    await this.askLater(text, options)
    return this.complete(onChunk)
  }

  /** Adds a user message as {@link ask} does, without running anything. (S52) */
  async askLater(text: string, options: AskOptions = {}): Promise<this> {
    requireText(text, this.id)
    const messageId = uuid()
    const queuedIds: string[] = []
    const staged = await this.storePending((pending, transaction) =>
      stageMessage(
        this.#deps.db,
        {
          chatId: this.id,
          message: { id: messageId, content: text },
          want: options.enqueue === true,
          pending,
          toMessage: (queued) => {
            const id = uuid()
            queuedIds.push(id)
            return userMessage(this.id, id, queued.content)
          },
        },
        transaction,
      ),
    )
    this.#tellStaged(staged, queuedIds)
    if (staged.kind === 'queued' || options.enqueue === true) await this.#deps.ports.bell.ring(this.id, 'complete')
    return this
  }

  /**
   * Runs the loop until the turn is answered or must wait, and returns the latest message; null for an empty chat. A turn
   * that failed or was cancelled is tried again. While another process runs the chat it returns at once. (S2, S15, S34)
   * @param onChunk gets the answers as they are made; an error that it throws ends the run and comes out. (S72)
   * @throws {CancelledError} {ProviderError} {ToolRoundLimitError} {ConfigurationError} what ended the turn, and what a tool threw.
   */
  async complete(onChunk?: OnChunk): Promise<Message | null> {
    const result = await this.#run('complete', onChunk)
    return result.kind === 'ended' ? result.latest : latestMessage(await this.messages())
  }

  /**
   * Makes one move: runs the open tool calls, or else asks the model. Returns the message that it produced; null when
   * there is nothing to do, everything waits, or another process runs the chat. (S16, S60)
   */
  async step(onChunk?: OnChunk): Promise<Message | null> {
    return producedBy(await this.#run('step', onChunk))
  }

  /**
   * Asks the model once and returns its answer, whose calls are not executed; null while another process runs the chat.
   * (S16)
   * @throws {PendingToolCallsError} while calls are open.
   */
  async generate(onChunk?: OnChunk): Promise<Message | null> {
    return producedBy(await this.#run('generate', onChunk))
  }

  /** Runs the open tool calls without asking the model; does nothing without any, or while another process runs the chat. (S17) */
  async runTools(): Promise<this> {
    await this.#run('runTools')
    return this
  }

  async #run(verb: Verb, onChunk?: OnChunk): Promise<RunResult> {
    const { ports } = this.#deps
    if (this.agent !== null && !ports.hasAgent(this.agent)) throw missingAgent(this.id, this.agent)
    if (this.#pending.isChanged()) await this.save()
    const own = !this.#running
    this.#running = true
    try {
      return await run(ports, { chatId: this.id, verb, by: 'caller', onChunk, tools: this.#pending.tools })
    } finally {
      if (own) this.#running = false
    }
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Messages and the queue

  /** The transcript in its order. */
  async messages(): Promise<Message[]> {
    return readTranscript(this.#deps.db, this.id)
  }

  /**
   * Adds a message as it is, without running anything, and returns its record. A tool message names the call that it
   * answers; a second result for a call returns the first.
   * @throws {ChatRunningError} while another process runs the chat.
   * @throws {ArgumentError} for a role or a content that no message has, or a result without its call.
   */
  async addMessage(message: AddedMessageInput): Promise<MessageRecord> {
    const { db, models } = this.#deps
    const added = messageToAdd(this.id, message)
    const id = await this.storePending((pending, transaction) => addMessage(db, { ...added, pending }, transaction))
    const record = await models.Message.findByPk(id)
    if (record === null) throw chatNotFound(this.id)
    return record
  }

  /**
   * Puts a user message in the queue, from any process, and wakes a worker for it.
   * @param options.steer true (default): it joins the running turn before its next model call; false: it starts the next turn. (S49, S50)
   * @param options.owner any JSON value; stored and handed back, never interpreted.
   */
  async queue(
    text: string,
    options: WakeOptions & { readonly steer?: boolean; readonly owner?: Json } = {},
  ): Promise<QueuedMessageRecord> {
    requireText(text, this.id)
    const { db, models, ports, publish } = this.#deps
    const { steer = true, owner = null, wake = true } = options
    const id = uuid()
    const row = await db.transaction((transaction) =>
      enqueueMessage(db, { chatId: this.id, id, content: text, steer, owner, wake }, transaction),
    )
    publish(this.id, { type: 'queued', queuedId: id, content: text, steer })
    if (wake) await ports.bell.ring(this.id, 'complete')
    return models.QueuedMessage.build(row, { isNewRecord: false })
  }

  /** What waits in the queue, oldest first. (S59) */
  async queuedMessages(): Promise<QueuedMessageRecord[]> {
    return this.#deps.models.QueuedMessage.findAll({ where: { chatId: this.id }, order: [['position', 'ASC']] })
  }

  /** Takes a message out of the queue. False: it was taken into the transcript or unqueued before, or is not of this chat. (S29) */
  async unqueue(queued: string | { readonly id: string }): Promise<boolean> {
    const { db, publish } = this.#deps
    const id = typeof queued === 'string' ? queued : queued.id
    const removed = await db.transaction((transaction) => unqueueMessage(db, this.id, id, transaction))
    if (removed) publish(this.id, { type: 'unqueued', queuedId: id })
    return removed
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Decisions

  /**
   * Lets a call run, from any process, and wakes a worker for it. A call that runs or is answered stays as it is. (S24, S25, S35)
   * @param call a tool call record, or either of its ids.
   * @param options.remember also lets later calls of the same tool in this chat run without asking. (S38)
   * @throws {ArgumentError} when this chat has no such call. (S43)
   */
  async approve(call: ToolCallOrId, options: WakeOptions & { readonly remember?: boolean } = {}): Promise<this> {
    const approval = options.remember === true ? 'remembered' : 'approved'
    await this.#decide(call, approval, options)
    return this
  }

  /**
   * Refuses a call: the model is told so instead of the call being run. An answered call stays as it is. (S25, S36)
   * @throws {ToolCallRunningError} when the call is being executed: it goes on, and the model gets its result. (S23)
   * @throws {ArgumentError} when this chat has no such call. (S43)
   */
  async deny(call: ToolCallOrId, options: WakeOptions = {}): Promise<this> {
    const outcome = await this.#decide(call, 'denied', options)
    if (outcome === 'running') {
      throw new ToolCallRunningError(`A call of chat ${this.id} is being executed: it can't be denied any more.`, {
        chatId: this.id,
      })
    }
    return this
  }

  async #decide(call: ToolCallOrId, approval: 'approved' | 'remembered' | 'denied', options: WakeOptions) {
    const { db, ports, publish } = this.#deps
    const id = typeof call === 'string' ? call : call.id
    const wake = options.wake ?? true
    const decision = { chatId: this.id, call: id, approval, wake }
    const decided = await db.transaction((transaction) => recordDecision(db, decision, transaction))
    if (decided.outcome === 'unknown' || decided.call === null) {
      throw new ArgumentError(
        `Chat ${this.id} has no tool call ${id}: pass a record of pendingApprovals(), or its id.`,
        {
          chatId: this.id,
        },
      )
    }
    if (decided.outcome === 'recorded') {
      publish(this.id, { type: 'approval.decided', toolCall: eventToolCall(decided.call), approval })
      if (wake) await ports.bell.ring(this.id, 'complete')
    }
    return decided.outcome
  }

  /** The open calls that need a decision, in the order in which the model made them; ready for {@link approve} and {@link deny}. (S33, S44) */
  async pendingApprovals(): Promise<ToolCallRecord[]> {
    const { look, transcript } = await this.#read()
    const undecided = openCalls(transcript).filter((call) => this.#awaitsApproval(look.chat, call))
    return undecided.map((call) => this.#deps.models.ToolCall.build(call, { isNewRecord: false }))
  }

  /** A call that no run has looked at yet awaits approval too, if its tool always asks for it. */
  #awaitsApproval(chat: ChatRow, call: ToolCallRow): boolean {
    if (call.approval !== null) return call.approval === 'pending'
    if (chat.agent !== null && !this.#deps.ports.hasAgent(chat.agent)) return false
    return this.#deps.ports.requiresApproval(chat, call.name)
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Predicates

  /** Whether nothing is left to do: the last turn is answered and no message waits in the queue. (S33, S60) */
  async isComplete(): Promise<boolean> {
    const { look, transcript } = await this.#read()
    return !hasPendingWork(transcript) && look.queued.total === 0
  }

  /** Whether the chat can't go on before something happens outside: a decision about every open call, or the end of another process's run. (S2) */
  async waiting(): Promise<boolean> {
    const { look, transcript } = await this.#read()
    if (look.claimed && !this.#running) return true
    return this.#waitsOutside(look.chat, transcript)
  }

  /** Whether the chat waits, and for a decision about a call. A run elsewhere does not count. (S33, S37) */
  async awaitingApproval(): Promise<boolean> {
    const { look, transcript } = await this.#read()
    const open = openCalls(transcript)
    return this.#waitsOutside(look.chat, transcript) && open.some((call) => this.#awaitsApproval(look.chat, call))
  }

  #waitsOutside(chat: ChatRow, transcript: readonly Message[]): boolean {
    const open = openCalls(transcript)
    return (
      open.length > 0 && open.every((call) => isWaiting(call) || isPaused(call) || this.#awaitsApproval(chat, call))
    )
  }

  /** Whether a process runs the chat, this one included; by the database's clock. (S3, S18, S19) */
  async running(): Promise<boolean> {
    return (await this.#look()).claimed
  }

  /** Whether a cancel of the turn waits to be carried out. */
  async cancelled(): Promise<boolean> {
    const { chat } = await this.#look()
    return chat.cancelTurn !== null && chat.cancelTurn === chat.turn
  }

  /** Why the last turn was given up, until someone tries again; null when it was not. */
  async failure(): Promise<Failure | null> {
    return (await this.#look()).chat.failure
  }

  /**
   * Stops the turn, from any process: the model and the tools are aborted, what was shown is kept, open calls are closed.
   * Changes nothing when nothing runs, is wanted or is parked. Queued messages stay. (S57, S61, S63)
   * @param options.turn only if the chat is still in this turn.
   */
  async cancel(options: { readonly turn?: number } = {}): Promise<this> {
    const { db, ports } = this.#deps
    if (await cancelTurn(db, this.id, options.turn ?? null)) await ports.bell.ring(this.id, 'complete')
    return this
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Accounting

  /** Tokens of every attempt of the chat, retries and failures included; null where no attempt reported any. (S89, S94) */
  async tokens(): Promise<ChatTokens> {
    return sumTokens(await readUsages(this.#deps.db, { chatId: this.id }))
  }

  /** USD of every attempt as decimal texts; `total` is null when any attempt's cost is unknown, or there was none. (S92, S95) */
  async cost(): Promise<ChatCost> {
    return sumCost(await readUsages(this.#deps.db, { chatId: this.id }))
  }

  /** What happens to the chat, live, from any process. */
  events(options: EventsOptions = {}): AsyncIterableIterator<ChatEvent> {
    return this.#deps.readEvents(this.id, options)
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Settings: stored by the next verb, so that every worker runs what this process configured

  /** Asks this model from now on; null = as the agent says. */
  withModel(model: string | null, options: { readonly provider?: string } = {}): this {
    this.#pending.setModel(model, options.provider)
    return this
  }

  /** Replaces the system messages, or adds one (`append`); null = as the agent says. (S101) */
  withInstructions(text: string | null, options: { readonly append?: boolean } = {}): this {
    this.#pending.setInstructions(text, options.append ?? false)
    return this
  }

  /** 0 to 2; null = as the agent says. */
  withTemperature(temperature: number | null): this {
    this.#pending.setTemperature(temperature)
    return this
  }

  /** Limit on one answer in tokens; null = as the agent says. */
  withMaxOutputTokens(tokens: number | null): this {
    this.#pending.setMaxOutputTokens(tokens)
    return this
  }

  /**
   * Offers these tools, beside those added before, instead of the agent's; `withTools(null)` returns to the agent's. Names
   * are stored: a worker needs tools of these names, of its agents or from `connect({ tools })`.
   */
  withTools(...tools: readonly (Tool | string | null)[]): this {
    this.#pending.addTools(tools, this.#deps.toolNames(this.#row))
    return this
  }

  /** Stores pending settings now. */
  async save(): Promise<this> {
    const { db } = this.#deps
    await this.storePending((pending, transaction) => saveSettings(db, this.id, pending, transaction))
    return this
  }

  /** Reads the chat's row again; settings that were not stored are dropped. */
  async reload(): Promise<this> {
    this.#row = (await this.#look()).chat
    this.#pending.reset(this.#row)
    return this
  }

  /** Runs `store` in a transaction with the settings that are not stored yet; what fails leaves them pending. */
  async storePending<T>(store: (pending: PendingSettings, transaction: Transaction) => Promise<T>): Promise<T> {
    const pending = await this.#pending.resolve(() => this.#systemTexts())
    const stored = await this.#deps.db.transaction((transaction) => store(pending, transaction))
    this.#pending.settle()
    return stored
  }

  async #systemTexts(): Promise<string[]> {
    return (await this.messages())
      .filter((message) => message.role === 'system')
      .map((message) => message.content ?? '')
  }

  async #look(): Promise<ChatLook> {
    const look = await lookAtChat(this.#deps.db, this.id)
    if (look === null) throw chatNotFound(this.id)
    return look
  }

  async #read(): Promise<{ look: ChatLook; transcript: Message[] }> {
    return { look: await this.#look(), transcript: await this.messages() }
  }

  #tellStaged(staged: Staged, messageIds: readonly string[]): void {
    const { publish } = this.#deps
    if (staged.kind === 'queued') {
      const { id, content, steer } = staged.queued
      publish(this.id, { type: 'queued', queuedId: id, content, steer })
      return
    }
    for (const [at, queued] of staged.drained.entries()) {
      publish(this.id, { type: 'dequeued', queuedId: queued.id, messageId: messageIds[at] ?? '' })
    }
  }
}

/** A tool call record, its row's id, or its public id. */
export type ToolCallOrId = string | { readonly id: string }

function producedBy(result: RunResult): Message | null {
  return result.kind === 'ended' ? result.produced : null
}

function requireText(text: unknown, chatId: string): asserts text is string {
  if (typeof text === 'string' && text !== '') return
  throw new ArgumentError(`A user message of chat ${chatId} must be a text that is not empty.`, { chatId })
}

function missingAgent(chatId: string, agent: string): MissingAgentError {
  return new MissingAgentError(
    `This process has no agent ${JSON.stringify(agent)}, which chat ${chatId} was made with. Give it to connect({ agents }).`,
    { chatId },
  )
}

export type { QueuedMessageRow }
