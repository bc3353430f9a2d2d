import * as z from 'zod'
import type { MessageRecord } from '../../models/message.ts'
import type { QueuedMessageRecord } from '../../models/queued-message.ts'
import type { JsonObject, TranscriptMessage } from '../../models/rows.ts'
import type { ToolCallValue } from '../../models/tool-call.ts'
import type { Fallback } from './fallback.ts'
import type { ToolProgress } from './tool.ts'

/** How far a tool has come, with the part that is done from 0 to 1; null where the tool did not say both numbers. */
export interface HookProgress extends ToolProgress {
  /** `value / total`. */
  readonly fraction: number | null
}

/**
 * What is called while a chat is run, and when its queue changes. Each is awaited. Those of the agent come first, then those
 * that the chat object was given, in the order in which they were given. `chat` is the chat that it happens to: the caller's own object
 * where a caller runs it. What a hook throws ends the run there, as an error of that move; what is stored stays stored. (E30)
 */
export interface Hooks<Chat> {
  /**
   * The body that the provider is about to be sent, to be changed in place; once for each request that is built, so that a
   * transport retry sends the same again. Also for `chat.render()` and for summaries.
   */
  beforeRequest(payload: JsonObject, chat: Chat): unknown
  /** An assistant or tool message is about to begin. */
  beforeMessage(chat: Chat): unknown
  /** An assistant or tool message was stored. */
  afterMessage(message: TranscriptMessage, chat: Chat): unknown
  /** A tool is about to run: not for calls that are denied, unknown, over the limit, or answered otherwise. */
  beforeToolCall(call: ToolCallValue, chat: Chat): unknown
  /** A tool has run; `result` is what it returned, or `{ error }` where it reported one. Not stored yet. */
  afterToolResult(result: unknown, call: ToolCallValue, chat: Chat): unknown
  /**
   * A running tool, or the task that its call waits for, reported how far it is. Called with one report after the other; the tool
   * itself goes on meanwhile, its result waits.
   */
  afterToolProgress(call: ToolCallValue, progress: HookProgress, chat: Chat): unknown
  /** A model failed, and another one is about to be asked in its place. */
  beforeFallback(fallback: Fallback, chat: Chat): unknown
  /** That model has answered, or failed as well. */
  afterFallback(fallback: Fallback, chat: Chat): unknown
  /** A message was put in the queue, by this process. */
  afterQueue(queued: QueuedMessageRecord, chat: Chat): unknown
  /** A queued message was stored as a message, by this process: the one that runs the chat, or asked. */
  afterDequeue(message: MessageRecord, queued: QueuedMessageRecord, chat: Chat): unknown
  /** A message was taken out of the queue, by this process. */
  afterUnqueue(queued: QueuedMessageRecord, chat: Chat): unknown
}

/** Which hooks there are. */
export type HookName = keyof Hooks<unknown>

/** Any number of functions for each hook, in the order in which they are called. */
export type HookLists<Chat> = { readonly [Name in HookName]?: readonly Hooks<Chat>[Name][] }

/** What an agent is given: for each hook a function, or several. */
export type HookDefinitions<Chat> = {
  readonly [Name in HookName]?: Hooks<Chat>[Name] | readonly Hooks<Chat>[Name][] | undefined
}

export const hookNames = [
  'beforeRequest',
  'beforeMessage',
  'afterMessage',
  'beforeToolCall',
  'afterToolResult',
  'afterToolProgress',
  'beforeFallback',
  'afterFallback',
  'afterQueue',
  'afterDequeue',
  'afterUnqueue',
] as const satisfies readonly HookName[]

type AnyHook = (...args: never[]) => unknown
const hook = z.custom<AnyHook>((value) => typeof value === 'function', 'must be a function')

/** Reads hooks as lists. */
export const hooksSchema = z
  .partialRecord(z.enum(hookNames), z.union([hook, z.array(hook)], { error: 'must be a function, or a list of them' }))
  .transform((given) => {
    const lists = Object.entries(given).map(([name, one]) => [name, Array.isArray(one) ? [...one] : [one]])
    return Object.freeze(Object.fromEntries(lists)) as HookLists<never>
  })
