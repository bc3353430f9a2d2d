import { Command, CommanderError } from 'commander'
import { Cli, type CommonOptions, type Registration } from './cli.ts'
import { registerBoard } from './commands/board.ts'
import { registerChat } from './commands/chat.ts'
import { registerCompletions } from './commands/completions.ts'
import { registerDoctor } from './commands/doctor.ts'
import { registerEnqueue } from './commands/enqueue.ts'
import { registerHealth } from './commands/health.ts'
import { registerMigrate } from './commands/migrate.ts'
import { registerRetry } from './commands/retry.ts'
import { registerStatus } from './commands/status.ts'
import { registerWorker } from './commands/worker.ts'
import { withoutSecrets } from './complain.ts'
import { exitCodes, exitCodesHelp } from './exit-codes.ts'
import type { Io } from './io.ts'
import { versionAbove } from './version.ts'

/** Every command, in the order of the help. Completions come last, because they are made from those before them. */
const registrations: readonly Registration[] = [
  registerWorker,
  registerMigrate,
  registerChat,
  registerEnqueue,
  registerStatus,
  registerRetry,
  registerDoctor,
  registerHealth,
  registerBoard,
  registerCompletions,
]

const introduction = `
Settings come from options, then from the environment, then from embedded services (SQLite and a private Redis in
.threadmill/). To read a file of variables: node --env-file=.env node_modules/.bin/threadmill COMMAND

${exitCodesHelp}`

/** The program with all its commands. */
export function makeProgram(cli: Cli): Command {
  const program = new Command('threadmill')
    .description('Runs and looks after LLM conversations that are kept in a database.')
    .version(versionAbove(import.meta.url, 'threadmill') ?? 'unknown', '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .addHelpText('after', introduction)
    .configureOutput({
      writeOut: (text) => void cli.io.stdout.write(text),
      writeErr: (text) => void cli.io.stderr.write(withoutSecrets(text)),
    })
    .showHelpAfterError('(--help shows what there is)')
    .exitOverride()
  for (const register of registrations) register(program, cli)
  return program
}

/**
 * Runs one command to its end and returns its exit code. It never throws and never ends the process.
 * @param argv without the program and the script.
 */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  const cli = new Cli(io)
  const program = makeProgram(cli)
  let running: Command | null = null
  program.hook('preAction', (_, command) => {
    running = command
  })
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    cli.fail(error, optionsOf(running))
  }
  return cli.exitCode
}

function optionsOf(command: Command | null): CommonOptions {
  return command?.opts<CommonOptions>() ?? {}
}
