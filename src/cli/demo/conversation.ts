import type { ToolCallRecord } from '../../index.ts'
import type { Lines } from '../terminal/lines.ts'
import type { TurnEnd } from './follow.ts'
import { exitCodes, leave, type Stage, stopTurn, tellEnd } from './once.ts'

const prompt = '› '
const question = 'approve? y(es), n(o), a(lways) › '

/** Holds a conversation until the person leaves, and returns the exit code. */
export async function converse(stage: Stage, lines: Lines): Promise<number> {
  const { chat, interrupts, screen, follower } = stage
  interrupts.leaving.addEventListener('abort', () => lines.interrupt(), { once: true })
  let end = await follower.rest()
  if (end === null) end = await turn(stage, lines, () => Promise.resolve())
  else if (end.kind === 'parked') end = await decide(stage, lines, end)
  for (;;) {
    if (end.kind === 'parked' || end.kind === 'left') return leave(stage, end)
    const text = await nextMessage(stage, lines)
    if (text === null) return interrupts.leaving.aborted ? leave(stage, { kind: 'left' }) : exitCodes.answered
    end = await turn(stage, lines, () => chat.askLater(text, { enqueue: true }))
    if (end.kind === 'failed') {
      tellEnd(stage, end)
      screen.line('the message is kept: the next one asks again')
    }
  }
}

/** The next message, null when the person leaves. */
async function nextMessage({ interrupts, screen }: Stage, lines: Lines): Promise<string | null> {
  let presses = 0
  interrupts.onPress(() => lines.interrupt())
  for (;;) {
    const line = await lines.ask(prompt)
    if (line === 'end' || interrupts.leaving.aborted) return null
    if (line === 'interrupted') {
      if (lines.terminal) screen.typed()
      if (++presses === 2) return null
      screen.line('Ctrl-C again, or /quit, leaves')
      continue
    }
    presses = 0
    const text = line.text.trim()
    if (lines.terminal) screen.typed()
    else screen.paragraph(`${prompt}${text}`)
    if (text === '/quit') return null
    if (text.startsWith('/')) screen.line(`there is no command ${text}: only /quit`)
    else if (text !== '') return text
  }
}

/** Begins a turn and follows it to its answer, asking the person about calls on the way. */
async function turn(stage: Stage, lines: Lines, begin: () => Promise<unknown>): Promise<TurnEnd> {
  stage.interrupts.onPress(() => void stopTurn(stage))
  await begin()
  return decide(stage, lines, await stage.follower.follow())
}

/** Asks about calls as long as any wait; parked comes back only where nobody is there to answer. */
async function decide(stage: Stage, lines: Lines, first: TurnEnd): Promise<TurnEnd> {
  const { chat, screen, interrupts, follower } = stage
  let end = first
  while (end.kind === 'parked') {
    for (const call of await chat.pendingApprovals()) {
      screen.card(call)
      interrupts.onPress(() => lines.interrupt())
      const decision = await askAbout(lines, screen)
      if (interrupts.leaving.aborted) return { kind: 'left' }
      if (decision === 'end') return end
      interrupts.onPress(() => void stopTurn(stage))
      if (decision === 'interrupted') {
        await stopTurn(stage)
        break
      }
      await record(stage, call, decision)
    }
    end = await follower.follow()
  }
  return end
}

type Decision = 'yes' | 'no' | 'always'

async function askAbout(lines: Lines, screen: Stage['screen']): Promise<Decision | 'end' | 'interrupted'> {
  for (;;) {
    const line = await lines.ask(question)
    if (lines.terminal) screen.typed()
    if (line === 'end' || line === 'interrupted') return line
    const word = line.text.trim().toLowerCase()
    const decision = (['yes', 'no', 'always'] as const).find((one) => word !== '' && one.startsWith(word))
    if (decision !== undefined) return decision
    screen.line('please answer y, n or a')
  }
}

async function record({ chat }: Stage, call: ToolCallRecord, decision: Decision): Promise<void> {
  if (decision === 'no') await chat.deny(call)
  else await chat.approve(call, { remember: decision === 'always' })
}
