import type { Json, JsonObject, ToolCallRow } from '../../models/rows.ts'

/** What a tool is handed beside its arguments. */
export interface ToolContext {
  /** The stored call. */
  readonly toolCall: Readonly<ToolCallRow>
  readonly chat: { readonly id: string; readonly agent: string | null; readonly owner: string | null }
  /** The same for every run of this call, in any process: hand it to whatever must not act twice. */
  readonly idempotencyKey: string
  /** Aborted with a reason of {@link StopReason}. */
  readonly signal: AbortSignal
  /** Reports progress to whoever watches the chat. Dropped once the call has its result. */
  progress(progress: ToolProgress): void
}

/** Why a tool's or request's signal was aborted. */
export type StopReason = 'stopped' | 'claim-lost' | 'shutdown' | 'timeout'

export interface ToolProgress {
  readonly message?: string
  readonly value?: number
  readonly total?: number
}

/** What becomes of a call whose process died, froze or was cut off after the call began. */
export type Reconciled =
  | { readonly action: 'retry' }
  | { readonly action: 'fail'; readonly message?: string }
  | { readonly action: 'ask' }
  /** The effect is known to have happened: this is its result. */
  | { readonly action: 'result'; readonly result: unknown }

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
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments: always of type object. */
  readonly parameters: JsonObject
  readonly requiresApproval: boolean | ApprovalResolver
  /** Limit on one run, the check of its arguments included, in ms. */
  readonly timeoutMs: number
  /** What an error other than `ToolError` does: end the run, or go to the model. */
  readonly onError: 'raise' | 'report'
  readonly onInterrupted: OnInterrupted
  /** Checks what the model passed. Never throws. */
  validate(args: JsonObject): Promise<ValidatedArguments>
  /** Runs the tool with arguments that `validate` returned. */
  execute(args: unknown, context: ToolContext): Promise<unknown>
}

export type ValidatedArguments =
  | { readonly ok: true; readonly value: unknown }
  /** `message` is written for the model: which argument is wrong, and how. */
  | { readonly ok: false; readonly message: string }

/** What a call came to, ready to be stored as its result. */
export type ToolResult = {
  readonly outcome: 'succeeded' | 'failed' | 'interrupted'
  /** The text that the model gets. */
  readonly content: string
  /** Set when the run must end with this error once the result is stored. */
  readonly raise?: unknown
}

export type { Json }
