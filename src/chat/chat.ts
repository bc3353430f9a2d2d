import { type AddedMessage, addMessage } from '../../models/adding.ts'
import { chatNotFound } from '../../models/claims.ts'
import { lockChat } from '../../models/lock.ts'
import type { MessageRecord } from '../../models/message.ts'
import { markBoundary, savePending } from '../../models/settings.ts'
import { lookAtChat } from '../../models/transcript.ts'
import { openSubChat } from '../../models/waiting.ts'
import { purgeFiles } from '../attachments/keeping.ts'
import { ArgumentError, MissingAgentError } from '../errors.ts'
import { type RunResult, run } from '../loop/run.ts'
import { runCompaction } from '../loop/run-compaction.ts'
import type { LoopPorts, OnChunk, RunOrder, Verb } from '../loop/run-context.ts'
import { latestMessage, openCalls } from '../loop/transcript.ts'
import { type CompactOptions, compactOptions, problemsOf } from '../tools/compaction-options.ts'
import { type AddedMessageInput, messageToAdd } from './added-message.ts'
import { ChatEdits } from './chat-edits.ts'
import type { AskOptions } from './chat-posts.ts'
import { LlmChat } from './llm-chat.ts'
import { asMessage, type Message } from './message.ts'
import { type AddedValue, inputsOf, isValues } from './message-inputs.ts'
import { type StoredFiles, type WithAttachments, withStoredFiles } from './stored-files.ts'
import { requireCallback, requireOptions } from './verb-options.ts'

/**
 * One conversation. The object is a handle: what it says is read from the database each time, except `id`, `agent`,
 * `owner` and the settings, which are as of loading.
 */
export class Chat extends ChatEdits {
  #llm: LlmChat | null = null

  /**
   * The chat in memory, with its messages, built on the first call; later calls return the same one and ask no database. It asks the
   * model that was set last; `reload` reads its messages anew. (S105)
   */
  async toLlm(): Promise<LlmChat> {
    this.#llm ??= new LlmChat(this, await this.messages())
    return this.#llm
  }

  override async reload(): Promise<this> {
    await super.reload()
    await this.#llm?.refresh()
    return this
  }

  /**
   * Adds a user message behind everything queued, runs the loop, and returns the latest message: the answer, unless
   * {@link waiting} is true. While another process runs the chat the message is queued for the next turn. (S52)
   * @throws {PendingToolCallsError} while the last answer's calls are open; nothing is written then. (S42)
   * @throws everything that {@link complete} throws.
   */
  async ask(text: string | null, options: AskOptions = {}, onChunk?: OnChunk): Promise<Message | null> {
    requireOptions('ask', options, this.id)
    requireCallback('ask', onChunk, this.id)
    if ('transaction' in options && options.transaction !== undefined) {
      throw new ArgumentError(
        `ask() of chat ${this.id} can't be part of a transaction, since the model would be asked inside it: ` +
          'use askLater(), and complete() after the commit.',
        { chatId: this.id },
      )
    }
    await this.askLater(text, options)
    return this.complete(onChunk)
  }

  /**
   * Runs the loop until the turn is answered or must wait, and returns the latest message; null for an empty chat. A turn
   * that failed or was cancelled is tried again. While another process runs the chat it returns at once. Sub-chats that nobody runs are
   * run too, by this process. (S2, S15, S34, E91)
   * @param onChunk gets the answers as they are made; an error that it throws ends the run and comes out. (S72)
   * @throws {CancelledError} {ProviderError} {ToolRoundLimitError} {ConfigurationError} what ended the turn, and what a tool threw.
   * @throws {ArgumentError} for an `onChunk` that can't be called.
   */
  async complete(onChunk?: OnChunk): Promise<Message | null> {
    let result = await this.#run('complete', onChunk)
    while (result.kind === 'ended' && result.parked && (await this.#runSubChats())) {
      result = await this.#run('complete', onChunk)
    }
    const latest = (result.kind === 'ended' ? result.latest : null) ?? latestMessage(await this.messages())
    return latest && asMessage(latest, this.deps.files.store)
  }

  /**
   * Makes one move: runs the open tool calls, or else asks the model. Returns the message that it produced; null when
   * there is nothing to do, everything waits, or another process runs the chat. (S16, S60)
   */
  async step(onChunk?: OnChunk): Promise<Message | null> {
    return this.#produced(await this.#run('step', onChunk))
  }

  /**
   * Asks the model once and returns its answer, whose calls are not executed; null while another process runs the chat.
   * (S16)
   * @throws {PendingToolCallsError} while calls are open.
   */
  async generate(onChunk?: OnChunk): Promise<Message | null> {
    return this.#produced(await this.#run('generate', onChunk))
  }

  /** Runs the open tool calls without asking the model; does nothing without any, or while another process runs the chat. (S17) */
  async runTools(): Promise<this> {
    await this.#run('runTools')
    return this
  }

  /**
   * Has the history summarised, by the chat's own model or another one, and returns the summary; null while another process
   * runs the chat. Nothing is deleted: later requests carry the system messages, the newest summary and what came after
   * what it stands for. Messages written meanwhile stay. A turn that is not answered is left out of the summary. (S100)
   * @param options what is left out is as {@link withCompaction}, else the agent, says.
   * @throws {PendingToolCallsError} while calls are open; no request is made then.
   * @throws {NothingToCompactError} when there is nothing to summarise.
   * @throws {SummaryRefusedError} when the summary is empty, cut off, no shorter than what it would replace, or asks for tools.
   * @throws {CancelledError} when the turn was cancelled before or meanwhile; no summary is stored then. (S67)
   * @throws {ProviderError} {ConfigurationError} when no summary could be had. {ArgumentError} for options that there are not.
   */
  async compact(options: CompactOptions = {}): Promise<Message | null> {
    const parsed = compactOptions.safeParse(options)
    if (!parsed.success) {
      throw new ArgumentError(`Chat ${this.id} can't be summarised so. ${problemsOf(parsed.error)}`, {
        chatId: this.id,
      })
    }
    const result = await this.#hold((ports) => runCompaction(ports, { ...this.#order(), options: parsed.data }))
    return result.kind === 'ended' && result.message !== null ? asMessage(result.message, this.deps.files.store) : null
  }

  async #run(verb: Verb, onChunk?: OnChunk): Promise<RunResult> {
    requireCallback(verb, onChunk, this.id)
    return this.#hold((ports) => run(ports, { ...this.#order(), verb, onChunk }))
  }

  /** Runs the sub-chats that the chat waits for and nobody else runs. True = the chat can go on now. */
  async #runSubChats(): Promise<boolean> {
    const { transcript } = await this.read()
    const ids = openCalls(transcript).flatMap((call) => openSubChat(call)?.id ?? [])
    if (ids.length === 0) return false
    await Promise.all(ids.map((id) => this.#runSubChat(id)))
    const { due, claimed } = await this.look()
    return due && !claimed
  }

  /** What it throws ended its turn, and the call that it is for was told of that. */
  async #runSubChat(id: string): Promise<void> {
    const look = await lookAtChat(this.deps.db, id)
    if (look === null || look.claimed) return
    const subChat = new Chat(look.chat, this.deps)
    if (look.due || (await subChat.#runSubChats())) await subChat.complete().catch(() => {})
  }

  #produced(result: RunResult): Message | null {
    const { store } = this.deps.files
    return result.kind === 'ended' && result.produced !== null ? asMessage(result.produced, store) : null
  }

  #order(): Pick<RunOrder, 'chatId' | 'caller'> & { readonly by: 'caller' } {
    return { chatId: this.id, by: 'caller', caller: this.caller() }
  }

  /** Stores what is pending, and notes that this object runs its chat as long as `work` does. */
  async #hold<T>(work: (ports: LoopPorts) => Promise<T>): Promise<T> {
    const { ports } = this.deps
    if (this.agent !== null && ports.agentNamed(this.agent) === null) throw missingAgent(this.id, this.agent)
    if (this.pending.isChanged()) await this.save()
    const own = !this.isRunningHere
    this.isRunningHere = true
    try {
      return await work(ports)
    } finally {
      if (own) this.isRunningHere = false
    }
  }

  /**
   * Marks the latest message as the end of a part of the prompt that the provider is to keep in its cache, after storing what is
   * pending: `await chat.withInstructions(text).cacheUntilHere({ ttl: '1h' })`. Sent where the wire knows such marks (OpenRouter,
   * Anthropic-compatible servers); others cache by themselves. (S103)
   * @param options.ttl how long it is to be kept, in the provider's words: `5m`, `1h`.
   * @throws {ArgumentError} for a chat without messages, or another `ttl`.
   */
  async cacheUntilHere(options: { readonly ttl?: string } = {}): Promise<this> {
    const boundary = this.pending.boundary(options)
    const { db } = this.deps
    await this.storePending(async (pending, transaction) => {
      const { chat } = await lockChat(db, this.id, transaction)
      await savePending(db, chat, pending, transaction)
      if (await markBoundary(db, chat, boundary, transaction)) return
      throw new ArgumentError(`Chat ${this.id} has no message yet that the provider's cache could end at.`, {
        chatId: this.id,
      })
    })
    return this
  }

  /**
   * Adds a message as it is, without running anything, and returns its record: of an object, of a message value, of a list of values
   * (the last one's record; a text that stops for tools and the calls behind it are one message), or of a record of any chat, which is
   * copied. A tool message names the call that it answers; a second result for a call returns the first, and calls that the chat
   * knows already return the message that requested them. Questions and results may have `attachments`. (M16, M29, M30, E83)
   * @throws {ChatRunningError} while another process runs the chat.
   * @throws {ArgumentError} for a role or a content that no message has, or a result without its call.
   */
  async addMessage(message: AddedMessageInput): Promise<MessageRecord>
  async addMessage(message: AddedValue | readonly AddedValue[] | Pick<MessageRecord, 'toLlm'>): Promise<MessageRecord>
  async addMessage(message: unknown): Promise<MessageRecord> {
    const { models } = this.deps
    const inputs = isValues(message) ? inputsOf(message) : [isRecord(message) ? await message.toLlm() : message]
    const added = inputs.map((input) => messageToAdd(this.id, input as AddedMessageInput))
    const { attachments } = (isValues(message) ? {} : message) as WithAttachments
    const id = await withStoredFiles(this.deps, attachments, undefined, (files) => this.#add(added, files))
    const record = await models.Message.findByPk(id, { useMaster: true })
    if (record === null) throw chatNotFound(this.id)
    return record
  }

  async #add(added: readonly Omit<AddedMessage, 'pending'>[], { attachments, keep }: StoredFiles): Promise<string> {
    const id = await this.storePending(async (pending, transaction) => {
      let last = ''
      for (const one of added) {
        const message = { ...one.message, attachments: attachments ?? one.message.attachments }
        last = await addMessage(this.deps.db, { ...one, message, pending }, transaction)
      }
      await keep()
      return last
    })
    // A call that had its result keeps that one: nobody holds these.
    if (attachments !== null && id !== added.at(-1)?.message.id) await purgeFiles(this.deps, attachments)
    return id
  }
}

function isRecord(message: unknown): message is Pick<MessageRecord, 'toLlm'> {
  return typeof (message as { toLlm?: unknown } | null)?.toLlm === 'function'
}

function missingAgent(chatId: string, agent: string): MissingAgentError {
  return new MissingAgentError(
    `This process has no agent ${JSON.stringify(agent)}, which chat ${chatId} was made with. Give it to connect({ agents }).`,
    { chatId },
  )
}
