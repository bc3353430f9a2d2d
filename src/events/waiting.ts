import type { LiveEvent } from './event.ts'

/** An event that has not been sent yet. */
export interface WaitingEvent {
  readonly claimToken: number
  readonly event: LiveEvent
}

type Delta = Extract<LiveEvent, { type: 'text.delta' | 'thinking.delta' }>

/** Most characters in a joined delta: what waits while Redis is away must not grow inside one entry either. */
const MAX_JOINED = 4096

/** True for what may be joined with its like, and dropped when there is too much. */
export function isDelta(event: LiveEvent): event is Delta {
  return event.type === 'text.delta' || event.type === 'thinking.delta'
}

/**
 * Adds an event to what waits for one chat: into the last entry if it goes on with that one's text, else behind it.
 * Above `limit` the oldest delta goes, or the oldest event when no delta is left. Returns how many were dropped.
 */
export function addWaiting(waiting: WaitingEvent[], next: WaitingEvent, limit: number): number {
  const last = waiting.at(-1)
  const joined = last === undefined ? null : join(last, next)
  if (joined !== null) {
    waiting[waiting.length - 1] = joined
    return 0
  }
  waiting.push(next)
  if (waiting.length <= limit) return 0
  const oldestDelta = waiting.findIndex(({ event }) => isDelta(event))
  waiting.splice(Math.max(oldestDelta, 0), 1)
  return 1
}

function join(last: WaitingEvent, next: WaitingEvent): WaitingEvent | null {
  const [before, after] = [last.event, next.event]
  if (!isDelta(before) || !isDelta(after) || last.claimToken !== next.claimToken) return null
  if (before.type !== after.type || before.messageId !== after.messageId) return null
  if (before.text.length + after.text.length > MAX_JOINED) return null
  return { claimToken: last.claimToken, event: { ...before, text: before.text + after.text } }
}
