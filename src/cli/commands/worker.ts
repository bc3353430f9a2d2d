import { InvalidArgumentError, Option } from 'commander'
import { queueNames } from '../../../config/queues.ts'
import type { Bell } from '../../../models/rows.ts'
import { ArgumentError } from '../../errors.ts'
import type { ProbeOptions } from '../../observability/probe.ts'
import type { Cli, CommonOptions, Registration } from '../cli.ts'
import { connectionSettings, kebab } from '../setting-options.ts'

/** How much a worker logs. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Options of `threadmill worker`; a number for each queue, where one was given. */
export interface WorkerOptions extends CommonOptions, Partial<Record<Bell, number>> {
  readonly app: string
  readonly logLevel: (typeof logLevels)[number]
  readonly probe?: ProbeOptions
  /** One chat, in place of all that are due. */
  readonly only?: string
  /** Whose job that is. Default: `complete`. */
  readonly queue?: Bell
}

const works: Readonly<Record<Bell, string>> = {
  complete: 'chats',
  runTools: 'jobs that only run tools',
  compact: 'jobs that only make summaries',
}

/** `threadmill worker --app FILE`: a process that runs chats. */
export const registerWorker: Registration = (program, cli) => {
  const command = program
    .command('worker')
    .description('run chats, until it is told to stop')
    .requiredOption('--app <file>', 'the .ts or .js file whose default export is { agents, tools }')
  for (const queue of Object.keys(queueNames) as Bell[]) {
    command.addOption(
      new Option(`--${kebab(queue)} <n>`, `how many ${works[queue]} run at once; 0 = none`).argParser(count),
    )
  }
  command.addOption(new Option('--log-level <level>', 'how much is logged').choices(logLevels).default('info'))
  command.addOption(
    new Option(
      '--probe <port>',
      'serve /live, /ready and /metrics on 127.0.0.1; host:port for another address',
    ).argParser(address),
  )
  command.option('--only <chat-id>', 'run this chat alone, if it is due, and end')
  command.addOption(new Option('--queue <name>', 'with --only: whose job that is').choices(Object.keys(queueNames)))
  cli
    .common(
      command,
      [
        ...connectionSettings,
        'model',
        'claimTtlMs',
        'claimRenewMs',
        'sweepEveryMs',
        'shutdownGraceMs',
        'stuckAfterMs',
        'databasePool',
      ],
      ['threadmill worker --app agents.ts', 'threadmill worker --app dist/agents.js --complete 50 --run-tools 0'],
    )
    .addHelpText('after', signals)
    .action((options: WorkerOptions) => work(cli, options))
}

const signals = `
SIGTERM, SIGINT and SIGHUP stop it: it takes no more jobs, ends the running moves or aborts them when the grace is over,
gives the chats to other workers and exits with 0. A second signal ends it at once. A worker that takes no jobs, and can't
help itself, ends in the same way with 4: have it started anew.`

async function work(cli: Cli, options: WorkerOptions): Promise<void> {
  if (options.only === undefined) {
    if (options.queue !== undefined) throw new ArgumentError('--queue needs --only.')
    const { runWorker } = await import('../worker/run-worker.ts')
    await runWorker(cli, options)
  } else {
    const { runOnly } = await import('../worker/run-only.ts')
    await runOnly(cli, { ...options, only: options.only })
  }
}

const most = 10_000

function count(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= 0 && value <= most) return value
  throw new InvalidArgumentError(`It must be a whole number from 0 to ${most}.`)
}

function address(text: string): ProbeOptions {
  const [, host, digits] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits ?? Number.NaN)
  if (!(port <= 65_535)) throw new InvalidArgumentError('It must be a port, or host:port.')
  return host === undefined ? { port } : { port, host: host.replace(/^\[(.*)\]$/, '$1') }
}
