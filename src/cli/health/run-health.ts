import { queueNames, queuePrefix } from '../../../config/queues.ts'
import { redisConnector } from '../../../config/redis.ts'
import type { RedisClient } from '../../../config/redis-clients.ts'
import type { Settings } from '../../../config/settings.ts'
import { requireMigrated } from '../../../models/migrator.ts'
import type { Bell } from '../../../models/rows.ts'
import { sendCanary } from '../../../workers/canary.ts'
import { workersOf } from '../../../workers/queue-view.ts'
import { closeQueues, type OpenedQueue, openQueues } from '../../../workers/queues.ts'
import type { Cli } from '../cli.ts'
import type { HealthOptions } from '../commands/health.ts'
import { complaintOf } from '../complain.ts'
import { withDatabase } from '../connect.ts'
import { exitCodes } from '../exit-codes.ts'
import { embeddedRedisUrl } from '../status/queues.ts'
import { isIll, type Part, partOf } from './parts.ts'

/** Tests what a chat needs to be answered, end to end, and starts nothing. */
export async function runHealth(cli: Cli, options: HealthOptions): Promise<void> {
  const settings = cli.settings({ ...options })
  const [database, queues] = await Promise.all([lookAtDatabase(settings, options), lookAtQueues(settings, options)])
  const parts = [database, ...queues]
  const ill = parts.filter(isIll)
  if (options.json) cli.json({ status: ill.length === 0 ? 'ok' : 'failing', parts })
  else show(cli, parts)
  if (ill.some(({ status }) => status === 'failed')) cli.exitCode = exitCodes.failed
  else if (ill.length > 0) cli.exitCode = exitCodes.stuck
}

function lookAtDatabase(settings: Settings, { timeout }: HealthOptions): Promise<Part> {
  const part = 'database'
  return inTime<Part>(
    timeout,
    (what) => ({ part, status: 'failed', what }),
    async () => {
      await withDatabase(settings, (db) => requireMigrated(db.sequelize, settings.tablePrefix))
      return { part, status: 'ok', what: 'it answers, and has every table' }
    },
  )
}

async function lookAtQueues(settings: Settings, options: HealthOptions): Promise<Part[]> {
  const { timeout } = options
  const redisUrl = settings.redisUrl ?? (await embeddedRedisUrl(settings.dataDir))
  if (redisUrl === null) return [{ part: 'redis', status: 'failed', what: 'no embedded Redis runs, so no worker does' }]
  const redis = redisConnector({ redisUrl }, { readyWithinMs: timeout })
  try {
    // A canary has its time, and Redis a time of its own to take it and give it back.
    return await inTime<Part[]>(
      2 * timeout,
      (what) => [{ part: 'redis', status: 'failed', what }],
      async () => {
        const client = await redis.producer()
        const queues = openQueues(client, queuePrefix(settings.redisPrefix, redis))
        try {
          const parts = await Promise.all(queues.map((queue) => lookAtQueue(queue, client, options)))
          return [{ part: 'redis', status: 'ok', what: 'it answers' }, ...parts]
        } finally {
          await closeQueues(queues)
        }
      },
    )
  } finally {
    await redis.close()
  }
}

async function lookAtQueue([name, queue]: OpenedQueue, client: RedisClient, options: HealthOptions): Promise<Part> {
  const workers = await workersOf(queue)
  if (!isMeant(name, workers, options)) return { part: name, status: 'none', what: 'no worker works on this queue' }
  return partOf(name, await sendCanary(queue, client, workers, options.timeout), workers, options.timeout)
}

/** A pool may leave queues to others, or to nobody; only chats have to be run somewhere. */
function isMeant(name: Bell, workers: readonly string[] | null, { queue }: HealthOptions): boolean {
  if (queue !== undefined) return queue.includes(name)
  return name === queueNames.complete || (workers !== null && workers.length > 0)
}

/** What `look` comes to; `failed` of what went wrong with it, or that it took too long. */
async function inTime<T>(limitMs: number, failed: (what: string) => T, look: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(failed(`no answer in ${limitMs / 1_000} s`)), limitMs)
  })
  const looked = look().catch((error: unknown) => failed(complaintOf(error).message))
  return Promise.race([looked, late]).finally(() => clearTimeout(timer))
}

const colours = { ok: 'green', busy: 'yellow', paused: 'yellow', none: 'gray', failed: 'red', untaken: 'red' } as const

function show(cli: Cli, parts: readonly Part[]): void {
  for (const { part, status, what } of parts) {
    cli.line(`${cli.paint(colours[status], status.padEnd(9))}${part.padEnd(10)}${what}`)
  }
}
