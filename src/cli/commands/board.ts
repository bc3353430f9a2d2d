import { InvalidArgumentError, Option } from 'commander'
import type { Cli, CommonOptions, Registration } from '../cli.ts'

/** Options of `threadmill board`. */
export interface BoardCommandOptions extends CommonOptions {
  readonly host: string
  readonly port: number
  readonly writable?: boolean
}

/** `threadmill board`: Bull Board on all queues. */
export const registerBoard: Registration = (program, cli) => {
  const command = program
    .command('board')
    .description('serve Bull Board: what is in the queues, until it is told to stop')
    .addOption(new Option('--port <n>', 'where it listens; 0 = any that is free').argParser(port).default(3030))
    .addOption(new Option('--host <address>', 'on which address').default('127.0.0.1'))
    .option('--writable', 'let it change jobs and queues')
  cli
    .common(
      command,
      ['redisUrl', 'redisPrefix', 'dataDir'],
      ['threadmill board', 'THREADMILL_BOARD_PASSWORD=... threadmill board --host 0.0.0.0 --port 8080'],
    )
    .addHelpText('after', password)
    .action((options: BoardCommandOptions) => board(cli, options))
}

const password = `
THREADMILL_BOARD_PASSWORD is the password, for any user name. Without one it is served on this machine's own addresses only.`

async function board(cli: Cli, options: BoardCommandOptions): Promise<void> {
  const { runBoard } = await import('../board.ts')
  await runBoard(cli, options)
}

function port(text: string): number {
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (value <= 65_535) return value
  throw new InvalidArgumentError('It must be a whole number from 0 to 65535.')
}
