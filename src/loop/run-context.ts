import type { MeasuredContext } from '../../models/compaction.ts'
import type { MessageRecord } from '../../models/message.ts'
import { ownerOf } from '../../models/owner.ts'
import type { QueuedMessageRecord } from '../../models/queued-message.ts'
import type {
  Bell,
  ChatRow,
  ChatSettings,
  CompactionSettings,
  MessageRow,
  QueuedMessageRow,
  TranscriptMessage,
} from '../../models/rows.ts'
import type { Instruction } from '../../models/settings.ts'
import type { ChatLook } from '../../models/transcript.ts'
import type { NewMessage } from '../../models/turns.ts'
import type { AttachmentConverter } from '../attachments/convert.ts'
import type { BlobStore } from '../attachments/store.ts'
import { isForRoot, type LiveEvent } from '../events/event.ts'
import type { Instruments } from '../observability/instruments.ts'
import type { RunFacts } from '../observability/observation.ts'
import type { ModelClient } from '../providers/provider.ts'
import type { Agent } from '../tools/agent.ts'
import type { HookLists } from '../tools/hooks.ts'
import type { ModelContext } from '../tools/model-context.ts'
import type { AgentSettings } from '../tools/settings.ts'
import type { StopReason, Tool, ToolContext } from '../tools/tool.ts'
import type { TurnOutcome } from '../tools/turn-end.ts'
import type { ContextLimits } from './context-limits.ts'
import type { BellPort, ClaimsPort, ClockPort, EventsPort, FilesPort, HeldClaim, RowsPort } from './ports.ts'
import { type RunRows, readRows } from './read-rows.ts'
import { RunHooks } from './run-hooks.ts'
import type { RunReport } from './run-report.ts'
import type { RememberedTool } from './transcript.ts'

/** What a caller sees of an answer while it is being made. */
export interface Chunk {
  /** The id of the row that the answer will be. */
  readonly messageId: string
  /** That row, not saved yet. */
  readonly message: Readonly<MessageRow>
  /** Counts the chunks of this message from 0. */
  readonly index: number
  /** The answer's text that is new; `''` when only reasoning is. */
  readonly text: string
  /** Reasoning that is new; null when there is none. */
  readonly thinking: string | null
  /**
   * Sends the chunk to whoever watches the chat, where the agent's `broadcast` is `manual`; once, and not when it is empty.
   * Does nothing where it is `auto`: there every chunk is sent by itself. Returns at once, and fails neither when Redis is
   * away.
   * @throws {ConfigurationError} where it is `off`.
   */
  broadcast(): void
}

/**
 * Gets an answer as it is made, in order; the next chunk waits for it. What it throws ends the run and comes out. Chunks
 * can be passed on as they are: `chat.ask(text, {}, (chunk) => chunk.broadcast())`. (S72, S84)
 */
export type OnChunk = (chunk: Chunk) => void | Promise<void>

/** What the loop does for its caller: everything, one move, one answer, one round of tools, or a summary alone. */
export type Verb = 'complete' | 'step' | 'generate' | 'runTools' | 'compact'

export interface RunOrder {
  readonly chatId: string
  readonly verb: Verb
  /** Who runs it: a direct call, or a job of one of the queues. */
  readonly by: 'caller' | Bell
  readonly onChunk?: OnChunk | undefined
  /** What the caller's chat object brings along. */
  readonly caller?: Caller | undefined
  /** Whether this process runs nothing else, or no other chat at least that has cost processes. */
  readonly alone?: boolean | undefined
  /** True once the process wants to end: the run gives the chat to another worker between two moves. */
  readonly stopping?: (() => boolean) | undefined
}

/** What a chat object has that no row holds: it counts for its own runs alone. */
export interface Caller {
  /** The chat object, as hooks get it. */
  readonly chat: unknown
  readonly hooks: HookLists<never>
  /** Tools that came as objects. */
  readonly tools: readonly Tool[]
  /** Settings that are not to be stored; they beat those that are. */
  readonly settings: ChatSettings
  /** System messages that are not to be stored: behind the stored ones, or in place of them. */
  readonly instructions: { readonly said: readonly Instruction[]; readonly append: boolean } | null
  readonly headers: Readonly<Record<string, string>> | null
  readonly context: ModelContext | null
  readonly converters: readonly AttachmentConverter[]
}

/** What a chat's agent comes down to in this process, the chat's own settings applied. */
export interface Configuration {
  readonly agent: Agent
  readonly model: string
  readonly client: ModelClient
  /** The system message of a chat that has none of its own; null = none. */
  readonly instructions: string | null
  /** System messages of the caller's alone. */
  readonly ownInstructions: Caller['instructions']
  /** What counts of each setting; null = nothing was said. */
  readonly settings: AgentSettings
  /** Sent beside those of the protocol. */
  readonly headers: Readonly<Record<string, string>>
  /** Where the bytes of files are. */
  readonly store: BlobStore
  /** What is made of files that a model can't take. */
  readonly converters: readonly AttachmentConverter[]
  /** Most tool rounds of one turn. */
  readonly rounds: number
  /** How many calls of one round may run at the same time. */
  readonly concurrency: number
  /** The tools that the model is offered, by name. */
  readonly tools: ReadonlyMap<string, Tool>
  /** All tools that this process has for the chat, by name: calls of what is offered no longer may be open. */
  readonly kept: ReadonlyMap<string, Tool>
  /** Null: nothing is summarised by itself. */
  readonly compaction: CompactionSettings | null
  /** A client for a provider, the chat's own where none is named. @throws {ConfigurationError} when the process has none. */
  readonly clientFor: (provider?: string) => ModelClient
}

/** Everything that the loop works with; what it does is told to the instruments. */
export interface LoopPorts extends Instruments {
  readonly claims: ClaimsPort
  readonly rows: RowsPort
  readonly bell: BellPort
  readonly events: EventsPort
  readonly files: FilesPort
  readonly clock: ClockPort
  /** @throws {ConfigurationError} when this process can't run the chat. */
  configure(chat: ChatRow, order: Pick<RunOrder, 'caller'>): Promise<Configuration>
  /** The chat object of a row, as hooks get it. */
  chatOf(chat: ChatRow): unknown
  /** Stored rows as Sequelize's records, as hooks get them. */
  readonly records: {
    readonly message: (row: MessageRow) => MessageRecord
    readonly queuedMessage: (row: QueuedMessageRow) => QueuedMessageRecord
  }
  /** The agent of that name; null where this process lacks it. */
  agentNamed(name: string): Agent | null
  /** Whether a tool of the chat always asks for approval; false for one that this process lacks. */
  requiresApproval(chat: ChatRow, toolName: string): boolean
  /** Calls the hook of the chat's agent, if it has one. Never rejects, and returns within a bounded time. */
  tellTurnEnd(chat: ChatRow, outcome: TurnOutcome): Promise<void>
}

/** Text that was shown of an answer which a cancel cut short. */
export interface Shown {
  readonly message: NewMessage | null
  readonly usageIds: readonly string[]
}

/** One run of a chat under one claim: what it knows, kept in step with what it writes. */
export class RunContext {
  readonly ports: LoopPorts
  readonly order: RunOrder
  readonly claim: HeldClaim
  configuration: Configuration
  hooks: RunHooks
  readonly report: RunReport
  look: ChatLook
  transcript: TranscriptMessage[]
  /** Whether the chat row was read since this run's last write. */
  fresh = true
  /** Whether this run committed a message, so that the count of attempts starts anew. */
  committed = false
  shown: Shown | null = null
  /** Tools approved for the rest of the chat by calls that a summary stands for. */
  remembered: readonly RememberedTool[]
  /** What the last answer reported of the context; undefined until someone asks. */
  measured: MeasuredContext | null | undefined
  limits: ContextLimits | undefined
  /** What kept a summary from being made in this run, which goes on without. */
  compactionFailure: unknown = null
  /** What an earlier run showed of an answer and did not live to store. */
  #draft: string | null
  /** Calls whose approval this run has looked into. */
  readonly consulted = new Set<string>()

  constructor(
    ports: LoopPorts,
    order: RunOrder,
    claim: HeldClaim,
    configuration: Configuration,
    rows: RunRows,
    report: RunReport,
  ) {
    this.ports = ports
    this.order = order
    this.claim = claim
    this.configuration = configuration
    this.hooks = this.#hooksOf(configuration)
    this.report = report
    this.look = rows.look
    this.transcript = rows.transcript
    this.remembered = rows.remembered
    this.#draft = rows.look.draft
  }

  get chat(): ChatRow {
    return this.look.chat
  }

  /** Goes on with what the chat comes down to now. */
  async reconfigure(): Promise<void> {
    this.configuration = await this.ports.configure(this.chat, this.order)
    this.hooks = this.#hooksOf(this.configuration)
    this.limits = undefined
    this.consulted.clear()
  }

  #hooksOf({ agent }: Configuration): RunHooks {
    const own = this.order.caller
    return new RunHooks([agent.hooks, ...(own === undefined ? [] : [own.hooks])], () =>
      own === undefined ? this.ports.chatOf(this.chat) : own.chat,
    )
  }

  /** Reads the chat row again, and the open round where anything was recorded meanwhile. */
  async refresh(): Promise<void> {
    const seen = this.chat.wantedSeq
    this.look = await this.ports.rows.look(this.chat.id)
    this.fresh = true
    if (this.chat.wantedSeq === seen) return
    const round = this.transcript.findLast((message) => message.toolCalls.length > 0)
    if (round !== undefined) round.toolCalls = await this.ports.rows.toolCalls(round.id)
  }

  /** Reads everything again, so that places in the transcript are those of the rows: others may add system messages. */
  async reload(): Promise<void> {
    Object.assign(this, await readRows(this.ports.rows, this.chat.id))
    this.fresh = true
  }

  /** Adds what was just committed to what the run knows. */
  append(message: NewMessage, toolCalls: TranscriptMessage['toolCalls'] = []): TranscriptMessage {
    this.committed = true
    return this.appendAside(message, toolCalls)
  }

  /** Adds a message that is no progress of the turn. */
  appendAside(message: NewMessage, toolCalls: TranscriptMessage['toolCalls'] = []): TranscriptMessage {
    const position = (this.transcript.at(-1)?.position ?? -1) + 1
    const added = { ...message, position, updatedAt: message.createdAt, toolCalls }
    this.transcript.push(added)
    this.fresh = false
    return added
  }

  publish(event: LiveEvent): void {
    const { id, claimToken, rootId } = this.chat
    this.ports.events.publish(id, claimToken, event)
    // From outside any run of that chat. (E91)
    if (rootId !== null && isForRoot(event)) this.ports.events.publish(rootId, 0, event)
  }

  /** Tells viewers, once, that an earlier run's unfinished answer begins anew as this one. */
  replaceDraft(messageId: string): void {
    if (this.#draft !== null) this.publish({ type: 'attempt.restarted', messageId, replaces: this.#draft })
    this.#draft = null
  }

  /** A signal for one move: aborted by a lost claim, a shutdown, or a cancel of the turn. */
  stoppable(): { readonly signal: AbortSignal; readonly dispose: () => void } {
    const stop = new AbortController()
    const onClaim = () => stop.abort(stopReason(this.claim.signal.reason))
    this.claim.signal.addEventListener('abort', onClaim, { once: true })
    if (this.claim.signal.aborted) onClaim()
    const unwatch = this.claim.watchCancel(() => stop.abort('stopped' satisfies StopReason))
    const dispose = () => {
      unwatch()
      this.claim.signal.removeEventListener('abort', onClaim)
    }
    return { signal: stop.signal, dispose }
  }
}

function stopReason(reason: unknown): StopReason {
  return (reason as { code?: string } | undefined)?.code === 'shutdown' ? 'shutdown' : 'claim-lost'
}

/** What everything that is observed of a run names. */
export function factsOf({ chat }: Pick<RunContext, 'chat'>): RunFacts {
  return { chatId: chat.id, turn: chat.turn, claimToken: chat.claimToken }
}

/** The chat as tools and resolvers get it. */
export function chatOf(run: Pick<RunContext, 'chat'>): ToolContext['chat'] {
  const { id, agent, owner } = run.chat
  return { id, agent, owner: ownerOf(owner) }
}
