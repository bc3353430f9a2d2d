import { embeddedDatabaseUrl } from '../database.ts'
import type { Settings } from '../settings.ts'
import { type StartRedisOptions, startRedis } from './redis.ts'

/** The services to use, embedded ones where the settings name none. */
export interface Services {
  readonly databaseUrl: string
  readonly redisUrl: string
  /** Ends what was started here; nothing if both URLs were set. Safe to call again. */
  stop(): Promise<void>
}

/**
 * Fills in what the settings leave out: a SQLite file in the data directory, and a Redis that lives as long as this
 * process. Starts nothing that is named. Throws UnreachableError when a Redis is needed and none can be started.
 */
export async function embedded(
  settings: Pick<Settings, 'databaseUrl' | 'redisUrl' | 'dataDir'>,
  options: StartRedisOptions,
): Promise<Services> {
  const databaseUrl = settings.databaseUrl ?? embeddedDatabaseUrl(settings.dataDir)
  if (settings.redisUrl !== null) return { databaseUrl, redisUrl: settings.redisUrl, stop: async () => {} }
  const redis = await startRedis(settings.dataDir, options)
  return { databaseUrl, redisUrl: redis.url, stop: () => redis.stop() }
}
