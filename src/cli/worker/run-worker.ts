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
    if (leaving.now() !== null) return await leave(cli, leaving, log, null)
    const mill = await Threadmill.connect({
      ...asOptions(settings),
      ...app,
      logger: log,
      metrics: options.probe !== undefined,
    })
    try {
      await start(mill, app, options, log)
      await leave(cli, leaving, log, mill)
    } finally {
      await mill.close()
    }
  } finally {
    leaving.stop()
  }
}

async function start(mill: Threadmill, app: App, options: WorkerOptions, log: Logger): Promise<void> {
  const given = (Object.keys(queueNames) as Bell[]).filter((queue) => options[queue] !== undefined)
  const counts = Object.fromEntries(given.map((queue) => [queue, options[queue]]))
  const pool = mill.startWorkers(counts)
  const probe = options.probe === undefined ? {} : { probe: (await mill.serveProbe(options.probe)).url }
  await pool.ready()
  // Whoever waits for it sees it, however little is logged.
  log.child({}, { level: 'info' }).info({ agents: app.agents.map(({ name }) => name), ...counts, ...probe }, 'ready')
}

/** Waits for a reason to end, and closes. */
async function leave(cli: Cli, leaving: Leaving, log: Logger, mill: Threadmill | null): Promise<void> {
  const reason = await leaving.reason
  if (reason.kind === 'error') {
    log.fatal({ err: reason.error }, 'Nobody caught an error: closing')
    cli.exitCode = exitCodes.failed
  } else {
    log.info({ signal: reason.signal }, 'closing')
  }
  await mill?.close()
  log.info({}, 'closed')
}
