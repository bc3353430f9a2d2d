import tab from '@bomb.sh/tab/commander'
import type { Registration } from '../cli.ts'

const examples = `
Examples:
  source <(threadmill completions zsh)      # in ~/.zshrc
  source <(threadmill completions bash)     # in ~/.bashrc
  threadmill completions fish > ~/.config/fish/completions/threadmill.fish`

/** `threadmill completions SHELL`: the script that makes a shell complete commands and options. */
export const registerCompletions: Registration = (program) => {
  tab(program, { completionCommandName: 'completions' })
  program.commands
    .find((command) => command.name() === 'completions')
    ?.description('write the script that completes commands and options in a shell')
    .addHelpText('after', examples)
}
