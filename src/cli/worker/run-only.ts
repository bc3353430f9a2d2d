import { ArgumentError } from '../../errors.ts'
import { Threadmill } from '../../threadmill.ts'
import type { Cli } from '../cli.ts'
import type { WorkerOptions } from '../commands/worker.ts'
import { asOptions } from '../connect.ts'
import { exitCodes } from '../exit-codes.ts'
import { loadApp } from './app.ts'
import { hearLeaving } from './leaving.ts'
import { workerLog } from './log.ts'
import { watchMainThread } from './watch-main-thread.ts'

/** Longest that a tool or a model call may block this process, in ms: twice the limit of a tool, as for renewals. */
const blockedMs = 20 * 60_000
/** How much longer than its grace a process is given to end whose parent is gone, in ms. */
const endMarginMs = 5_000

/**
 * Runs one chat, if it is due, in a process that runs nothing else, and ends: what kills it kills no other chat. Whoever started it is told
 * what that came to.
 * @throws what keeps it from starting; whatever ended the turn.
 */
export async function runOnly(cli: Cli, options: WorkerOptions & { readonly only: string }): Promise<void> {
  requireOnly(options)
  const { process, exit } = cli.io
  const log = workerLog(cli, options.logLevel, options)
  const settings = cli.settings(options)
  const stopping = new AbortController()
  const leaving = hearLeaving(process, exit, (error) =>
    log.error({ err: error }, 'While closing, nobody caught an error'),
  )
  void leaving.reason.then((reason) => {
    if (reason.kind === 'signal') return stopping.abort()
    log.fatal(
      reason.kind === 'error' ? { err: reason.error } : {},
      'Nobody caught an error: the chat is not given back',
    )
    // A death as any other: the chat is to be found as one that was never given back.
    exit(exitCodes.failed)
  })
  // Whoever started it is gone.
  const orphaned = () => void process.emit('SIGTERM')
  process.once('disconnect', orphaned)
  const watch =
    process.send === undefined
      ? null
      : watchMainThread({ blockedMs, orphanedMs: settings.shutdownGraceMs + endMarginMs })
  try {
    const app = await loadApp(options.app)
    const mill = await Threadmill.connect({ ...asOptions(settings), ...app, logger: log })
    try {
      const only = await mill.performOnly(options.only, options.queue ?? 'complete', stopping.signal)
      process.send?.({ only }, heard)
      log.info({ chatId: options.only, outcome: only }, 'closing')
    } catch (error) {
      process.send?.({ only: 'failed alone' }, heard)
      throw error
    } finally {
      await mill.close()
    }
  } finally {
    leaving.stop()
    process.off('disconnect', orphaned)
    await watch?.stop()
    process.disconnect?.()
  }
}

/** Whoever is to be told may be gone. */
const heard = () => {}

/** @throws {ArgumentError} */
function requireOnly(options: WorkerOptions): void {
  const others = (['complete', 'runTools', 'compact', 'probe'] as const).filter((name) => options[name] !== undefined)
  if (others.length > 0)
    throw new ArgumentError('--only runs one chat: it goes with no number of workers, and no --probe.')
}
