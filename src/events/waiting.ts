import type { LiveEvent } from './event.ts'

/** An event that has not been sent yet. */
export interface WaitingEvent {
  readonly claimToken: number
  /** Its number among what its run sends; null from outside any run. */
  readonly number: number | null
  readonly event: LiveEvent
}

export type Delta = Extract<LiveEvent, { type: 'text.delta' | 'thinking.delta' }>

/** Most characters in a joined delta: what waits while Redis is away must not grow inside one entry either. */
const MAX_JOINED = 4096

/** True for what may be joined with its like, and dropped when there is too much. */
export function isDelta(event: LiveEvent): event is Delta {
  return event.type === 'text.delta' || event.type === 'thinking.delta'
}

/** Adds a delta to the last entry that waits, if it goes on with that one's text. False = it does not. */
export function joinWaiting(waiting: WaitingEvent[], claimToken: number, event: LiveEvent): boolean {
  const last = waiting.at(-1)
  const joined = last === undefined || last.claimToken !== claimToken ? null : join(last.event, event)
  if (last === undefined || joined === null) return false
  waiting[waiting.length - 1] = { ...last, event: joined }
  return true
}

/**
 * Adds an entry behind what waits for one chat. Above `limit` the oldest delta goes, or the oldest event when no delta is
 * left. Returns how many were dropped.
 */
export function addWaiting(waiting: WaitingEvent[], next: WaitingEvent, limit: number): number {
  waiting.push(next)
  if (waiting.length <= limit) return 0
  const oldestDelta = waiting.findIndex(({ event }) => isDelta(event))
  waiting.splice(Math.max(oldestDelta, 0), 1)
  return 1
}

/** The characters of a delta; 0 for anything else. */
export function lengthOf(waiting: WaitingEvent | undefined): number {
  return waiting !== undefined && isDelta(waiting.event) ? waiting.event.text.length : 0
}

function join(before: LiveEvent, after: LiveEvent): Delta | null {
  if (!isDelta(before) || !isDelta(after)) return null
  if (before.type !== after.type || before.messageId !== after.messageId) return null
  if (before.text.length + after.text.length > MAX_JOINED) return null
  return { ...before, text: before.text + after.text }
}
