import type { Chat } from '../../chat/chat.ts'
import type { EventToolCall } from '../../events/event.ts'
import { type Decision, readDecision } from './input.ts'
import type { Wish } from './unanswered.ts'
import type { View } from './view.ts'

/** The calls that wait for a decision: the oldest is asked about. */
export class Undecided {
  readonly #chat: Chat
  readonly #view: View
  #calls = new Map<string, EventToolCall>()
  /** Those that were decided here, and whose events are no news. */
  readonly #ours = new Set<string>()
  #shown: string | null = null

  constructor(chat: Chat, view: View) {
    this.#chat = chat
    this.#view = view
  }

  get any(): boolean {
    return this.#calls.size > 0
  }

  add(call: EventToolCall): void {
    this.#ours.delete(call.toolCallId)
    this.#calls.set(call.toolCallId, call)
  }

  /** Somebody has decided, here or elsewhere. */
  decided({ toolCallId, name }: EventToolCall): void {
    const waited = this.#calls.delete(toolCallId)
    if (waited && !this.#ours.has(toolCallId)) this.#view.note(`somebody else has decided about ${name}`)
  }

  remove(toolCallId: string): void {
    this.#calls.delete(toolCallId)
  }

  /** What the rows say. */
  replace(calls: readonly EventToolCall[]): void {
    this.#calls = new Map(calls.map((call) => [call.toolCallId, call]))
  }

  /** Asks about the oldest, unless that was done. */
  show(): void {
    const [first] = this.#calls.values()
    if (first !== undefined && first.toolCallId !== this.#shown) this.#view.asks(first, this.#calls.size - 1)
    this.#shown = first?.toolCallId ?? null
  }

  /** Takes a line as the decision about the call that is asked about. */
  async answer(text: string, wish: Wish): Promise<void> {
    const decision = readDecision(text)
    const [call] = this.#calls.values()
    if (decision === null || call === undefined) return this.#view.note('please answer y, n or a; /later TEXT queues')
    this.#ours.add(call.toolCallId)
    this.#calls.delete(call.toolCallId)
    await wish(() => this.#record(call, decision))
  }

  #record({ toolCallId }: EventToolCall, decision: Decision): Promise<unknown> {
    switch (decision) {
      case 'yes':
        return this.#chat.approve(toolCallId)
      case 'always':
        return this.#chat.approve(toolCallId, { remember: true })
      case 'no':
        return this.#chat.deny(toolCallId)
      default:
        return decision satisfies never
    }
  }
}
