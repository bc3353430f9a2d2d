import { Redis } from 'ioredis'
import { createConnection } from 'mysql2/promise'
import type { Eyes } from './counts.ts'
import type { Input } from './input.ts'

interface OpenedEyes extends Eyes {
  /** What a program reports through. Node opens it when it is first asked for. */
  readonly pipes: readonly NodeJS.WriteStream[]
  close(): Promise<void>
}

/** Opens what a program looks at itself with, before anything else. */
export async function openEyes({ options: { databaseUrl, redisUrl } }: Input): Promise<OpenedEyes> {
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
    pipes: [process.stdout, process.stderr],
    async close() {
      redis.disconnect()
      await sql?.end()
    },
  }
}
