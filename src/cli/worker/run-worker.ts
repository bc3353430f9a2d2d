import type { Logger } from 'pino'
import { queueNames } from '../../../config/queues.ts'
import type { Bell } from '../../../models/rows.ts'
import { Threadmill } from '../../threadmill.ts'
import type { Cli } from '../cli.ts'
import type { WorkerOptions } from '../commands/worker.ts'
import { asOptions } from '../connect.ts'
import { exitCodes } from '../exit-codes.ts'
import { type App, loadApp } from './app.ts'
import { hearLeaving, type Leaving } from './leaving.ts'
import { workerLog } from './log.ts'

/**
 * Runs the workers of one process until a signal, or an error that nobody caught, ends it; then closes everything.
 * @throws what keeps it from starting.
 */
export async function runWorker(cli: Cli, options: WorkerOptions): Promise<void> {
  const log = workerLog(cli, options.logLevel, options)
  const leaving = hearLeaving(cli.io.process, cli.io.exit, (error) => {
    log.error({ err: error }, 'While closing, nobody caught an error')
  })
  try {
    const settings = cli.settings(options)
    const app = await loadApp(options.app)
    // Told to stop before it began.
    if (leaving.now() !== null) return await leave(cli, leaving, log, null, 0)
    const mill = await Threadmill.connect({
      ...asOptions(settings),
      ...app,
      logger: log,
      metrics: options.probe !== undefined,
      onObservation: (seen) => {
        if (seen.type === 'worker.stuck') leaving.stuck(seen.queue)
      },
    })
    try {
      await start(mill, app, options, log, leaving)
      await leave(cli, leaving, log, mill, settings.shutdownGraceMs)
    } finally {
      await mill.close()
    }
  } finally {
    leaving.stop()
  }
}

async function start(mill: Threadmill, app: App, options: WorkerOptions, log: Logger, leaving: Leaving): Promise<void> {
  const given = (Object.keys(queueNames) as Bell[]).filter((queue) => options[queue] !== undefined)
  const counts = Object.fromEntries(given.map((queue) => [queue, options[queue]]))
  const isolate = { app: options.app, logLevel: options.logLevel }
  const pool = mill.startWorkers({ ...counts, isolate })
  const probe = options.probe === undefined ? {} : { probe: (await mill.serveProbe(options.probe)).url }
  // A worker that is stuck from the start never gets ready.
  await Promise.race([pool.ready(), leaving.reason])
  if (leaving.now() !== null) return
  // Whoever waits for it sees it, however little is logged.
  log.child({}, { level: 'info' }).info({ agents: app.agents.map(({ name }) => name), ...counts, ...probe }, 'ready')
}

/** How long the process of a stuck worker may take to close beyond the grace, in ms: what it waits for may never come. */
const closeLimitMs = 10_000

/** Waits for a reason to end, and closes. */
async function leave(cli: Cli, leaving: Leaving, log: Logger, mill: Threadmill | null, graceMs: number): Promise<void> {
  const reason = await leaving.reason
  let limit: NodeJS.Timeout | undefined
  switch (reason.kind) {
    case 'error':
      log.fatal({ err: reason.error }, 'Nobody caught an error: closing')
      cli.exitCode = exitCodes.failed
      await mill?.fail()
      break
    case 'stuck':
      log.fatal({ queue: reason.queue }, 'A worker takes no jobs and could not be helped: closing, to be started anew')
      cli.exitCode = exitCodes.stuck
      limit = setTimeout(() => cli.io.exit(exitCodes.stuck), graceMs + closeLimitMs)
      break
    case 'signal':
      log.info({ signal: reason.signal }, 'closing')
      break
    default:
      reason satisfies never
  }
  await mill?.close().finally(() => clearTimeout(limit))
  log.info({}, 'closed')
}
