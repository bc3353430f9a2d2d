import { recordOf } from '../../models/index.ts'
import type { ChatRow, Failure, JsonObject, ToolCallRow } from '../../models/rows.ts'
import { type CallBelow, readCallsBelow } from '../../models/sub-chats.ts'
import type { ToolCallRecord } from '../../models/tool-call.ts'
import { readRecent } from '../../models/transcript.ts'
import { type ChatCost, type ChatTokens, sumCost, sumTokens } from '../../models/usage-totals.ts'
import { readUsages } from '../../models/usages.ts'
import { openRequests, openSubChat, pauseOf } from '../../models/waiting.ts'
import { ArgumentError, UnsupportedByProviderError } from '../errors.ts'
import type { EventsOptions } from '../events/options.ts'
import type { EventReader } from '../events/reader.ts'
import { modelRequest } from '../loop/model-request.ts'
import { renderedBy } from '../loop/model-target.ts'
import { withFiles } from '../loop/request-files.ts'
import { RunHooks } from '../loop/run-hooks.ts'
import { hasPendingWork, isWaiting, openCalls } from '../loop/transcript.ts'
import { isWithinLimit } from '../tools/text-limit.ts'
import { ChatSettings } from './chat-settings.ts'
import type { Diagnosis } from './diagnose.ts'
import { readDiagnosis } from './diagnosis.ts'
import type { Message } from './message.ts'
import { type MessagesPage, type PageOptions, readPage, type SearchOptions } from './message-pages.ts'
import { type InputRequest, inputsOf, type PendingTaskOfChat, tasksOf } from './pending.ts'
import { requireCallback } from './verb-options.ts'

/** What can be asked about a chat. Everything is read anew, from any process. */
export abstract class ChatReadings extends ChatSettings {
  /**
   * The body of the request that would be sent now, with what was not stored yet and `beforeRequest` applied; nothing is
   * sent or stored.
   * @throws {ConfigurationError} when this process can't run the chat, or its client can't say what it sends.
   */
  async render(): Promise<JsonObject> {
    const next = await this.#next()
    const { configuration } = next
    const hooks = new RunHooks([configuration.agent.hooks, this.ownHooks], () => this)
    const { client } = configuration
    const request = modelRequest(next)
    const payload = renderedBy(client, await withFiles({ configuration, chatId: this.id }, client, request))
    await hooks.call('beforeRequest', payload)
    return payload
  }

  /**
   * How many input tokens the next request would carry, as its provider counts them, with `text` as one more question; nothing is sent to a
   * model or stored. Provider options, hooks and summaries by themselves are left out.
   * @throws {UnsupportedByProviderError} where the provider has no way to count: Chat Completions has none.
   * @throws {UnsupportedAttachmentError} for a question's file that the model can't take.
   * @throws {ArgumentError} for a text that no message has.
   */
  async countTokens(text?: string): Promise<number> {
    if (text !== undefined && (typeof text !== 'string' || text === '' || !isWithinLimit(text))) {
      throw new ArgumentError(`countTokens() of chat ${this.id} takes the text of a question.`, { chatId: this.id })
    }
    const next = await this.#next()
    const { providerOptions: _, ...request } = modelRequest(next)
    const { configuration } = next
    const { client } = configuration
    if (client.countTokens === undefined) {
      throw new UnsupportedByProviderError(
        `Provider ${client.provider} can't count the tokens of chat ${this.id}: it has no such endpoint. After an answer, chat.tokens() says what it took.`,
        { chatId: this.id },
      )
    }
    const question = text === undefined ? [] : [{ role: 'user' as const, content: text }]
    const asked = { ...request, messages: [...request.messages, ...question] }
    return client.countTokens(await withFiles({ configuration, chatId: this.id }, client, asked), {
      headers: configuration.headers,
    })
  }

  /** What the next request would be made of, what is not stored yet included. */
  async #next() {
    const { chat, summaryThrough } = await this.look()
    const stored = await readRecent(this.deps.db, this.id, summaryThrough)
    const { row, transcript } = await this.pending.preview(chat, stored)
    return { chat: row, configuration: await this.deps.ports.configure(row, { caller: this.caller() }), transcript }
  }

  /** The messages one by one, in their order. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    yield* await this.messages()
  }

  /**
   * Calls `visit` with each message, one after the other; without it, the messages one by one.
   * @throws {ArgumentError} at once, for a `visit` that can't be called.
   */
  each(): AsyncGenerator<Message, void, undefined>
  each(visit: (message: Message) => unknown): Promise<this>
  each(visit?: (message: Message) => unknown): AsyncGenerator<Message, void, undefined> | Promise<this> {
    requireCallback('each', visit, this.id)
    return visit === undefined ? this[Symbol.asyncIterator]() : this.#visit(visit)
  }

  async #visit(visit: (message: Message) => unknown): Promise<this> {
    for await (const message of this) await visit(message)
    return this
  }

  /**
   * A part of the transcript: its end, or what comes before or after a position; as of {@link messages} otherwise. Also pages on in
   * a chat that grows: positions never change. (E52)
   * @throws {ArgumentError} for options that there are not.
   */
  async page(options: PageOptions = {}): Promise<MessagesPage> {
    return readPage(this.deps, this.id, options, null)
  }

  /**
   * The last questions and answers that have `text` in them as it is, `%` and `_` included; no instructions, results, summaries or
   * reasoning. Letters match in either case: on SQLite those of ASCII only. The chat's messages are read one by one. (E52)
   * @param text 1 to 1 000 characters.
   * @throws {ArgumentError} for options that there are not, or no text.
   */
  async search(text: string, options: SearchOptions = {}): Promise<MessagesPage> {
    return readPage(this.deps, this.id, options, (text as string | null) ?? '')
  }

  /** Whether nothing is left to do: the last turn is answered and no message waits in the queue. (S33, S60) */
  async isComplete(): Promise<boolean> {
    const { look, transcript } = await this.read()
    return !hasPendingWork(transcript) && look.queued.total === 0
  }

  /** Whether the chat can't go on before something happens outside: a decision about every open call, or the end of another process's run. (S2) */
  async waiting(): Promise<boolean> {
    const { look, transcript } = await this.read()
    if (look.claimed && !this.isRunningHere) return true
    return this.waitsOutside(openCalls(transcript).map((call) => ({ chat: look.chat, call })))
  }

  /** Whether the chat waits, and for a decision about a call. A run elsewhere does not count. (S33, S37) */
  async awaitingApproval(): Promise<boolean> {
    return this.#awaits(({ chat, call }) => this.awaitsApproval(chat, call))
  }

  /** Whether the chat waits, and for an answer to a question of a tool. A run elsewhere does not count. (S98) */
  async awaitingInput(): Promise<boolean> {
    return this.#awaits(({ call }) => openRequests(call).length > 0)
  }

  /** Whether the chat waits, and for a task of a tool. A run elsewhere does not count. (S99) */
  async awaitingTasks(): Promise<boolean> {
    return this.#awaits(({ call }) => pauseOf(call).task !== undefined)
  }

  /** Whether the chat waits, and for another agent to answer in a sub-chat. A run elsewhere does not count. (E90) */
  async awaitingSubChats(): Promise<boolean> {
    return this.#awaits(({ call }) => openSubChat(call) !== null)
  }

  /** What a sub-chat waits for its parent waits for too, once nothing of either can go on. */
  async #awaits(matches: (open: CallBelow) => boolean): Promise<boolean> {
    const { own, below } = await this.#open()
    if (!this.waitsOutside(own)) return false
    const chats = [...new Set(below.map(({ chat }) => chat.id))]
    const theirs = chats.map((id) => below.filter(({ chat }) => chat.id === id))
    return [own, ...theirs].some((calls) => this.waitsOutside(calls) && calls.some(matches))
  }

  /** The questions of tools that nobody has answered, sub-chats' behind its own, in the order of their calls; ready for `answer` and `decline`. (S97, E91) */
  async pendingInputs(): Promise<InputRequest[]> {
    const { own, below } = await this.#open()
    return [...own, ...below].flatMap(({ call }) => inputsOf(call, this.deps.models))
  }

  /** The tasks of tools that go on elsewhere, as they were last looked at, sub-chats' behind its own. (S99) */
  async pendingTasks(): Promise<PendingTaskOfChat[]> {
    const { own, below } = await this.#open()
    return [...own, ...below].flatMap(({ call }) => tasksOf(call, this.deps.models))
  }

  /** The open calls of the chat, and of the sub-chats that they wait for. */
  async #open(): Promise<{ readonly own: readonly CallBelow[]; readonly below: readonly CallBelow[] }> {
    const { look, transcript } = await this.read()
    const calls = openCalls(transcript)
    const own = calls.map((call) => ({ chat: look.chat, call }))
    return { own, below: await readCallsBelow(this.deps.db, calls) }
  }

  private waitsOutside(open: readonly CallBelow[]): boolean {
    return open.length > 0 && open.every(({ chat, call }) => isWaiting(call) || this.awaitsApproval(chat, call))
  }

  /** Whether a process runs the chat, this one included; by the database's clock. (S3, S18, S19) */
  async running(): Promise<boolean> {
    return (await this.look()).claimed
  }

  /** Whether a cancel of the turn waits to be carried out. */
  async cancelled(): Promise<boolean> {
    const { chat } = await this.look()
    return chat.cancelTurn !== null && chat.cancelTurn === chat.turn
  }

  /** Why the last turn was given up, until someone tries again; null when it was not. */
  async failure(): Promise<Failure | null> {
    return (await this.look()).chat.failure
  }

  /**
   * Why the chat moves or does not: where it stands, who holds it, what it waits for, how far it got, and the one thing
   * that is safe to do. It is read from rows alone, so it says the same in every process.
   * @throws {ChatNotFoundError} when the chat was deleted.
   */
  async diagnosis(): Promise<Diagnosis> {
    return readDiagnosis(this.deps.db, this.id)
  }

  /**
   * The open calls that need a decision, sub-chats' behind its own, in the order in which the model made them; ready for `approve` and
   * `deny` of this chat. (S33, S44, E91)
   */
  async pendingApprovals(): Promise<ToolCallRecord[]> {
    const { own, below } = await this.#open()
    const undecided = [...own, ...below].filter(({ chat, call }) => this.awaitsApproval(chat, call))
    return undecided.map(({ call }) => recordOf(this.deps.models.ToolCall, call))
  }

  /** A call that no run has looked at yet awaits approval too, if its tool always asks for it. */
  private awaitsApproval(chat: ChatRow, call: ToolCallRow): boolean {
    if (call.approval !== null) return call.approval === 'pending'
    if (chat.agent !== null && this.deps.ports.agentNamed(chat.agent) === null) return false
    return this.deps.ports.requiresApproval(chat, call.name)
  }

  /** Tokens of every attempt of the chat and its sub-chats, retries and failures included; null where no attempt reported any. (S89, S94, E93) */
  async tokens(): Promise<ChatTokens> {
    return sumTokens(await readUsages(this.deps.db, this.id))
  }

  /** USD of every attempt of the chat and its sub-chats as decimal texts; `total` is null when any attempt's cost is unknown, or there was none. (S92, S95, E93) */
  async cost(): Promise<ChatCost> {
    return sumCost(await readUsages(this.deps.db, this.id))
  }

  /**
   * What happens to the chat, live, from any process. Readers of one process share one connection to Redis, however many
   * there are, and a slow one delays nobody.
   *
   * - **Without `after`** a viewer may come at any moment. First comes what rows tell of the last turn: `run.started` while
   *   someone runs the chat, then for each stored answer `message.finished`, its `tool_call.requested`, approvals and
   *   `tool.result`s, then `queued` for what waits, and how the turn ended, if it did. Then what is going on: an unfinished
   *   answer from its first delta, each delta once, or none of them where its beginning is lost; it comes whole with its
   *   `message.finished`. Then whatever happens. User messages are no events: read {@link messages}.
   * - **With `after`** exactly what came after that event. If the stream no longer holds it (trimmed, expired ten minutes
   *   after the end of a run, Redis flushed, or an id of another stream), `resync` comes first, then what a reader without
   *   `after` gets.
   * - **Losses** while reading (Redis was away or flushed, and events of a run are missing) show as `resync` too. Where
   *   nothing comes for 5 s the rows are looked at: the end of a turn that nobody told of is made from them.
   * - Events of a run that was overtaken are dropped. `attempt.restarted` voids what was shown of `replaces`, of which nothing
   *   more comes.
   *
   * Nothing of this ends by itself: leave the loop, call `return()`, or abort `signal`; `mill.close()` ends it, and so does
   * the deletion of the chat. While Redis is away it waits.
   * @throws {ArgumentError} at once, for an `after` that is no event's id; whatever the database throws, from `next`.
   */
  events(options: EventsOptions = {}): EventReader {
    return this.deps.readEvents(this.id, options)
  }
}
