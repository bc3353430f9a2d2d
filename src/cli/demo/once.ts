import type { Chat, Threadmill } from '../../index.ts'
import { exitCodes as codes } from '../exit-codes.ts'
import type { Interrupts } from '../terminal/interrupts.ts'
import type { Screen } from '../terminal/screen.ts'
import type { Follower, TurnEnd } from './follow.ts'
import type { DemoOptions } from './options.ts'

/** What a demo of one turn, or of a conversation, works with. */
export interface Stage {
  readonly mill: Threadmill
  readonly chat: Chat
  readonly follower: Follower
  readonly screen: Screen
  readonly interrupts: Interrupts
  /** For what is not part of the conversation. */
  readonly note: (line: string) => void
}

/** The code that each end of a turn has for a script. */
export const exitCodes = {
  answered: codes.ok,
  failed: codes.failed,
  parked: codes.waiting,
  cancelled: codes.interrupted,
} as const

/** Answers one message, or goes on with a stored chat, and returns the exit code. */
export async function runOnce(stage: Stage, options: DemoOptions): Promise<number> {
  const { chat, follower, interrupts } = stage
  interrupts.onPress(() => void stopTurn(stage))
  if (options.chat !== null && options.approve) {
    const end = await goOn(stage, options)
    if (options.once === null || end.kind !== 'answered') return leave(stage, end)
  }
  if (options.once !== null) await chat.askLater(options.once, { enqueue: true })
  return leave(stage, await approving(stage, options, await follower.follow()))
}

/** Ctrl-C during an answer: the turn is cancelled, and a second one ends the demo whatever becomes of it. */
export async function stopTurn({ chat, screen, interrupts }: Stage): Promise<void> {
  screen.line('stopping')
  interrupts.onPress(null)
  try {
    await chat.cancel()
  } catch {
    interrupts.leave(exitCodes.cancelled)
  }
}

/** What has to be said about a turn that is over; the failure goes where errors go. */
export function tellEnd({ chat, screen, note }: Stage, end: TurnEnd): void {
  switch (end.kind) {
    case 'parked':
      screen.paragraph(
        `Nothing runs until someone decides, however long that takes. To approve:\n  npm run demo -- --chat ${chat.id} --approve`,
      )
      return
    case 'failed':
      note(`${end.failure.message} (${end.failure.code})`)
      return
    case 'left':
      note(`The chat is kept. To go on with it: npm run demo -- --chat ${chat.id}`)
      return
    default:
  }
}

/** Shows a card for each call that waits for a decision. */
async function showCards({ chat, screen }: Stage): Promise<void> {
  for (const call of await chat.pendingApprovals()) screen.card(call)
}

/** Says what has to be said at the end, and gives the exit code. */
export function leave(stage: Stage, end: TurnEnd): number {
  tellEnd(stage, end)
  return end.kind === 'left' ? stage.interrupts.code : exitCodes[end.kind]
}

/** Brings a stored chat to its rest. */
async function goOn(stage: Stage, options: DemoOptions): Promise<TurnEnd> {
  const { mill, chat, follower, screen } = stage
  const rest = await follower.rest()
  if (rest?.kind === 'answered') {
    if (options.once === null) screen.line('nothing waits in this chat')
    return rest
  }
  if (rest?.kind === 'parked') return approving(stage, options, rest)
  await mill.jobs.complete.enqueue(chat)
  return approving(stage, options, await follower.follow())
}

/** Approves as long as calls ask for it, if that is wanted; returns how the chat rests then. */
async function approving(stage: Stage, { approve }: DemoOptions, first: TurnEnd): Promise<TurnEnd> {
  let end = first
  while (end.kind === 'parked') {
    await showCards(stage)
    if (!approve) return end
    for (const call of await stage.chat.pendingApprovals()) await stage.chat.approve(call)
    end = await stage.follower.follow()
  }
  return end
}
