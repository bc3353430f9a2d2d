import { queuePrefix } from '../../config/queues.ts'
import { redisConnector } from '../../config/redis.ts'
import { closeQueues, openQueues } from '../../workers/queues.ts'
import { UnreachableError } from '../errors.ts'
import { boardHandler } from '../server/board.ts'
import { serveBoard } from '../server/board-server.ts'
import type { Cli } from './cli.ts'
import type { BoardCommandOptions } from './commands/board.ts'
import { embeddedRedisUrl } from './status/queues.ts'
import { hearLeaving } from './worker/leaving.ts'

/** Serves Bull Board until a signal comes. It needs Redis alone, and starts none. */
export async function runBoard(cli: Cli, options: BoardCommandOptions): Promise<void> {
  const settings = cli.settings(options, { database: true })
  const redisUrl = settings.redisUrl ?? (await embeddedRedisUrl(settings.dataDir))
  if (redisUrl === null) {
    throw new UnreachableError('No embedded Redis runs, so there are no queues: start a worker, or set REDIS_URL.')
  }
  const leaving = hearLeaving(cli.io.process, cli.io.exit, (error) => cli.note(String(error)))
  const redis = redisConnector({ redisUrl }, { onWarning: (warning) => cli.note(warning) })
  try {
    const queues = openQueues(await redis.producer(), queuePrefix(settings.redisPrefix, redis))
    try {
      const board = await boardHandler(queues, { writable: options.writable })
      const server = await serveBoard(board, { ...options, password: settings.boardPassword })
      try {
        if (options.json) cli.json({ url: server.url })
        else cli.line(`The board is at ${server.url}${options.writable ? '' : ' (read-only)'}`)
        const reason = await leaving.reason
        if (reason.kind === 'error') throw reason.error
      } finally {
        await server.close()
      }
    } finally {
      await closeQueues(queues)
    }
  } finally {
    leaving.stop()
    await redis.close()
  }
}
