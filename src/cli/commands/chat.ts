import { ArgumentError } from '../../errors.ts'
import type { Cli, CommonOptions, Registration } from '../cli.ts'
import { connectionSettings } from '../setting-options.ts'

/** Options of `threadmill chat`. */
export interface ChatOptions extends CommonOptions {
  readonly agent?: string
  readonly model?: string
  readonly owner?: string
}

/** `threadmill chat [CHAT_ID]`: takes part in a chat that workers run. */
export const registerChat: Registration = (program, cli) => {
  const command = program
    .command('chat')
    .description('take part in a chat that workers run: a new one, or one that is there')
    .argument('[chat-id]', 'the chat to join; left out, a new one')
    .option('--agent <name>', "the new chat's agent, which a worker must have; left out, none")
    .option('--model <name>', "the model of the new chat, in place of its agent's")
    .option('--owner <text>', 'what the new chat belongs to')
  cli
    .common(command, connectionSettings, [
      'threadmill chat --agent support',
      'threadmill chat 0199d2a4-5c1e-7000-8000-2f0f6f1f3a11',
      'echo "Is order 42 on its way?" | threadmill chat --agent support --json',
    ])
    .addHelpText('after', keys)
    .action((chatId: string | undefined, options: ChatOptions) => chat(cli, chatId, options))
}

const keys = `
It runs no model: workers do. A line is a message; one typed during an answer joins its turn. y, n or a decide about a call;
/answer and /decline are for what a tool asks.
Ctrl-C stops the turn, Ctrl-C again or at rest leaves, Ctrl-D leaves and the turn goes on; /help lists the commands.
From a pipe, each line waits until the chat rests or asks, and the exit code says how the chat stands at the end.`

async function chat(cli: Cli, chatId: string | undefined, options: ChatOptions): Promise<void> {
  const { agent, model, owner } = options
  if (chatId !== undefined && (agent ?? model ?? owner) !== undefined) {
    throw new ArgumentError('--agent, --model and --owner are for a new chat: leave them out, or the id.')
  }
  const { runChat } = await import('../chat/run-chat.ts')
  await runChat(cli, chatId ?? null, options)
}
