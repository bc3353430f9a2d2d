import type { ConnectOptions } from '../../../../src/index.ts'
import type { Bench } from '../../../support/mills.ts'
import { type Link, startLink, through } from './link.ts'

/** Links of one test to the servers of its bench. */
export interface Links {
  readonly redis: Link
  /** SQLite has no network: null. */
  readonly database: Link | null
  /** Options that lead through them. */
  readonly options: Pick<ConnectOptions, 'databaseUrl' | 'redisUrl'>
}

/** Links for each test, closed after it. */
export function useLinks(bench: Bench): () => Promise<Links> {
  let open: Link[] = []
  afterEach(async () => {
    await Promise.all(open.map((link) => link.close()))
    open = []
  })
  return async () => {
    const { url } = bench.database
    const isFile = url.startsWith('sqlite:')
    const redis = await startLink(bench.redis.port)
    const database = isFile ? null : await startLink(Number(new URL(url).port || 3306))
    open.push(redis, ...(database === null ? [] : [database]))
    return {
      redis,
      database,
      options: {
        redisUrl: through(redis, bench.redis.url),
        ...(database === null ? {} : { databaseUrl: through(database, url) }),
      },
    }
  }
}
