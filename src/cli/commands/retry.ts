import { Option } from 'commander'
import { ArgumentError } from '../../errors.ts'
import type { Cli, Registration } from '../cli.ts'
import type { EachChatOptions } from '../each-chat.ts'
import { connectionSettings } from '../setting-options.ts'

interface RetryOptions extends EachChatOptions {
  readonly force?: boolean
}

/** `threadmill retry CHAT_ID...`: lifts failures and has the chats run again. */
export const registerRetry: Registration = (program, cli) => {
  const command = program
    .command('retry')
    .description('lift the failure of chats and have them run again')
    .argument('[chat-id...]', 'the chats; - reads ids from stdin, one a line')
    .option('--all-failed', 'every chat that failed, in place of ids')
    .addOption(new Option('--code <code>', 'with --all-failed: only failures with this code'))
    .option('--force', 'also run chats that have not failed')
  cli
    .common(command, connectionSettings, [
      'threadmill retry 0199d2a4-5c1e-7000-8000-2f0f6f1f3a11',
      'threadmill retry --all-failed --code provider.authentication',
    ])
    .action((ids: string[], options: RetryOptions) => retry(cli, ids, options))
}

async function retry(cli: Cli, ids: readonly string[], options: RetryOptions): Promise<void> {
  if (options.allFailed && ids.length > 0) throw new ArgumentError('Name chats, or give --all-failed, not both.')
  if (options.code !== undefined && !options.allFailed) throw new ArgumentError('--code needs --all-failed.')
  const [{ eachChat }, { retryChat }] = await Promise.all([import('../each-chat.ts'), import('../retry-chat.ts')])
  await eachChat(cli, options, ids, (mill, chatId) => retryChat(mill, chatId, options.force === true))
}
