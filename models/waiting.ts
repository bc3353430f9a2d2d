import type { Json, JsonObject, ToolCallRow } from './rows.ts'

// What a paused call waits on, as `tool_calls.mcp_state` holds it.

/** One thing that is asked for. */
export type InputField = {
  /** What the answer has it under. */
  name: string
  /** Default `string`. */
  type?: 'string' | 'number' | 'integer' | 'boolean'
  /** What a form shows for it. */
  title?: string
  /** What a form says about it. */
  description?: string
  /** The values that there are to choose from; left out: any. */
  choices?: (string | number | boolean)[]
  /** What counts where the answer leaves it out. */
  default?: Json
  /** Whether the answer must have it. Default true, unless there is a default. */
  required?: boolean
}

/** A question that a call asked, and its answer once there is one. */
export type RequestState = {
  /** Which question of the call it is. */
  key: string
  /** What is asked. */
  message: string
  fields: InputField[]
  /** ISO 8601; null = it does not expire. */
  expiresAt: string | null
  /** What becomes of it then. */
  onExpired: 'decline' | 'default'
  /** Set once it is answered. */
  answer?: JsonObject
  /** Set once it is declined. */
  declined?: true
}

/** A task that goes on elsewhere. */
export type TaskState = {
  /** The tool's own name for it. */
  id: string
  /** What the tool wants to have again. */
  data: Json
  /** How long to wait before it is looked at again, in ms. */
  pollMs: number
  /** How it stands, in words; null = nothing was said. */
  message: string | null
  /** ISO 8601. */
  nextPollAt: string
  /** ISO 8601; null = it may take for ever. */
  expiresAt: string | null
}

/** A chat in which another agent answers the call. */
export type SubChatState = {
  /** The id of that chat. */
  id: string
  /** The name of its agent. */
  agent: string
  /** ISO 8601; null = it may take for ever. */
  expiresAt: string | null
  /** Set once it has ended. */
  outcome?: SubChatOutcome
}

/** How the first turn of a sub-chat ended. */
export type SubChatOutcome =
  | {
      kind: 'answered'
      /** The answer. */
      content: string
    }
  | {
      kind: 'failed'
      /** As `chats.failure` has it. */
      message: string
    }
  | { kind: 'cancelled' }

/** What a paused call waits on. */
export type PauseState = {
  requests?: RequestState[]
  task?: TaskState
  subChat?: SubChatState
}

export function pauseOf({ mcpState }: Pick<ToolCallRow, 'mcpState'>): PauseState {
  return (mcpState ?? {}) as PauseState
}

/** The sub-chat of a call, as long as it has not ended; null otherwise. */
export function openSubChat(call: Pick<ToolCallRow, 'mcpState' | 'resultId'>): SubChatState | null {
  const { subChat } = pauseOf(call)
  return call.resultId !== null || subChat === undefined || subChat.outcome !== undefined ? null : subChat
}

/** The questions that wait for an answer. Of a call that was denied none does. */
export function openRequests(call: Pick<ToolCallRow, 'mcpState' | 'approval'>): RequestState[] {
  if (call.approval === 'denied') return []
  return (pauseOf(call).requests ?? []).filter((request) => request.answer === undefined && request.declined !== true)
}

/** The questions of a pause that were open, by these keys, and are no longer. */
export function newlyClosed({ requests = [] }: PauseState, seen: readonly string[]): RequestState[] {
  return requests.filter(
    ({ key, answer, declined }) => seen.includes(key) && (answer !== undefined || declined === true),
  )
}

/** When somebody should look at a waiting call again; null = when something is decided. */
export function dueOf(call: Pick<ToolCallRow, 'mcpState' | 'resultId' | 'approval' | 'expiresAt'>): Date | null {
  const { task } = pauseOf(call)
  const subChatUntil = openSubChat(call)?.expiresAt ?? null
  const open = openRequests(call)
  const times = [
    ...(call.approval === 'pending' && call.expiresAt !== null ? [call.expiresAt] : []),
    ...open.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [new Date(expiresAt)])),
    ...(subChatUntil === null ? [] : [new Date(subChatUntil)]),
    // Whose look asked for something is looked at again with the answer.
    ...(task === undefined || open.length > 0 ? [] : [new Date(task.nextPollAt)]),
  ]
  return times.length === 0 ? null : new Date(Math.min(...times.map((time) => time.getTime())))
}
