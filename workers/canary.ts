import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Job, Queue } from 'bullmq'
import type { RedisClient } from '../config/redis-clients.ts'
import type { RingData, RingName } from './bell.ts'
import type { JobOutcome } from './job.ts'

/** What became of a canary. */
export type CanaryEnd =
  /** A worker answered it after so many ms. `process` is its host:pid. */
  | { readonly kind: 'answered'; readonly process: string | null; readonly tookMs: number }
  /** No worker answered in time, and each works on something, so that it may be full. So many jobs are in work. */
  | { readonly kind: 'busy'; readonly active: number }
  /** Somebody paused the queue. */
  | { readonly kind: 'paused' }
  /** No worker answered in time, though there is one that works on nothing, or none at all. So many other jobs wait. */
  | { readonly kind: 'unanswered'; readonly waiting: number }

/** A job for no chat: whichever worker takes it has shown that it takes jobs. (E136) */
const canaryName: RingName = 'canary'

export function isCanary(job: Pick<Job<RingData>, 'name'>): boolean {
  return job.name === canaryName
}

/** How a worker answers: it looks at no row, and nothing is observed. */
export async function answerCanary(): Promise<JobOutcome> {
  return 'done'
}

/** It is removed by who sent it; if that died, by the next job that ends after so many seconds. */
const keptForSeconds = 60
const lookAgainMs = 50
/** Most jobs in work that are looked at for one whose worker lives. */
const lookedAt = 1_000

/**
 * Puts a canary into a queue, before everything that waits there, and removes it after a worker answered, or did not in time.
 * Rejects when Redis refuses a command; while Redis is silent it waits.
 * @param client a connection to the Redis of the queue.
 * @param workers the processes that could take it, as host:pid; null = not known.
 */
export async function sendCanary(
  queue: Queue<RingData>,
  client: RedisClient,
  workers: readonly string[] | null,
  withinMs: number,
): Promise<CanaryEnd> {
  if (await queue.isPaused()) return { kind: 'paused' }
  const begun = performance.now()
  // A worker of a release that knows no canaries looks for this chat, and finds none.
  const canary = await queue.add(
    canaryName,
    { chatId: randomUUID() },
    {
      attempts: 1,
      lifo: true,
      removeOnComplete: { age: keptForSeconds },
      removeOnFail: { age: keptForSeconds },
    },
  )
  try {
    while (performance.now() - begun < withinMs) {
      const seen = await queue.getJob(canary.id ?? '')
      if (seen?.finishedOn !== undefined) {
        return { kind: 'answered', process: seen.processedBy ?? null, tookMs: performance.now() - begun }
      }
      await pause(lookAgainMs)
    }
    const busy = await workersAtWork(queue, client, canary.id)
    const isFree =
      workers === null ? busy.length === 0 : workers.length === 0 || workers.some((one) => !busy.includes(one))
    if (!isFree) return { kind: 'busy', active: busy.length }
    return { kind: 'unanswered', waiting: await othersThatWait(queue) }
  } finally {
    // One that is being answered has a lock, and removes itself later.
    await canary.remove().catch(() => {})
  }
}

/** The process of each job in work. A job that is active has a lock, unless its worker has died. */
async function workersAtWork(
  queue: Queue<RingData>,
  client: RedisClient,
  except: string | undefined,
): Promise<string[]> {
  const jobs = (await queue.getActive(0, lookedAt - 1)).filter(({ id }) => id !== except)
  const locks = await Promise.all(jobs.map(({ id }) => client.exists(`${queue.toKey(id ?? '')}:lock`)))
  return jobs.filter((_, at) => (locks[at] ?? 0) > 0).map(({ processedBy }) => processedBy ?? '')
}

async function othersThatWait(queue: Queue<RingData>): Promise<number> {
  const { waiting = 0, prioritized = 0 } = await queue.getJobCounts('waiting', 'prioritized')
  return Math.max(0, waiting + prioritized - 1)
}
