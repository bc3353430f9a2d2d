import type { Bell } from '../../../models/rows.ts'
import type { CanaryEnd } from '../../../workers/canary.ts'

/** What is looked at: the two servers, and each queue. */
export type PartName = 'database' | 'redis' | Bell

/**
 * How a part is. `busy`, `paused` and `none` are not ill: workers have their hands full, somebody paused the queue, no worker is meant to
 * work on it. `failed`: the server does not answer, or not as it should. `untaken`: no worker takes the jobs of the queue.
 */
export type PartStatus = 'ok' | 'busy' | 'paused' | 'none' | 'failed' | 'untaken'

/** One part, as it is shown. */
export interface Part {
  readonly part: PartName
  readonly status: PartStatus
  readonly what: string
}

export function isIll({ status }: Part): boolean {
  switch (status) {
    case 'failed':
    case 'untaken':
      return true
    case 'ok':
    case 'busy':
    case 'paused':
    case 'none':
      return false
    default:
      return status satisfies never
  }
}

/**
 * What a canary shows of its queue.
 * @param workers the processes that are connected; null = Redis does not tell.
 */
export function partOf(queue: Bell, end: CanaryEnd, workers: readonly string[] | null, withinMs: number): Part {
  switch (end.kind) {
    case 'answered':
      return {
        part: queue,
        status: 'ok',
        what: `taken by ${end.process ?? 'a worker'} in ${Math.round(end.tookMs)} ms`,
      }
    case 'busy':
      return {
        part: queue,
        status: 'busy',
        what: `each worker is at work, ${end.active} jobs in all, and none took another in ${seconds(withinMs)}`,
      }
    case 'paused':
      return { part: queue, status: 'paused', what: 'somebody paused the queue: its jobs wait' }
    case 'unanswered': {
      const connected = workers === null ? '' : `, ${workers.length} connected: ${workers.join(', ')}`
      const what = `no worker took a job in ${seconds(withinMs)}, ${end.waiting} wait${connected}`
      return { part: queue, status: 'untaken', what }
    }
    default:
      return end satisfies never
  }
}

function seconds(ms: number): string {
  return `${Number((ms / 1_000).toFixed(3))} s`
}
