import { type Models, recordOf } from '../../models/index.ts'
import type { Json, ToolCallRow } from '../../models/rows.ts'
import type { ToolCallRecord } from '../../models/tool-call.ts'
import { type InputField, openRequests, pauseOf } from '../../models/waiting.ts'

/** A question that a tool asked in the middle of its call, and that nobody has answered. */
export interface InputRequest {
  /** For `chat.answer` and `chat.decline`. */
  readonly id: string
  /** Which question of the call it is. */
  readonly key: string
  /** The call. */
  readonly toolCall: ToolCallRecord
  /** What is asked. */
  readonly message: string
  /** What the answer is to hold. */
  readonly fields: readonly InputField[]
  /** When nobody waits for it any longer; null = never. */
  readonly expiresAt: Date | null
}

/** Work of a tool that goes on elsewhere, as it was last looked at. */
export interface PendingTaskOfChat {
  /** The tool's own name for it. */
  readonly id: string
  /** The call. */
  readonly toolCall: ToolCallRecord
  /** What the tool stored with it. */
  readonly data: Json
  /** How it stands, in words; null where the tool did not say. */
  readonly message: string | null
  /** How long the tool waits between two looks, in ms. */
  readonly pollMs: number
  /** When it is looked at again. */
  readonly nextPollAt: Date
  /** When it has taken too long; null = never. */
  readonly expiresAt: Date | null
}

export function inputsOf(call: ToolCallRow, models: Models): InputRequest[] {
  return openRequests(call).map(({ key, message, fields, expiresAt }) => ({
    id: `${call.id}:${key}`,
    key,
    toolCall: recordOf(models.ToolCall, call),
    message,
    fields,
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
  }))
}

export function tasksOf(call: ToolCallRow, models: Models): PendingTaskOfChat[] {
  const { task } = pauseOf(call)
  if (task === undefined) return []
  const { id, data, message, pollMs, nextPollAt, expiresAt } = task
  return [
    {
      id,
      toolCall: recordOf(models.ToolCall, call),
      data,
      message,
      pollMs,
      nextPollAt: new Date(nextPollAt),
      expiresAt: expiresAt === null ? null : new Date(expiresAt),
    },
  ]
}
