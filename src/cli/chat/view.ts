import type { Diagnosis } from '../../chat/diagnose.ts'
import type { PendingTaskOfChat } from '../../chat/pending.ts'
import type { ChatEvent, EventToolCall } from '../../events/event.ts'
import type { Cli } from '../cli.ts'
import { complaintOf } from '../complain.ts'
import { diagnosisLines } from '../status/chat.ts'
import type { Screen } from '../terminal/screen.ts'
import { howToAnswer, type Question, questionLines } from './question.ts'

/** A message that waits in the queue. */
export interface Waiting {
  readonly id: string
  readonly content: string | null
  readonly steer: boolean
}

/** What somebody who takes part in a chat is shown. */
export interface View {
  /** The chat that it is about, and the message that its last turn began with. */
  joined(chat: { readonly id: string; readonly agent: string | null }, lastMessage: string | null): void
  event(event: ChatEvent): void
  /** A user message that has its place now. */
  said(text: string): void
  /** A call that is to be decided about; `more` wait behind it. */
  asks(call: EventToolCall, more: number): void
  /** A question that is to be answered. */
  asksFor(question: Question): void
  /** One that waits behind it. */
  asksNext(question: Question): void
  /** Work that goes on elsewhere. */
  waitsFor(task: PendingTaskOfChat): void
  note(text: string): void
  queue(messages: readonly Waiting[]): void
  status(diagnosis: Diagnosis): void
  problem(error: unknown): void
}

export const question = 'approve? y(es), n(o), a(lways) › '
export const answerPrompt = 'answer › '
export const prompt = '› '

/** For people: on a terminal, or as plain text. */
export class TextView implements View {
  readonly #screen: Screen

  constructor(screen: Screen) {
    this.#screen = screen
  }

  joined(chat: { readonly id: string; readonly agent: string | null }, lastMessage: string | null): void {
    this.#screen.line(
      `chat ${chat.id}${chat.agent === null ? '' : ` of agent ${chat.agent}`}; /help lists the commands`,
    )
    if (lastMessage !== null) this.said(lastMessage)
  }

  event(event: ChatEvent): void {
    // It is asked, once it is its turn.
    if (event.type === 'input.requested') return
    this.#screen.show(event)
    if (event.type === 'run.failed' && event.retryInMs === null) this.note(`${event.failure.message} (/retry)`)
  }

  said(text: string): void {
    this.#screen.paragraph(`${prompt}${text}`)
  }

  asks(call: EventToolCall, more: number): void {
    this.#screen.card(call)
    this.#screen.line(`${more === 0 ? '' : `${more} more after this one; `}answer y(es), n(o) or a(lways)`)
  }

  asksFor(question: Question): void {
    this.#screen.frame(`${question.name} asks`, questionLines(question))
    this.#screen.line(howToAnswer(question))
  }

  asksNext({ name, key, message }: Question): void {
    this.#screen.line(`after that ${name} asks ${key}: ${message.replace(/\s+/g, ' ')}`)
  }

  waitsFor({ id, toolCall, message, pollMs }: PendingTaskOfChat): void {
    const standing = message === null ? '' : `: ${message}`
    this.#screen.line(`waits for task ${id} of ${toolCall.name}${standing} (looked at every ${pollMs / 1_000} s)`)
  }

  note(text: string): void {
    this.#screen.line(text)
  }

  queue(messages: readonly Waiting[]): void {
    if (messages.length === 0) this.note('nothing is queued')
    for (const [at, { content, steer }] of messages.entries()) {
      this.note(`${at + 1}. for ${steer ? 'this turn' : 'the next turn'}: ${content ?? ''}`)
    }
  }

  status(diagnosis: Diagnosis): void {
    for (const line of diagnosisLines(diagnosis, null)) this.note(line)
  }

  problem(error: unknown): void {
    const { code, message } = complaintOf(error)
    this.note(`${message} (${code})`)
  }
}

/** For programs: one JSON value a line, the chat's events as they are. */
export class JsonView implements View {
  readonly #cli: Cli

  constructor(cli: Cli) {
    this.#cli = cli
  }

  joined({ id, agent }: { readonly id: string; readonly agent: string | null }, lastMessage: string | null): void {
    this.#cli.json({ type: 'chat', chatId: id, agent, lastMessage })
  }

  event(event: ChatEvent): void {
    this.#cli.json(event)
  }

  said(): void {
    // `dequeued`, or whoever wrote the line, said so.
  }

  asks(): void {
    // `approval.requested` said so.
  }

  asksFor(): void {
    // `input.requested` said so.
  }

  asksNext(): void {
    // That too.
  }

  waitsFor({ id, toolCall, message, pollMs }: PendingTaskOfChat): void {
    const { toolCallId, name } = toolCall
    this.#cli.json({ type: 'task', toolCallId, name, id, message, pollMs })
  }

  note(text: string): void {
    this.#cli.json({ type: 'note', text })
  }

  queue(messages: readonly Waiting[]): void {
    this.#cli.json({ type: 'queue', messages: messages.map(({ id, content, steer }) => ({ id, content, steer })) })
  }

  status(diagnosis: Diagnosis): void {
    this.#cli.json({ type: 'status', diagnosis })
  }

  problem(error: unknown): void {
    this.#cli.json({ type: 'problem', error: complaintOf(error) })
  }
}
