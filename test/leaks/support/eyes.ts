import { Redis } from 'ioredis'
import { createConnection } from 'mysql2/promise'
import type { Eyes } from './counts.ts'
import type { Input } from './input.ts'

/** Opens what a program looks at itself with. */
export async function openEyes({
  options: { databaseUrl, redisUrl },
}: Input): Promise<Eyes & { close(): Promise<void> }> {
  const redis = new Redis(redisUrl)
  await redis.ping()
  const url = new URL(databaseUrl)
  const isFile = url.protocol === 'sqlite:'
  const database = isFile ? databaseUrl.slice('sqlite:'.length) : url.pathname.slice(1)
  // In no database itself, so that it is none of those that are counted.
  url.pathname = ''
  const sql = isFile ? null : await createConnection(url.href)
  return {
    redis,
    sql,
    database,
    async close() {
      redis.disconnect()
      await sql?.end()
    },
  }
}
