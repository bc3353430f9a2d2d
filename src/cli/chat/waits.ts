import type { Chat } from '../../chat/chat.ts'
import type { PendingTaskOfChat } from '../../chat/pending.ts'
import type { ChatEvent, EventToolCall } from '../../events/event.ts'
import { OpenTasks } from './open-tasks.ts'
import type { Question } from './question.ts'
import { questionOf, Unanswered, type Wish } from './unanswered.ts'
import { Undecided } from './undecided.ts'
import { answerPrompt, question, type View } from './view.ts'

/** What the rows say a chat waits for. */
export interface SeenWaits {
  readonly decisions: readonly EventToolCall[]
  readonly questions: readonly Question[]
  readonly tasks: readonly PendingTaskOfChat[]
}

export const nothingWaits: SeenWaits = { decisions: [], questions: [], tasks: [] }

/** What a chat waits for from outside: decisions and answers, which people give here, and tasks, which nobody can hurry. */
export class Waits {
  readonly #chat: Chat
  readonly #decisions: Undecided
  readonly #tasks: OpenTasks
  readonly questions: Unanswered

  constructor(chat: Chat, view: View) {
    this.#chat = chat
    this.#decisions = new Undecided(chat, view)
    this.#tasks = new OpenTasks(view)
    this.questions = new Unanswered(chat, view)
  }

  /** Whether somebody here is asked something. */
  get any(): boolean {
    return this.#decisions.any || this.questions.any
  }

  /** The prompt of what is asked; null = nothing is. */
  get prompt(): string | null {
    if (this.#decisions.any) return question
    return this.questions.any ? answerPrompt : null
  }

  take(event: ChatEvent): void {
    switch (event.type) {
      case 'approval.requested':
        this.#decisions.add(event.toolCall)
        break
      case 'approval.decided':
        this.#decisions.decided(event.toolCall)
        // A call that was denied has nothing to ask any more.
        if (event.approval === 'denied') this.questions.remove(event.toolCall.toolCallId)
        break
      case 'input.requested':
        this.questions.add(event)
        break
      case 'input.answered':
        this.questions.answered(event)
        break
      case 'tool.result':
        this.#decisions.remove(event.toolCallId)
        this.questions.remove(event.toolCallId)
        break
      default:
    }
  }

  async read(): Promise<SeenWaits> {
    const [calls, inputs, tasks] = await Promise.all([
      this.#chat.pendingApprovals(),
      this.#chat.pendingInputs(),
      this.#chat.pendingTasks(),
    ])
    return {
      decisions: calls.map((call) => ({ toolCallId: call.toolCallId, name: call.name, arguments: call.arguments })),
      questions: inputs.map(questionOf),
      tasks,
    }
  }

  replace({ decisions, questions, tasks }: SeenWaits): void {
    this.#decisions.replace(decisions)
    this.questions.replace(questions)
    this.#tasks.tell(tasks)
  }

  /** Asks what is to be asked, unless that was done. */
  show(): void {
    this.#decisions.show()
    this.questions.show()
  }

  /** Takes a line that is no command as what is asked for: a decision first. */
  say(text: string, wish: Wish): Promise<void> {
    return this.#decisions.any ? this.#decisions.answer(text, wish) : this.questions.say(text, wish)
  }
}
