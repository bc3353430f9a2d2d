import type { LiveEvent } from './event.ts'

/** The events that a run ends with. */
export type RunEnd = Extract<LiveEvent, { type: 'run.finished' | 'run.waiting' | 'run.cancelled' | 'run.failed' }>

export function isRunEnd(event: LiveEvent): event is RunEnd {
  return /^run\.(finished|waiting|cancelled|failed)$/.test(event.type)
}

/** Whether nothing more comes of it by itself. */
export function isFinal(end: RunEnd): boolean {
  return end.type !== 'run.failed' || end.retryInMs === null
}
