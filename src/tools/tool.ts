import type { Json, JsonObject, ToolCallRow, ToolEncoding } from '../../models/rows.ts'

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
    readonly owner: string | null
  }
  /** The same for every run of this call, in any process: hand it to whatever must not act twice. */
  readonly idempotencyKey: string
  /** Aborted with a reason of {@link StopReason}. */
  readonly signal: AbortSignal
  /** Reports progress to whoever watches the chat. Dropped once the call has its result. */
  progress(progress: ToolProgress): void
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
  | ((context: Omit<ToolContext, 'progress'> & { readonly arguments: JsonObject }) => Promise<Reconciled> | Reconciled)

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
  readonly outcome: 'succeeded' | 'failed' | 'interrupted'
  /** The text that the model gets. */
  readonly content: string
  /** How that text is to be read; left out: as JSON. */
  readonly encoding?: ToolEncoding
  /** Set when the tool ended by itself: what it returned, or `{ error }` where it threw a `ToolError`. */
  readonly returned?: unknown
  /** Set when the run must end with this error once the result is stored. */
  readonly raise?: unknown
}

export type { Json }
