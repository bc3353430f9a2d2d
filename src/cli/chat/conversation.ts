import { setImmediate as turn } from 'node:timers/promises'
import type { Chat } from '../../chat/chat.ts'
import { ChatNotFoundError } from '../../errors.ts'
import type { ChatEvent } from '../../events/event.ts'
import type { EventReader } from '../../events/reader.ts'
import type { Threadmill } from '../../threadmill.ts'
import { exitCodes } from '../exit-codes.ts'
import { retryChat } from '../retry-chat.ts'
import { exitCodeFor } from '../status/chat.ts'
import type { BesidePrompt } from '../terminal/beside-prompt.ts'
import type { Interrupts } from '../terminal/interrupts.ts'
import type { Lines } from '../terminal/lines.ts'
import type { Screen } from '../terminal/screen.ts'
import { actAside } from './aside.ts'
import { type Input, readInput } from './input.ts'
import { type Phase, phaseOf } from './phase.ts'
import { prompt, type View } from './view.ts'
import { nothingWaits, Waits } from './waits.ts'

export interface ConversationParts {
  readonly mill: Threadmill
  readonly chat: Chat
  readonly isNew: boolean
  readonly view: View
  readonly screen: Screen
  readonly lines: Lines
  readonly output: BesidePrompt
  readonly interrupts: Interrupts
}

/** Somebody who waits for so long for a sign of a worker is told why there is none. */
const patienceMs = 5_000

/** One person's part in a chat. The chat runs elsewhere, and does not depend on it. */
export class Conversation {
  readonly #parts: ConversationParts
  readonly #waits: Waits
  /** What waits in the queue, to be shown when it has its place. */
  readonly #queued = new Map<string, string>()
  readonly #waiting = new Set<() => void>()
  #phase: Phase = 'rest'
  #code: number = exitCodes.ok
  /** Counts what was asked for from here: a look at the rows that began before is out of date. */
  #wishes = 0
  /** What was asked for last, until it is in the rows. */
  #acting: Promise<unknown> = Promise.resolve()
  #stopping = false
  #patience: NodeJS.Timeout | undefined

  constructor(parts: ConversationParts) {
    this.#parts = parts
    this.#waits = new Waits(parts.chat, parts.view)
  }

  /** Whether the turn was left while it ran. */
  get goesOn(): boolean {
    return this.#phase === 'busy'
  }

  /** Takes part until somebody leaves. Returns the exit code. */
  async run(): Promise<number> {
    const { chat, isNew, view, interrupts } = this.#parts
    const { leaving } = interrupts
    const events = chat.events({ signal: leaving, ...(isNew ? { after: '0' } : {}) })
    const left = new Promise<number>((resolve) => {
      leaving.addEventListener('abort', () => resolve(interrupts.code), { once: true })
    })
    interrupts.onPress(() => this.#pressed())
    try {
      await events.ready
      const messages = isNew ? [] : await chat.messages()
      view.joined(chat, messages.findLast(({ role }) => role === 'user')?.content ?? null)
      await this.#settle()
      return await new Promise<number>((resolve, reject) => {
        void left.then(resolve)
        this.#watch(events, () => void this.#read().then(resolve, reject)).then(resolve, reject)
      })
    } finally {
      clearTimeout(this.#patience)
      interrupts.onPress(null)
      await events.return()
    }
  }

  /** @param caughtUp called once what rows tell of was shown: only then does a line mean what its writer sees. */
  async #watch(events: EventReader, caughtUp: () => void): Promise<number> {
    let isBehind = true
    for (;;) {
      const coming = events.next()
      // What is there already comes within this turn of the event loop.
      if (isBehind && (await Promise.race([coming, turn('nothing')])) === 'nothing') {
        isBehind = false
        caughtUp()
      }
      const { done, value: event } = await coming
      if (done === true) break
      this.#parts.view.event(event)
      await this.#take(event)
    }
    const { chat, interrupts } = this.#parts
    if (interrupts.leaving.aborted) return interrupts.code
    throw new ChatNotFoundError(`Chat ${chat.id} was deleted.`, { chatId: chat.id })
  }

  async #take(event: ChatEvent): Promise<void> {
    switch (event.type) {
      case 'run.started':
        clearTimeout(this.#patience)
        this.#become('busy')
        return
      case 'approval.requested':
      case 'input.requested':
      case 'tool.result':
        this.#waits.take(event)
        break
      case 'approval.decided':
      case 'input.answered':
        this.#waits.take(event)
        // Whoever decided or answered woke a worker; where none had to, a look at the rows tells.
        if (this.#phase === 'parked') {
          this.#phase = 'busy'
          this.#expectSign()
        }
        break
      case 'queued':
        this.#queued.set(event.queuedId, event.content ?? '')
        return
      case 'dequeued':
        this.#parts.view.said(this.#queued.get(event.queuedId) ?? '')
        this.#queued.delete(event.queuedId)
        return
      case 'run.waiting':
      case 'run.finished':
      case 'run.cancelled':
      case 'run.failed':
        await this.#settle(event)
        return
      default:
        return
    }
    this.#changed()
  }

  /** Rows alone say how the chat stands; events say when to look. */
  async #settle(end: ChatEvent | null = null): Promise<void> {
    const { chat } = this.#parts
    await this.#acting
    const wishes = this.#wishes
    const diagnosis = await chat.diagnosis()
    const phase = phaseOf(diagnosis)
    const seen = phase === 'parked' ? await this.#waits.read() : nothingWaits
    if (wishes !== this.#wishes) return
    this.#code = phase === 'rest' && end?.type === 'run.cancelled' ? exitCodes.interrupted : exitCodeFor(diagnosis)
    if (phase !== 'busy') this.#waits.replace(seen)
    this.#become(phase)
  }

  async #read(): Promise<number> {
    const { lines, output, screen, view } = this.#parts
    for (;;) {
      const line = await lines.ask(output.prompt)
      if (line === 'end') return this.#ended()
      if (line === 'interrupted') continue
      if (!output.sent() && lines.terminal) screen.typed()
      const input = readInput(line.text)
      if (input.kind === 'quit') return exitCodes.ok
      // What a program wrote beforehand is for one turn after the other; a person sees what is going on.
      if (!lines.terminal) await this.#until(() => this.#phase !== 'busy' || this.#isAwaited(input))
      await this.#act(input).catch((error) => view.problem(error))
    }
  }

  /** Whether a line can be acted on while the chat runs: one that is no answer to something always can. */
  #isAwaited({ kind }: Input): boolean {
    if (kind === 'text') return this.#waits.any
    return (kind !== 'answer' && kind !== 'decline') || this.#waits.questions.any
  }

  async #ended(): Promise<number> {
    if (this.#parts.lines.terminal) return exitCodes.ok
    await this.#until(() => this.#phase !== 'busy')
    return this.#code
  }

  async #act(input: Exclude<Input, { kind: 'quit' }>): Promise<void> {
    const { chat, mill, view } = this.#parts
    switch (input.kind) {
      case 'nothing':
        return
      case 'text':
        return this.#say(input.text)
      case 'answer':
        await this.#waits.questions.answer(input.text, (act) => this.#wish(act))
        return this.#changed()
      case 'decline':
        await this.#waits.questions.decline(input.which, (act) => this.#wish(act))
        return this.#changed()
      case 'later':
      case 'steer':
        return this.#wish(() => chat.queue(input.text, { steer: input.kind === 'steer' }))
      case 'cancel':
        return this.#stop()
      case 'retry':
        return this.#wish(async () => view.note(await retryChat(mill, chat.id, true)))
      default:
        return actAside(input, this.#parts)
    }
  }

  async #say(text: string): Promise<void> {
    const { chat, lines, view } = this.#parts
    if (this.#waits.any) {
      await this.#waits.say(text, (act) => this.#wish(act))
      return this.#changed()
    }
    if (this.#phase !== 'rest') return this.#wish(() => chat.queue(text, { steer: true }))
    if (!lines.terminal) view.said(text)
    return this.#wish(() => chat.askLater(text, { enqueue: true }))
  }

  /** Does what makes the chat run. */
  async #wish(act: () => Promise<unknown>): Promise<void> {
    this.#wishes++
    this.#become('busy')
    this.#expectSign()
    const acting = act()
    this.#acting = acting.catch(() => {})
    try {
      await acting
    } catch (error) {
      await this.#settle()
      throw error
    }
  }

  #expectSign(): void {
    clearTimeout(this.#patience)
    const { view } = this.#parts
    this.#patience = setTimeout(() => void this.#lookForSign().catch((error) => view.problem(error)), patienceMs)
  }

  /** Says why nothing happens, where nothing does; what was wished for may also have changed nothing. */
  async #lookForSign(): Promise<void> {
    const { chat, view } = this.#parts
    const { state, why, advice } = await chat.diagnosis()
    if (state === 'due' || state === 'put off') view.note(`${why} ${advice.text}`)
    else await this.#settle()
  }

  #pressed(): void {
    const { interrupts, view } = this.#parts
    if (this.#phase === 'rest' || this.#stopping) interrupts.leave(exitCodes.interrupted)
    else void this.#stop().catch((error) => view.problem(error))
  }

  async #stop(): Promise<void> {
    const { chat, view } = this.#parts
    if (this.#phase === 'rest') return view.note('nothing runs')
    this.#stopping = true
    view.note('stopping')
    await chat.cancel()
  }

  #become(phase: Phase): void {
    if (phase !== 'busy') {
      this.#stopping = false
      clearTimeout(this.#patience)
    }
    this.#phase = phase
    this.#changed()
  }

  #changed(): void {
    this.#waits.show()
    const idle = this.#phase === 'busy' ? '' : prompt
    this.#parts.output.setPrompt(this.#waits.prompt ?? idle)
    for (const look of this.#waiting) look()
  }

  #until(isSo: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!isSo()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }
}
