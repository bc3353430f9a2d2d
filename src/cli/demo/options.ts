import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'

/** What the command line asks for. */
export interface DemoOptions {
  /** A question to answer, and then to leave. Null: hold a conversation, or only go on with `chat`. */
  readonly once: string | null
  /** The stored chat to go on with. */
  readonly chat: string | null
  /** Approve whatever asks for it. */
  readonly approve: boolean
}

/** Where help and complaints go. */
export interface DemoOutput {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

const more = `
Without --once it holds a conversation: y, n or a (always) decide about a call, Ctrl-C stops the answer, /quit leaves.

Exit codes: 0 answered; 1 failed; 2 wrong options; 3 a call waits for approval; 130 stopped by Ctrl-C.

Environment: OPENAI_API_KEY or OPENAI_BASE_URL for a real model (THREADMILL_MODEL names it), DATABASE_URL and REDIS_URL
for services of your own. Without them: a demo model, SQLite in .threadmill/ and a private Redis.

Examples:
  npm run demo
  npm run demo -- --once "What time is it in Tokyo?"
  npm run demo -- --once "Refund order 42"
  npm run demo -- --once "Refund order 42" --approve
`

/**
 * Reads the command line; a number is the code to exit with at once, once help or a complaint was written.
 * @param argv without the program and the script.
 */
export function readOptions(argv: readonly string[], output: DemoOutput): DemoOptions | number {
  const command = new Command('npm run demo --')
    .description('Threadmill on this machine: an agent with four tools, two worker processes, a database and Redis.')
    .addOption(new Option('--once <text>', 'answer one message and leave').argParser(notBlank))
    .addOption(new Option('--chat <id>', 'go on with a stored chat').argParser(notBlank))
    .option('--approve', 'approve every call that asks for it, and wait for the answer', false)
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', more)
    .allowExcessArguments(false)
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .exitOverride()
  try {
    command.parse(argv, { from: 'user' })
    const { once = null, chat = null, approve } = command.opts<{ once?: string; chat?: string; approve: boolean }>()
    if (approve && once === null && chat === null) {
      command.error('error: --approve needs --once TEXT or --chat ID: a conversation asks you about each call')
    }
    return { once, chat, approve }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return 0
    output.err('See npm run demo -- --help\n')
    return 2
  }
}

function notBlank(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It must not be empty.')
  return text
}
