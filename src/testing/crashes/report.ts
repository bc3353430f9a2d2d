import type { Failure, UsageRow } from '../../../models/rows.ts'
import type { Message } from '../../chat/message.ts'
import type { LoggedRequest } from '../request-log.ts'

/** A statement of a worker that writes, as the run without a crash made it. */
export interface TurnWrite {
  /** Its place among the writes of the turn, from 1. */
  readonly number: number
  /** The statement without values and table prefix. A `COMMIT` says which write it makes last. */
  readonly statement: string
  /** Whether what it writes is stored once it is done: a `COMMIT`, or a statement outside a transaction. */
  readonly stores: boolean
}

/** A place at which a worker process is killed. */
export interface CrashPoint extends TurnWrite {
  /** `before`: the statement was never sent. `after`: the database has done it, and the process learns nothing of it. */
  readonly moment: 'before' | 'after'
}

/** One execution of a tool in a worker process. */
export interface ToolExecution {
  /** The tool's name. */
  readonly tool: string
  /** The idempotency key that it was given: the id of the call's row. */
  readonly key: string
  /** The chat whose call it is: the scenario's own, or a sub-chat. */
  readonly chatId: string
  /** Whose it is: the process that was to die, or the one that went on. */
  readonly process: 'killed' | 'next'
  /** False: the process died while the tool ran. */
  readonly returned: boolean
}

/**
 * How a turn ended. `stuck`: it did not within the limit. `waiting`: it stands still because it waits for a person, a task
 * or another agent, and `drive` is over.
 */
export type TurnEnd = 'answered' | 'failed' | 'cancelled' | 'waiting' | 'stuck'

/** What became of the chat when one process died. Read from rows, the model server's log and a log of executions. */
export interface CrashOutcome {
  /** Where the process died; null for the run without a crash. */
  readonly point: CrashPoint | null
  /** False: the process never came to this statement, in three tries, so none died. */
  readonly died: boolean
  /** The id of the chat, which is deleted once `check` is over. */
  readonly chatId: string
  /** How the chat ended. */
  readonly end: TurnEnd
  /** Why the turn was given up; null where it was not. */
  readonly failure: Failure | null
  /** The transcript to read: a line for each message, those of sub-chats below their own heading. */
  readonly transcript: readonly string[]
  /** The messages of the chat. */
  readonly messages: readonly Message[]
  /** Each execution of a tool, in their order, sub-chats' included. */
  readonly executions: readonly ToolExecution[]
  /** The usage entries of the chat and its sub-chats, oldest first. */
  readonly usages: readonly UsageRow[]
  /** What the scripted model was asked, in its order. */
  readonly requests: readonly LoggedRequest[]
  /** What is wrong with it; empty when nothing is. */
  readonly problems: readonly string[]
}

/** What all crashes came to. */
export interface CrashReport {
  /** The run in which nobody died. */
  readonly baseline: CrashOutcome
  /** One for each place, in the order of the writes. */
  readonly outcomes: readonly CrashOutcome[]
}

/** A place in words: `before write 7, UPDATE tool_calls SET …`. */
export function describePoint(point: CrashPoint | null): string {
  if (point === null) return 'without any crash'
  return `${point.moment} write ${point.number}, ${shortened(point.statement)}`
}

const longest = 160

function shortened(statement: string): string {
  return statement.length <= longest ? statement : `${statement.slice(0, longest)}…`
}
