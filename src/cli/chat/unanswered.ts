import type { Chat } from '../../chat/chat.ts'
import type { InputRequest } from '../../chat/pending.ts'
import { ArgumentError } from '../../errors.ts'
import { howToAnswer, type Question, type ReadAnswer, readAnswer, takesText, textAnswer } from './question.ts'
import type { View } from './view.ts'

/** Does what makes the chat run. */
export type Wish = (act: () => Promise<unknown>) => Promise<void>

/** The questions of tools that wait for an answer: the oldest is asked. */
export class Unanswered {
  readonly #chat: Chat
  readonly #view: View
  #questions = new Map<string, Question>()
  /** Those that were answered here, and whose events are no news. */
  readonly #ours = new Set<string>()
  #shown: string | null = null
  /** Those that were asked or announced. */
  #told = new Set<string>()

  constructor(chat: Chat, view: View) {
    this.#chat = chat
    this.#view = view
  }

  get any(): boolean {
    return this.#questions.size > 0
  }

  add(question: Question): void {
    this.#questions.set(idOf(question), question)
  }

  /** It was answered or declined, here or elsewhere, or has expired. */
  answered(settled: Pick<Question, 'toolCallId' | 'key'>): void {
    const id = idOf(settled)
    const question = this.#questions.get(id)
    this.#questions.delete(id)
    if (question === undefined || this.#ours.has(id)) return
    this.#view.note(`what ${question.name} asked was answered by somebody else, or has expired`)
  }

  /** The call waits for nothing any more. */
  remove(toolCallId: string): void {
    for (const [id, question] of this.#questions) if (question.toolCallId === toolCallId) this.#questions.delete(id)
  }

  /** What the rows say. */
  replace(questions: readonly Question[]): void {
    this.#questions = new Map(questions.map((question) => [idOf(question), question]))
  }

  /** Asks the oldest, and announces those behind it, unless that was done. */
  show(): void {
    const [first, ...others] = this.#questions.values()
    const id = first === undefined ? null : idOf(first)
    if (first !== undefined && id !== this.#shown) this.#view.asksFor(first)
    for (const other of others) if (!this.#told.has(idOf(other))) this.#view.asksNext(other)
    this.#shown = id
    this.#told = new Set(this.#questions.keys())
  }

  /** Takes a line that is no command as the answer to the oldest, where a text can be one. */
  async say(text: string, wish: Wish): Promise<void> {
    const [first] = this.#questions.values()
    if (first === undefined) return
    if (takesText(first)) return this.#record(textAnswer(first, text), wish)
    this.#view.note(`${first.name} waits for an answer: ${howToAnswer(first)}; /later TEXT queues`)
  }

  /** Takes what stands behind `/answer`. */
  async answer(text: string, wish: Wish): Promise<void> {
    return this.#record(readAnswer(text, [...this.#questions.values()]), wish)
  }

  /** Declines the oldest, or the one of this key. */
  async decline(key: string, wish: Wish): Promise<void> {
    const question = [...this.#questions.values()].find((one) => key === '' || one.key === key)
    if (question === undefined) return this.#view.note(`no question${key === '' ? '' : ` ${key}`} waits for an answer`)
    await this.#settle(question, wish, (request) => this.#chat.decline(request))
  }

  async #record(read: ReadAnswer, wish: Wish): Promise<void> {
    if ('problem' in read) return this.#view.note(read.problem)
    await this.#settle(read.question, wish, (request) => this.#chat.answer(request, read.values))
  }

  async #settle(question: Question, wish: Wish, act: (request: InputRequest) => Promise<unknown>): Promise<void> {
    const id = idOf(question)
    // The first answer counts, and a later one is no error: whether ours came too late has to be looked at.
    const open = (await this.#chat.pendingInputs()).map((request) => [idOf(questionOf(request)), request] as const)
    const request = new Map(open).get(id)
    if (request === undefined) return this.answered(question)
    this.#ours.add(id)
    try {
      await wish(() => act(request))
      this.#questions.delete(id)
    } catch (error) {
      this.#ours.delete(id)
      if (!(error instanceof ArgumentError)) throw error
      this.#view.problem(error)
      // Asked once more, below what was wrong with the answer.
      this.#shown = null
    }
  }
}

/** A question as a row tells it. */
export function questionOf({ key, message, fields, toolCall }: InputRequest): Question {
  return { toolCallId: toolCall.toolCallId, name: toolCall.name, key, message, fields }
}

function idOf({ toolCallId, key }: Pick<Question, 'toolCallId' | 'key'>): string {
  return JSON.stringify([toolCallId, key])
}
