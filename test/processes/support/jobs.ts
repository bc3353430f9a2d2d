import { once } from 'node:events'
import { type Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { queueNames } from '../../../config/queues.ts'

/** The complete queue as an outsider sees it. */
export interface Jobs {
  /** Rings for a chat as often as it is called, whatever waits or runs. */
  ring(chatId: string): Promise<Job>
  /** How many jobs have failed. */
  failed(): Promise<number>
  /** Those of a chat that have failed and are kept. */
  failedOf(chatId: string): Promise<Job[]>
  /** Jobs that are being worked on. */
  active(): Promise<Job[]>
  /** A job as it is now; undefined when there is none. */
  job(id: string): Promise<Job | undefined>
  /** Takes the active jobs' locks away and puts them back into the queue, as happens to those of a worker that stalls. */
  redeliver(): Promise<void>
  readonly redis: Redis
}

const prefix = 'threadmill'

/** Looks into the queue of the Redis that a suite uses; closed after each test. */
export function useJobs(url: () => string): () => Jobs {
  let open: { readonly jobs: Jobs; readonly close: () => Promise<unknown> } | undefined
  afterEach(async () => {
    await open?.close()
    open = undefined
  })
  return () => {
    open ??= openJobs(url())
    return open.jobs
  }
}

function openJobs(url: string): { jobs: Jobs; close: () => Promise<unknown> } {
  const redis = new Redis(url, { maxRetriesPerRequest: null })
  // While a test keeps Redis away it can't be reached, as it should be.
  redis.on('error', () => {})
  const queue = new Queue(queueNames.complete, { connection: redis, prefix })
  queue.on('error', () => {})
  const redeliver = async () => {
    for (const job of await queue.getActive()) await redis.del(`${queue.toKey(job.id ?? '')}:lock`)
    const checker = new Worker(queueNames.complete, undefined, {
      connection: redis,
      prefix,
      autorun: false,
      stalledInterval: 50,
      maxStalledCount: 1_000,
    })
    const stalled = once(checker, 'stalled')
    await checker.startStalledCheckTimer()
    // The key says that some worker has checked lately: every check but one in 30 s would end at once.
    const hurry = setInterval(() => void redis.del(queue.toKey('stalled-check')), 25)
    try {
      await stalled
    } finally {
      clearInterval(hurry)
      await checker.close()
    }
  }
  return {
    jobs: {
      ring: (chatId) => queue.add('ring', { chatId }),
      failed: () => queue.getFailedCount(),
      failedOf: async (chatId) => (await queue.getFailed()).filter(({ data }) => data.chatId === chatId),
      active: () => queue.getActive(),
      job: (id) => queue.getJob(id),
      redeliver,
      redis,
    },
    close: async () => {
      await queue.close()
      redis.disconnect()
    },
  }
}
