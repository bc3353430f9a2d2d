import { resolve } from 'node:path'
import { isServing, readAddress } from '../../../config/embedded/address.ts'
import { queuePrefix } from '../../../config/queues.ts'
import { redisConnector } from '../../../config/redis.ts'
import type { Settings } from '../../../config/settings.ts'
import { QueueViews } from '../../../workers/queue-view.ts'
import { complaintOf } from '../complain.ts'

/** Somebody waits for the answer, and most of it is in the database. */
const readyWithinMs = 2_000

/** What could be read of the queues; `problem` says why nothing could, in place of it. */
export type Seen<T> = { readonly seen: T } | { readonly problem: string }

/** Looks at the queues without starting a Redis: an embedded one is only looked at while another process serves it. */
export async function seeQueues<T>(settings: Settings, look: (views: QueueViews) => Promise<T>): Promise<Seen<T>> {
  const redisUrl = settings.redisUrl ?? (await embeddedRedisUrl(settings.dataDir))
  if (redisUrl === null) return { problem: 'no embedded Redis runs, so no worker does' }
  const redis = redisConnector({ redisUrl }, { readyWithinMs })
  try {
    const views = new QueueViews(await redis.producer(), queuePrefix(settings.redisPrefix, redis))
    try {
      return { seen: await look(views) }
    } finally {
      await views.close()
    }
  } catch (error) {
    return { problem: complaintOf(error).message }
  } finally {
    await redis.close()
  }
}

/** The embedded Redis of a folder, while a process serves it; null while none does. */
export async function embeddedRedisUrl(dataDir: string): Promise<string | null> {
  const address = await readAddress(resolve(dataDir))
  return address !== null && (await isServing(address)) ? `redis://127.0.0.1:${address.port}/0` : null
}
