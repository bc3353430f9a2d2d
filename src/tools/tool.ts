import type { Owner } from '../../models/owner.ts'
import type { Json, JsonObject, ToolCallRow, ToolEncoding, Transfer } from '../../models/rows.ts'
import type { InputField } from '../../models/waiting.ts'
import type { AttachmentSource } from '../attachments/source.ts'
import type { Agent } from './agent.ts'
import type { Pause } from './pausing.ts'

/** What a tool is handed beside its arguments. */
export interface ToolContext {
  /** The stored call. */
  readonly toolCall: Readonly<ToolCallRow>
  /** The chat that the call belongs to. */
  readonly chat: {
    /** For `mill.chats.find`. */
    readonly id: string
    /** The name of its agent; null for one without. */
    readonly agent: string | null
    /** What the application said it belongs to; null where it said nothing. */
    readonly owner: Owner | null
  }
  /** The same for every run of this call, in any process: hand it to whatever must not act twice. */
  readonly idempotencyKey: string
  /** Aborted with a reason of {@link StopReason}. */
  readonly signal: AbortSignal
  /** Reports progress to whoever watches the chat. Dropped once the call has its result. */
  progress(progress: ToolProgress): void
  /**
   * Attaches files to the result of the call: one, or a list, as `attachments` of `chat.ask`; blank entries are left out. May be called
   * any number of times. It resolves once the bytes are stored, so that a temporary file can be deleted then; one that is not awaited is
   * waited for when the tool returns, and what it throws is then the tool's. Only a call that succeeds keeps its files: one that
   * waits (`ask`, `task`) attaches them when it runs again, or in `resume`. (E80, E81)
   * @throws {AttachmentError} for what can't be read, is too large, or is on a host that is not allowed; nothing of that list is attached.
   * @throws {ToolCallEndedError} when the execution is over.
   */
  attach(files: AttachmentSource | readonly AttachmentSource[]): Promise<void>
  /**
   * Asks the user, in the middle of the call. Nothing waits in memory: this execution ends here, and once there is an answer the tool
   * runs again from its beginning, under the same idempotency key, and gets it at once. What comes before an `ask` therefore runs
   * again: only read there. (S97)
   * @returns the answer, complete with defaults.
   * @throws {InputDeclinedError} when the user declined, or nobody answered in time.
   */
  ask(options: QuestionOptions): Promise<JsonObject>
  /**
   * What a tool returns for work that goes on elsewhere: `return context.task({ id, pollMs })`. The call waits, no worker is held, and
   * `resume` of the tool is called about every `pollMs` until it returns something else. (S99)
   */
  task(options: TaskOptions): Task
  /**
   * What a tool returns for work that another agent is to do: `return context.delegate({ agent, message })`. That agent answers the
   * message in a chat of its own, run by any worker; the call waits, no worker is held, and the answer becomes its result, once. The
   * chat is made when the tool returns this. (E90)
   * @throws {ConfigurationError} for an agent that this process does not have, or a chat that has too many above it.
   * @throws {ArgumentError} for other options, or inputs that the agent does not take.
   */
  delegate(options: DelegateOptions): Promise<Delegated>
  /**
   * What a tool returns for a conversation that another agent is to go on with: `return context.transfer({ agent })`. Once all calls of
   * the round have their results that agent is the chat's, and answers in the same turn. (E97)
   * @throws {ConfigurationError} for an agent that this process does not have.
   * @throws {ArgumentError} for other options, or inputs that the agent does not take.
   */
  transfer(options: TransferOptions): Promise<Transferring>
}

/** Another agent for the chat. */
export interface TransferOptions {
  /** Who goes on. */
  readonly agent: string | Pick<Agent, 'name'>
  /** What its instructions are made with, in place of what the chat was given before. Default: nothing. */
  readonly inputs?: JsonObject | null | undefined
  /** What the call's result says, for the agent that goes on to read. Default: that it does. */
  readonly message?: string | undefined
}

/** What `context.transfer()` made: to be returned by the tool. */
export interface Transferring {
  /** The name of the agent that goes on. */
  readonly agent: string
}

/** Work for another agent. */
export interface DelegateOptions {
  /** Who does it. */
  readonly agent: string | Pick<Agent, 'name'>
  /** The first message of its chat. */
  readonly message: string
  /** What its instructions are made with. Default: nothing. */
  readonly inputs?: JsonObject | null | undefined
  /** How long it may take, in ms; ten years at most. Default: for ever. Then it is cancelled, and the model is told. */
  readonly expiresMs?: number | undefined
}

/** What `context.delegate()` made: to be returned by the tool. */
export interface Delegated {
  /** The id of the chat in which the other agent answers. */
  readonly id: string
}

/** A question of a tool. */
export interface QuestionOptions {
  /** What is asked. */
  readonly message: string
  /** What the answer is to hold. */
  readonly fields: readonly InputField[]
  /** Which question of the call it is; default: its number. Give one where the order of questions may change. */
  readonly key?: string | undefined
  /** How long an answer is waited for, in ms; ten years at most. Default: for ever. */
  readonly expiresMs?: number | undefined
  /** What becomes of it then: declined (default), or answered with its defaults, where every field has one. */
  readonly onExpired?: 'decline' | 'default' | undefined
}

/** Work of a tool that goes on elsewhere. */
export interface TaskOptions {
  /** The tool's own name for it. */
  readonly id: string
  /** What `resume` wants to have again; JSON. */
  readonly data?: Json | undefined
  /** How long to wait before looking again, in ms; ten years at most. */
  readonly pollMs: number
  /** How it stands, in words, for whoever watches. */
  readonly message?: string | undefined
  /** How long it may take, in ms; ten years at most. Default: for ever. The model is told when it took longer. */
  readonly expiresMs?: number | undefined
}

/** What `context.task()` made: to be returned by the tool. */
export interface Task {
  /** The tool's own name for it. */
  readonly id: string
}

/** What a tool is handed to end a task. */
export type CancelContext = Pick<ToolContext, 'toolCall' | 'chat' | 'idempotencyKey' | 'signal'>

/** A task as `resume` and `cancelTask` get it. */
export interface PendingTask {
  /** The tool's own name for it. */
  readonly id: string
  /** What the tool stored with it. */
  readonly data: Json
}

/** Why a tool's or request's signal was aborted. */
export type StopReason = 'stopped' | 'claim-lost' | 'shutdown' | 'timeout'

/** How far a tool has come. All of it is optional and shown as it is. */
export interface ToolProgress {
  /** What it is doing. */
  readonly message?: string
  /** How much is done, in any unit. */
  readonly value?: number
  /** How much there is to do, in the same unit. */
  readonly total?: number
}

/** What becomes of a call whose process died, froze or was cut off after the call began. */
export type Reconciled =
  /** It did nothing, or may safely be done twice: run it again, under the same idempotency key. */
  | { readonly action: 'retry' }
  /** The model is told that the call was interrupted and that its outcome is not known. */
  | {
      readonly action: 'fail'
      /** What the model is told in place of that. */
      readonly message?: string
    }
  /** A person decides whether it runs again, as about an approval. */
  | { readonly action: 'ask' }
  /** The effect is known to have happened. */
  | {
      readonly action: 'result'
      /** What the tool would have returned. */
      readonly result: unknown
    }

/**
 * What becomes of an interrupted call: run it again, tell the model that its outcome is not known, ask a person, or
 * find out.
 * A function should only read, and must heed the signal: it has the tool's own `timeoutMs`. (R18)
 */
export type OnInterrupted =
  | 'retry'
  | 'fail'
  | 'ask'
  | ((
      context: Omit<ToolContext, 'progress' | 'attach' | 'ask' | 'task' | 'delegate' | 'transfer'> & {
        /** What the call ran with: the model's, or what a person put in their place. (E42) */
        readonly arguments: JsonObject
      },
    ) => Promise<Reconciled> | Reconciled)

/** True runs the call, false denies it, null or undefined leaves it waiting. Asked again at each run: it must be a read. */
export type ApprovalResolver = (
  call: Readonly<ToolCallRow>,
  chat: ToolContext['chat'],
) => boolean | null | undefined | Promise<boolean | null | undefined>

/** A tool, ready to be offered to a model. Made by `defineTool`. */
export interface Tool {
  /** What the model calls it by. */
  readonly name: string
  /** What it does and when to use it. */
  readonly description: string
  /** JSON Schema of the arguments: always of type object. */
  readonly parameters: JsonObject
  /** Whether a person decides about each call. */
  readonly requiresApproval: boolean | ApprovalResolver
  /** Limit on one run, the check of its arguments included, in ms. */
  readonly timeoutMs: number
  /** What an error other than `ToolError` does: end the run, or go to the model. */
  readonly onError: 'raise' | 'report'
  /** What becomes of a call that began in a process that is gone. */
  readonly onInterrupted: OnInterrupted
  /** Checks what the model passed. Never throws. */
  validate(args: JsonObject): Promise<ValidatedArguments>
  /** Runs the tool with arguments that `validate` returned. */
  execute(args: unknown, context: ToolContext): Promise<unknown>
  /** Looks how a task stands; null = it begins none. */
  readonly resume: ((task: PendingTask, context: ToolContext) => Promise<unknown>) | null
  /** Ends a task whose turn was cancelled; null = it can't be. */
  readonly cancelTask: ((task: PendingTask, context: CancelContext) => Promise<unknown>) | null
  /** How long a decision about a call is waited for, in ms; null = for ever. */
  readonly approvalExpiresMs: number | null
  /** What becomes of a call then. */
  readonly onExpired: 'deny' | 'approve'
  /** Agents that it delegates or transfers to: a process that has the tool has them. */
  readonly agents: readonly Agent[]
}

/** What came of checking the arguments of a call. */
export type ValidatedArguments =
  | {
      readonly ok: true
      /** What the tool gets. */
      readonly value: unknown
    }
  | {
      readonly ok: false
      /** Written for the model: which argument is wrong, and how. */
      readonly message: string
    }

/** What a call came to, ready to be stored as its result. */
export type ToolResult = {
  /** Set when the call is to wait: no result is stored then. */
  readonly pause?: Pause
  readonly outcome: 'succeeded' | 'failed' | 'interrupted'
  /** The text that the model gets. */
  readonly content: string
  /** How that text is to be read; left out: as JSON. */
  readonly encoding?: ToolEncoding
  /** Set when the tool ended by itself: what it returned, or `{ error }` where it threw a `ToolError`. */
  readonly returned?: unknown
  /** Set when another agent is to go on with the chat. */
  readonly transfer?: Transfer
  /** Set when the run must end with this error once the result is stored. */
  readonly raise?: unknown
}

export type { Json }
