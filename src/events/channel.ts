import type { ChatLook } from '../../models/transcript.ts'
import type { StreamEntry } from './entry.ts'
import { isAtRest } from './history.ts'
import { isAfter } from './ids.ts'
import type { Mailbox } from './mailbox.ts'

export interface ChannelOptions {
  /** Reads the chat's row; null = there is none. */
  readonly look: (chatId: string) => Promise<ChatLook | null>
  /** Whether the chat's stream still holds an entry. */
  readonly holds: (chatId: string, id: string) => Promise<boolean>
  /** After how many ms without an entry the rows are looked at. */
  readonly silenceMs: number
  readonly onError: (error: Error) => void
}

interface Listeners {
  /** The stream no longer holds what was read last, and nobody listens any more. */
  readonly onLost: (channel: Channel) => void
}

/** While nothing goes on in a chat, its row is looked at so many times less often. */
const CALM = 6

/** One watched chat of this process: the place up to which its stream was read, and those who read along. */
export class Channel {
  readonly chatId: string
  /** The id of the entry that was read last; null = none yet. */
  position: string | null
  readonly #mailboxes = new Set<Mailbox>()
  readonly #options: ChannelOptions & Listeners
  #timer: NodeJS.Timeout | undefined
  #heard = 0

  constructor(chatId: string, after: string | null, options: ChannelOptions & Listeners) {
    this.chatId = chatId
    this.position = after
    this.#options = options
    this.#listen(options.silenceMs)
  }

  get isEmpty(): boolean {
    return this.#mailboxes.size === 0
  }

  add(mailbox: Mailbox): void {
    this.#mailboxes.add(mailbox)
  }

  remove(mailbox: Mailbox): void {
    this.#mailboxes.delete(mailbox)
  }

  /** Hands an entry to everyone; who is too slow leaves. */
  hear(entry: StreamEntry): void {
    if (!isAfter(entry.id, this.position)) return
    this.position = entry.id
    this.#heard++
    for (const mailbox of this.#mailboxes) if (!mailbox.push(entry)) this.#mailboxes.delete(mailbox)
    this.#listen(this.#options.silenceMs)
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const mailbox of this.#mailboxes) mailbox.end()
    this.#mailboxes.clear()
  }

  #listen(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), ms)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    const { silenceMs, look, holds, onError } = this.#options
    const heard = this.#heard
    let calm = false
    try {
      const place = this.position
      // Redis may be away just now; the rows are there all the same.
      const [row, held] = await Promise.all([
        look(this.chatId),
        place === null || holds(this.chatId, place).catch(() => true),
      ])
      if (heard !== this.#heard) return
      if (!held) return this.#lose()
      calm = row !== null && isAtRest(row)
      for (const mailbox of this.#mailboxes) mailbox.silence(row)
    } catch (error) {
      onError(error instanceof Error ? error : new Error(String(error)))
    } finally {
      if (heard === this.#heard && !this.isEmpty) this.#listen(calm ? silenceMs * CALM : silenceMs)
    }
  }

  /** The stream is another one now: everybody has to find a new place in it. */
  #lose(): void {
    for (const mailbox of this.#mailboxes) mailbox.leaveBehind()
    this.#mailboxes.clear()
    this.#options.onLost(this)
  }
}
