import type { Queue } from 'bullmq'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'
import type { RingData } from './bell.ts'
import { closeQueues, type OpenedQueue, openQueues } from './queues.ts'

/** What Redis holds of one queue. */
export interface QueueView {
  readonly queue: Bell
  /** Rings that wait for a free worker. */
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  /** The processes whose workers are connected, as host:pid; null where Redis does not tell. */
  readonly workers: readonly string[] | null
}

/** The process that runs a chat's job. */
export interface Runner {
  /** host:pid. */
  readonly process: string
  readonly since: Date
  /** The pid of the process that it started for the chat alone; null where it runs the chat itself. */
  readonly own: number | null
}

/** Most active jobs that are searched for one chat's. */
const searched = 10_000

/** Reads the queues without changing anything. */
export class QueueViews {
  readonly #queues: readonly OpenedQueue[]

  constructor(connection: RedisClient, prefix: string) {
    this.#queues = openQueues(connection, prefix)
  }

  async all(): Promise<QueueView[]> {
    return Promise.all(
      this.#queues.map(async ([name, queue]) => {
        const [counts, workers] = await Promise.all([
          queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed'),
          workersOf(queue),
        ])
        const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = counts
        return { queue: name, waiting: waiting + prioritized, active, delayed, workers }
      }),
    )
  }

  /** Who runs the chat as a job; null when nobody does, or a caller's own process runs it without one. */
  async runnerOf(chatId: string): Promise<Runner | null> {
    for (const [, queue] of this.#queues) {
      const jobs = await queue.getActive(0, searched)
      const job = jobs.find((one) => one?.data.chatId === chatId && one.processedBy !== undefined)
      if (job?.processedBy !== undefined && job.processedOn !== undefined) {
        return { process: job.processedBy, since: new Date(job.processedOn), own: ownProcessOf(job.progress) }
      }
    }
    return null
  }

  async close(): Promise<void> {
    await closeQueues(this.#queues)
  }
}

/** As a pool keeps it with a job. */
export function ownProcessOf(progress: unknown): number | null {
  const { alone } = (progress ?? {}) as { alone?: unknown }
  return typeof alone === 'number' ? alone : null
}

/** The host:pid of each process with a worker of the queue; null from a server that does not list its clients. */
export async function workersOf(queue: Queue<RingData>): Promise<string[] | null> {
  try {
    // A worker has two connections, both of its name.
    const clients = await queue.getWorkers()
    const names = clients.map((client) => /:w:(.+)$/.exec(client.rawname ?? '')?.[1] ?? client.addr ?? 'unknown')
    return [...new Set(names)].sort()
  } catch {
    return null
  }
}
