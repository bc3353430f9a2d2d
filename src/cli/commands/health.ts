import { InvalidArgumentError, Option } from 'commander'
import { queueNames } from '../../../config/queues.ts'
import type { Bell } from '../../../models/rows.ts'
import type { Cli, CommonOptions, Registration } from '../cli.ts'
import { connectionSettings } from '../setting-options.ts'

/** Options of `threadmill health`. */
export interface HealthOptions extends CommonOptions {
  /** How long each part may take, in ms. */
  readonly timeout: number
  /** The queues that have to be worked on; left out, `complete` and those that have workers. */
  readonly queue?: readonly Bell[]
}

const queues = Object.keys(queueNames) as Bell[]
const defaultMs = 10_000
const longestMs = 600_000

/** `threadmill health`: whether chats are taken, now. */
export const registerHealth: Registration = (program, cli) => {
  const command = program
    .command('health')
    .description('test that the database and Redis answer and that workers take jobs; exit with 0 if so')
    .addOption(
      new Option('--timeout <time>', 'how long each part may take, such as 10s or 500ms')
        .argParser(time)
        .default(defaultMs, '10s'),
    )
    .addOption(
      new Option(
        '--queue <names...>',
        'the queues that have to be worked on; left out, complete and those that have workers',
      ).choices(queues),
    )
  cli
    .common(command, connectionSettings, [
      'threadmill health',
      'threadmill health --timeout 30s --queue complete --json',
    ])
    .action((options: HealthOptions) => health(cli, options))
}

async function health(cli: Cli, options: HealthOptions): Promise<void> {
  const { runHealth } = await import('../health/run-health.ts')
  await runHealth(cli, options)
}

function time(text: string): number {
  const [, digits, unit] = /^(\d{1,9})(ms|s)$/.exec(text) ?? []
  const ms = Number(digits ?? Number.NaN) * (unit === 's' ? 1_000 : 1)
  if (ms > 0 && ms <= longestMs) return ms
  throw new InvalidArgumentError('It must be a time from 1ms to 600s, such as 10s.')
}
