import { type Chat, type ChatEvent, ChatNotFoundError, type Failure } from '../../index.ts'
import type { Screen } from '../terminal/screen.ts'
import type { Session } from './session.ts'

/** How a turn ended, or why this demo no longer watches it. */
export type TurnEnd =
  | { readonly kind: 'answered' | 'parked' | 'cancelled' | 'left' }
  | { readonly kind: 'failed'; readonly failure: Failure }

const silenceMs = 1_000
/** Live events come within milliseconds of what they tell of; after so much silence there are none. */
const silentLooks = 2

const terminal: ReadonlySet<ChatEvent['type']> = new Set(['run.waiting', 'run.finished', 'run.cancelled', 'run.failed'])

/**
 * Shows a chat's events. The rows alone say when a turn has ended: events tell when to look, and where none come (Redis
 * was away, or a worker of another demo ran the chat) the rows are looked at all the same.
 */
export class Follower {
  readonly chat: Chat
  readonly #session: Session
  readonly #screen: Screen
  readonly #events: AsyncIterator<ChatEvent>
  readonly #left: Promise<'left'>
  #next: Promise<IteratorResult<ChatEvent>> | null = null

  constructor(parts: {
    chat: Chat
    session: Session
    screen: Screen
    events: AsyncIterator<ChatEvent>
    leaving: AbortSignal
  }) {
    this.chat = parts.chat
    this.#session = parts.session
    this.#screen = parts.screen
    this.#events = parts.events
    const { leaving } = parts
    this.#left = new Promise((resolve) => {
      if (leaving.aborted) resolve('left')
      leaving.addEventListener('abort', () => resolve('left'), { once: true })
    })
  }

  /**
   * Shows what happens until the chat rests.
   * @throws {ConfigurationError} when no worker is left.
   * @throws {ChatNotFoundError} when the chat was deleted.
   */
  async follow(): Promise<TurnEnd> {
    for (let silent = 0; ; ) {
      const event = await this.#wait()
      if (event === 'left') return { kind: 'left' }
      silent = event === 'silence' ? silent + 1 : 0
      if (event !== 'silence') {
        this.#screen.show(event)
        if (!terminal.has(event.type)) continue
      }
      const end = await this.rest()
      if (end === null || (event === 'silence' && silent < silentLooks)) continue
      this.#screen.answers(await this.chat.messages())
      return end
    }
  }

  /** How the chat rests, by its row; null while it runs or is wanted. */
  async rest(): Promise<TurnEnd | null> {
    const row = await this.#session.mill.models.Chat.findByPk(this.chat.id)
    if (row === null) throw new ChatNotFoundError(`Chat ${this.chat.id} was deleted.`, { chatId: this.chat.id })
    if (row.wantedAt !== null || row.claimedBy !== null) return null
    if (row.failure !== null) return { kind: 'failed', failure: row.failure }
    if (row.parked) return { kind: 'parked' }
    return { kind: row.cancelledTurn === row.turn ? 'cancelled' : 'answered' }
  }

  async #wait(): Promise<ChatEvent | 'silence' | 'left'> {
    this.#next ??= this.#events.next()
    let timer: NodeJS.Timeout | undefined
    const silence = new Promise<'silence'>((resolve) => {
      timer = setTimeout(() => resolve('silence'), silenceMs)
    })
    const first = await Promise.race([this.#next, silence, this.#left, this.#session.workersGone]).finally(() => {
      clearTimeout(timer)
    })
    if (typeof first === 'string') return first
    this.#next = null
    return first.done === true ? 'left' : first.value
  }
}
