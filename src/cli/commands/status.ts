import { ArgumentError } from '../../errors.ts'
import type { Cli, CommonOptions, Registration } from '../cli.ts'
import { connectionSettings } from '../setting-options.ts'

/** Options of `threadmill status`. */
export interface StatusOptions extends CommonOptions {
  readonly exitCode?: boolean
}

/** `threadmill status [CHAT_ID]`: how all chats stand, or why one moves or does not. */
export const registerStatus: Registration = (program, cli) => {
  const command = program
    .command('status')
    .description('say how the chats stand, or why one chat moves or does not, and what to do about it')
    .argument('[chat-id]', 'one chat; left out, all of them')
    .option('--exit-code', 'exit with 1 if the chat failed, with 3 if it waits for a person')
  cli
    .common(command, connectionSettings, [
      'threadmill status',
      'threadmill status 0199d2a4-5c1e-7000-8000-2f0f6f1f3a11 --json',
    ])
    .action((chatId: string | undefined, options: StatusOptions) => status(cli, chatId, options))
}

async function status(cli: Cli, chatId: string | undefined, options: StatusOptions): Promise<void> {
  if (options.exitCode && chatId === undefined) throw new ArgumentError('--exit-code needs the id of a chat.')
  // It looks and starts nothing, so the services may be missing.
  const settings = cli.settings(options)
  if (chatId === undefined) {
    const { showOverview } = await import('../status/overview.ts')
    await showOverview(cli, settings, options)
  } else {
    const { showChat } = await import('../status/chat.ts')
    await showChat(cli, settings, chatId, options)
  }
}
