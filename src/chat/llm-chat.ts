import type { AddedMessageInput } from './added-message.ts'
import type { Chat } from './chat.ts'
import type { AskOptions } from './chat-posts.ts'
import type { Message } from './message.ts'

/**
 * A chat in memory: its messages as they were when it was built, and after each verb of its own. What it says and does goes
 * through its chat, so it is stored as ever; reading it asks no database. Made by `chat.toLlm()`, once for each chat object. (S105)
 */
export class LlmChat implements Iterable<Message> {
  readonly #chat: Chat
  #messages: readonly Message[]

  /** @internal */
  constructor(chat: Chat, messages: readonly Message[]) {
    this.#chat = chat
    this.#messages = messages
  }

  /** The transcript, as of the last verb or `chat.reload()`. */
  get messages(): readonly Message[] {
    return this.#messages
  }

  /** The id of the model that it asks, one that was set and is not stored yet included; null = as the agent says. */
  get model(): string | null {
    return this.#chat.modelId
  }

  /** The chat that it belongs to. */
  get chat(): Chat {
    return this.#chat
  }

  /** The messages one by one. */
  [Symbol.iterator](): Iterator<Message> {
    return this.#messages[Symbol.iterator]()
  }

  /** As `chat.ask`. */
  ask(text: string | null, options: AskOptions = {}, onChunk?: Parameters<Chat['ask']>[2]): Promise<Message | null> {
    return this.#after(this.#chat.ask(text, options, onChunk))
  }

  /** As `chat.askLater`. */
  async askLater(...given: Parameters<Chat['askLater']>): Promise<this> {
    await this.#after(this.#chat.askLater(...given))
    return this
  }

  /** As `chat.complete`. */
  complete(...given: Parameters<Chat['complete']>): Promise<Message | null> {
    return this.#after(this.#chat.complete(...given))
  }

  /** As `chat.step`. */
  step(...given: Parameters<Chat['step']>): Promise<Message | null> {
    return this.#after(this.#chat.step(...given))
  }

  /** As `chat.generate`. */
  generate(...given: Parameters<Chat['generate']>): Promise<Message | null> {
    return this.#after(this.#chat.generate(...given))
  }

  /** As `chat.runTools`. */
  async runTools(): Promise<this> {
    await this.#after(this.#chat.runTools())
    return this
  }

  /** As `chat.compact`. */
  compact(...given: Parameters<Chat['compact']>): Promise<Message | null> {
    return this.#after(this.#chat.compact(...given))
  }

  /** As `chat.addMessage`. */
  async addMessage(message: AddedMessageInput | Parameters<Chat['addMessage']>[0]): Promise<Message | null> {
    const { id } = await this.#after(this.#chat.addMessage(message as never))
    return this.#messages.find((one) => one.id === id) ?? null
  }

  /** @internal */
  async refresh(): Promise<void> {
    this.#messages = await this.#chat.messages()
  }

  /** What a verb that throws has stored is read too. */
  async #after<T>(verb: Promise<T>): Promise<T> {
    try {
      return await verb
    } finally {
      await this.refresh()
    }
  }
}
