import { redisConnector } from '../../../config/redis.ts'
import { resolveSettings } from '../../../config/settings.ts'
import type { CrashSettings } from './scenario.ts'

/** Removes all keys of a prefix from the Redis that is named; an embedded one is gone already. */
export async function clearRedis(settings: CrashSettings, redisPrefix: string): Promise<void> {
  const { redisUrl } = resolveSettings(settings)
  if (redisUrl === null) return
  const connector = redisConnector({ redisUrl })
  try {
    const client = await connector.producer()
    for (const node of 'nodes' in client ? client.nodes('master') : [client]) {
      for await (const found of node.scanStream({ match: `*${redisPrefix}*`, count: 1_000 })) {
        for (const key of found as string[]) await client.unlink(key)
      }
    }
  } finally {
    await connector.close()
  }
}
