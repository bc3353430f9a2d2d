import { ArgumentError } from '../errors.ts'
import { isEntryId } from './ids.ts'

/** What is made from rows for a reader who joins. */
export type History = 'turn' | 'all' | 'none'

/** Where a reader of live events begins, and how it ends. */
export interface EventsOptions {
  /**
   * The id of the last event that was seen: exactly what comes after it is read. '0' = everything that the stream still
   * holds, without anything made from rows. Left out: the reader joins afresh, beginning with `history`.
   */
  readonly after?: string | undefined
  /**
   * What a reader who joins afresh, or anew after a `resync`, is told before the live events: the last `turn` (default), `all`
   * turns, or `none`. Text of an unfinished answer comes from its first delta on, except with `none`.
   */
  readonly history?: History | undefined
  /** Ends the iteration, without an error, when it is aborted. */
  readonly signal?: AbortSignal | undefined
}

const known: readonly string[] = ['after', 'history', 'signal'] satisfies readonly (keyof EventsOptions)[]

/** @throws {ArgumentError} for an `after` that is no event's id, a `history` that does not exist, or options that there are not. */
export function checkEventsOptions(chatId: string, options: EventsOptions): void {
  const given: unknown = options
  const isObject = typeof given === 'object' && given !== null
  if (!isObject || Object.keys(given).some((key) => !known.includes(key))) {
    throw new ArgumentError(`events() of chat ${chatId} takes { after, history, signal } and nothing else`, { chatId })
  }
  const { after, history, signal } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new ArgumentError(`signal must be an AbortSignal, to end events() of chat ${chatId} with`, { chatId })
  }
  if (after !== undefined && !isEntryId(after)) {
    throw new ArgumentError(`after must be an event's id or '0', not ${JSON.stringify(after)}`, { chatId })
  }
  if (history !== undefined && !['turn', 'all', 'none'].includes(history)) {
    throw new ArgumentError(`history must be 'turn', 'all' or 'none', not ${JSON.stringify(history)}`, { chatId })
  }
}
