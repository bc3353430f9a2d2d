import type { Chat } from '../../chat/chat.ts'
import type { Threadmill } from '../../threadmill.ts'
import { commandsHelp, type Input } from './input.ts'
import type { View } from './view.ts'

/** The lines that leave it as it is whether the chat runs. */
export type Aside = Extract<Input, { kind: 'nothing' | 'queue' | 'unqueue' | 'status' | 'compact' | 'help' | 'wrong' }>

interface AsideParts {
  readonly mill: Threadmill
  readonly chat: Chat
  readonly view: View
}

export async function actAside(input: Aside, { mill, chat, view }: AsideParts): Promise<void> {
  switch (input.kind) {
    case 'nothing':
      return
    case 'queue':
      return view.queue(await chat.queuedMessages())
    case 'unqueue':
      return unqueue(input.which, chat, view)
    case 'status':
      return view.status(await chat.diagnosis())
    case 'compact':
      await mill.jobs.compact.enqueue(chat)
      return view.note('a summary is wanted; workers of the compact queue make it')
    case 'help':
      for (const line of commandsHelp) view.note(line)
      return
    case 'wrong':
      return view.note(input.problem)
    default:
      return input satisfies never
  }
}

async function unqueue(which: string, chat: Chat, view: View): Promise<void> {
  const waiting = await chat.queuedMessages()
  const message = which === '' ? waiting.at(-1) : waiting[Number(which) - 1]
  if (message === undefined) return view.note(`no such message: ${waiting.length} wait, /queue lists them`)
  if (!(await chat.unqueue(message))) view.note('it has left the queue already')
}
