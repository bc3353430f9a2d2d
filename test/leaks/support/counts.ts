import { readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import type { Redis } from 'ioredis'
import type { Connection } from 'mysql2/promise'

/** What a process holds at one moment, by the name of the thing. */
export type Counts = Readonly<Record<string, number>>

/** Where the process that is measured looks; opened once, so that they belong to its beginning. */
export interface Eyes {
  /** A connection to the Redis of the test alone. */
  readonly redis: Redis
  /** A connection to the server, or null where the database is a file. */
  readonly sql: Connection | null
  /** The name of the database, or the path of its file. */
  readonly database: string
}

/** Keys that stay for a time on purpose, and those that do not. */
export interface Keys {
  /** By kind, without those below. */
  readonly lasting: Counts
  /** Streams and the like, which Redis deletes by itself. */
  readonly expiring: number
  /** How long the one that lives longest still lives, in ms. */
  readonly longestLifeMs: number
  /** Hashes of jobs that ended and are in their queue's list of such. */
  readonly endedJobs: number
}

/**
 * What is open: handles by kind, as Node counts them, connections to Redis and to the database, keys that do not expire and that are of no
 * job that ended.
 */
export async function openNow(eyes: Eyes): Promise<Counts> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) {
    // Requests under way and timers that are due: whoever rests has none of the one, and the other come and go.
    if (/(Wrap|Port)$/.test(kind)) counts[kind] = (counts[kind] ?? 0) + 1
  }
  counts['Redis connections'] = lines(String(await eyes.redis.client('LIST')))
  counts['database connections'] = await databaseConnections(eyes)
  for (const [kind, count] of Object.entries((await keysOf(eyes.redis)).lasting)) counts[`keys ${kind}`] = count
  return counts
}

/** Looks until no count is above its limit, and then for as long as asked; resolves to what was above it in the end, if anything was. */
export async function above(limits: Counts, eyes: Eyes, limitMs: number): Promise<string[]> {
  const start = performance.now()
  for (;;) {
    const now = await openNow(eyes)
    const more = Object.entries(now).filter(([kind, count]) => count > (limits[kind] ?? 0))
    if (more.length === 0) return []
    if (performance.now() - start > limitMs) {
      return more.map(([kind, count]) => `${kind}: ${count} instead of ${limits[kind] ?? 0}`)
    }
    await wait(100)
  }
}

/** Everything in the Redis. */
export async function keysOf(redis: Redis): Promise<Keys> {
  const keys = await redis.keys('*')
  const ended = await endedJobKeys(redis, keys)
  const lasting: Record<string, number> = {}
  const lives: number[] = []
  for (const key of keys) {
    if (ended.has(key)) continue
    const life = await redis.pttl(key)
    if (life > 0) lives.push(life)
    else if (life === -1) lasting[kindOf(key)] = (lasting[kindOf(key)] ?? 0) + 1
  }
  return {
    lasting,
    expiring: lives.length,
    longestLifeMs: Math.max(0, ...lives),
    endedJobs: keys.filter((key) => ended.has(key)).length,
  }
}

/** The key with everything left out of it that differs from chat to chat and from job to job. */
function kindOf(key: string): string {
  return key.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID').replace(/:\d+(?=:|$)/g, ':N')
}

async function endedJobKeys(redis: Redis, keys: readonly string[]): Promise<ReadonlySet<string>> {
  const lists = keys.filter((key) => /:(completed|failed)$/.test(key))
  const found = await Promise.all(
    lists.map(async (list) =>
      (await redis.zrange(list, 0, -1)).map((id) => `${list.slice(0, list.lastIndexOf(':'))}:${id}`),
    ),
  )
  return new Set(found.flat())
}

async function databaseConnections({ sql, database }: Eyes): Promise<number> {
  if (sql === null) return filesOpen(database)
  const [rows] = await sql.query('SELECT COUNT(*) AS open FROM information_schema.PROCESSLIST WHERE DB = ?', [database])
  return Number((rows as { open: unknown }[])[0]?.open)
}

/** How often a file, its log among them, is open; where there is no /proc, 0. */
function filesOpen(path: string): number {
  // The driver closes a connection once its last statement was collected.
  collectGarbage()
  try {
    return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(path)).length
  } catch {
    return 0
  }
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

const lines = (text: string) => text.trim().split('\n').length

/** What is in memory once everything that nobody holds is gone. */
export interface Memory {
  readonly heapUsed: number
  /** How many there are of some kinds of objects: far finer than bytes. */
  readonly objects: Counts
}

const kinds = { Promise, AbortSignal, Map, Set, Object }

/**
 * Collects the garbage, which needs `--expose-gc`, and counts what is left.
 * @param counted which objects are counted, by their prototypes, so that `Object` are nearly all; each kind takes a third of a second.
 */
export async function memoryNow(counted: readonly (keyof typeof kinds)[]): Promise<Memory> {
  // Node notes down each request of fetch, up to 250 of them.
  performance.clearResourceTimings()
  let heapUsed = Number.POSITIVE_INFINITY
  // What one collection lets go of may hold something that only the next one finds.
  for (let round = 0; round < 4; round++) {
    collectGarbage()
    await wait(25)
    heapUsed = Math.min(heapUsed, process.memoryUsage().heapUsed)
  }
  const objects = counted.map((name) => [name, queryObjects(kinds[name], { format: 'count' })] as const)
  return { heapUsed, objects: Object.fromEntries(objects) }
}

function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error('Start this program with --expose-gc')
  globalThis.gc()
}
