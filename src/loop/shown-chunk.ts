import type { MessageRow } from '../../models/rows.ts'
import { ConfigurationError } from '../errors.ts'
import type { LiveEvent } from '../events/event.ts'
import type { Broadcast } from '../tools/agent.ts'
import type { Chunk } from './run-context.ts'

type Delta = Extract<LiveEvent, { type: 'text.delta' | 'thinking.delta' }>

/** A chunk as callers get it. Its data can be cloned; what it is sent with is not part of it. */
export class ShownChunk implements Chunk {
  readonly messageId: string
  readonly message: Readonly<MessageRow>
  readonly index: number
  readonly text: string
  readonly thinking: string | null
  readonly #mode: Broadcast
  readonly #publish: (delta: Delta) => void
  #sent = false

  constructor(
    { message, index, delta }: { readonly message: MessageRow; readonly index: number; readonly delta: Delta },
    mode: Broadcast,
    publish: (delta: Delta) => void,
  ) {
    this.messageId = message.id
    this.message = message
    this.index = index
    this.text = delta.type === 'text.delta' ? delta.text : ''
    this.thinking = delta.type === 'thinking.delta' ? delta.text : null
    this.#mode = mode
    this.#publish = publish
  }

  broadcast(): void {
    const { chatId } = this.message
    if (this.#mode === 'off') {
      throw new ConfigurationError(
        `Chunks of chat ${chatId} can't be sent to viewers: its agent has broadcast: 'off'. ` +
          "Define the agent with broadcast: 'manual', or leave the call out.",
        { chatId },
      )
    }
    const text = this.thinking ?? this.text
    if (this.#mode === 'auto' || this.#sent || text === '') return
    this.#sent = true
    this.#publish({ type: this.thinking === null ? 'text.delta' : 'thinking.delta', messageId: this.messageId, text })
  }
}
