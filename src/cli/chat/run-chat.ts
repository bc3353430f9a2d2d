import type { Chat } from '../../chat/chat.ts'
import type { Threadmill } from '../../threadmill.ts'
import type { Cli } from '../cli.ts'
import type { ChatOptions } from '../commands/chat.ts'
import { withMill } from '../connect.ts'
import { BesidePrompt } from '../terminal/beside-prompt.ts'
import { Interrupts } from '../terminal/interrupts.ts'
import { Lines } from '../terminal/lines.ts'
import { Screen } from '../terminal/screen.ts'
import { Conversation } from './conversation.ts'
import { JsonView, TextView } from './view.ts'

/** Takes part in a chat until its person leaves, or the lines end and the chat rests. */
export async function runChat(cli: Cli, chatId: string | null, options: ChatOptions): Promise<void> {
  const { model, ...others } = options
  const settings = cli.settings(others)
  await withMill(cli, settings, async (mill) => {
    const chat = await chatOf(mill, chatId, options)
    const { io } = cli
    const interrupts = new Interrupts(io.process, io.exit)
    const lines = new Lines({ input: io.stdin, output: io.stdout, onInterrupt: () => interrupts.press() })
    const output = new BesidePrompt(io.stdout, lines)
    const screen = new Screen(output)
    const view = options.json ? new JsonView(cli) : new TextView(screen)
    const conversation = new Conversation({
      mill,
      chat,
      isNew: chatId === null,
      view,
      screen,
      lines,
      output,
      interrupts,
    })
    try {
      cli.exitCode = await conversation.run()
    } finally {
      interrupts.stop()
      lines.close()
    }
    if (conversation.goesOn) cli.note(`The turn goes on without you: threadmill chat ${chat.id}`)
  })
}

function chatOf(mill: Threadmill, chatId: string | null, { agent, model, owner }: ChatOptions): Promise<Chat> {
  if (chatId !== null) return mill.chats.find(chatId)
  return mill.chats.create({ agent, model, owner }, { agentElsewhere: true })
}
