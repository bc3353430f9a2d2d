import { InvalidArgumentError, Option } from 'commander'
import { queueNames } from '../../../config/queues.ts'
import type { Bell } from '../../../models/rows.ts'
import { ArgumentError } from '../../errors.ts'
import type { Cli, Registration } from '../cli.ts'
import type { EachChatOptions } from '../each-chat.ts'
import { connectionSettings } from '../setting-options.ts'

interface EnqueueOptions extends EachChatOptions {
  readonly queue: Bell
  readonly delay?: number
  readonly message?: string
}

/** `threadmill enqueue CHAT_ID...`: asks for chats to be run by workers. */
export const registerEnqueue: Registration = (program, cli) => {
  const command = program
    .command('enqueue')
    .description('ask for chats to be run by workers')
    .argument('[chat-id...]', 'the chats; - reads ids from stdin, one a line')
    .addOption(new Option('--all-failed', 'every chat that failed, in place of ids'))
    .addOption(
      new Option('--queue <name>', 'what is to be done')
        .choices(Object.keys(queueNames))
        .default('complete' satisfies Bell),
    )
    .addOption(new Option('--delay <ms>', 'run them no sooner than in this time').argParser(milliseconds))
    .option('--message <text>', 'first add this user message to each')
  cli
    .common(command, connectionSettings, [
      'threadmill enqueue 0199d2a4-5c1e-7000-8000-2f0f6f1f3a11 --message "Is it on its way?"',
      'threadmill enqueue --delay 60000 - < ids.txt',
    ])
    .action((ids: string[], options: EnqueueOptions) => enqueue(cli, ids, options))
}

async function enqueue(cli: Cli, ids: readonly string[], options: EnqueueOptions): Promise<void> {
  if (options.allFailed && ids.length > 0) throw new ArgumentError('Name chats, or give --all-failed, not both.')
  const { eachChat } = await import('../each-chat.ts')
  const { queue, delay = 0, message } = options
  await eachChat(cli, options, ids, async (mill, chatId) => {
    if (message !== undefined) await (await mill.chats.find(chatId)).askLater(message)
    await mill.jobs[queue].enqueue(chatId, { delayMs: delay })
    return delay > 0 ? `enqueued, to run in ${delay} ms` : 'enqueued'
  })
}

const longest = 366 * 24 * 3_600_000

function milliseconds(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= 0 && value <= longest) return value
  throw new InvalidArgumentError('It must be a whole number of milliseconds, a year at most.')
}
