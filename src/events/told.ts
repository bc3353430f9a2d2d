import type { StreamEntry } from './entry.ts'
import type { ChatEvent, LiveEvent } from './event.ts'
import { isFinal, isRunEnd } from './run-end.ts'

/** How many events are remembered as told, at most: far more than can be under way at once. */
const MOST_KEYS = 2_000

/** Whose deltas are passed on: those of one message, of none, or of any. */
type Draft = { readonly messageId: string } | 'none' | 'any'

/** What one reader was told: decides what it is still to be told, so that nothing comes twice and no hole goes unseen. */
export class Told {
  /** The highest claim token heard. */
  #token = 0
  /** The number that the next entry of that run must have; null = any. */
  #next: number | null = null
  /** Whether the token is known, so that a higher one is a run that begins. */
  #following = false
  #draft: Draft = 'any'
  /** The latest take whose end was told, or needs no telling. */
  #settled = 0
  readonly #keys = new Set<string>()

  /** Forgets everything. Runs before `claimToken` are overtaken; deltas wait for the start of their message, if `whole`. */
  restart({ claimToken, whole }: { readonly claimToken: number; readonly whole: boolean }): void {
    this.#token = claimToken
    this.#following = true
    this.#next = null
    this.#settled = 0
    this.#draft = whole ? 'none' : 'any'
    this.#keys.clear()
  }

  /** Takes what was sent last before the reader came: what its run sends next has the next number. */
  follow({ claimToken, number }: StreamEntry): void {
    if (claimToken === 0 || claimToken < this.#token) return
    this.#token = claimToken
    this.#following = true
    this.#next = number === null ? null : number + 1
  }

  /** The highest claim token heard; 0 = none. */
  get claimToken(): number {
    return this.#token
  }

  /** Says that how a take, and those before it, ended needs no telling. */
  settle(claimToken: number): void {
    this.#settled = Math.max(this.#settled, claimToken)
  }

  /** Whether the end of a take needs no telling any more. */
  isSettled(claimToken: number): boolean {
    return claimToken <= this.#settled
  }

  /** Whether an event was told. */
  has(event: ChatEvent): boolean {
    const key = keyOf(event)
    return key !== null && this.#keys.has(key)
  }

  /** Marks an event as told. False = it was already. */
  tell(event: ChatEvent): boolean {
    const key = keyOf(event)
    if (key === null) return true
    if (this.#keys.has(key)) return false
    this.#keys.add(key)
    if (isRunEnd(event) && isFinal(event)) this.settle(event.claimToken)
    for (const undone of undoneBy(event)) this.#keys.delete(undone)
    for (const oldest of this.#keys) {
      if (this.#keys.size <= MOST_KEYS) break
      this.#keys.delete(oldest)
    }
    return true
  }

  /**
   * The event of an entry that is to be told, or null. 'hole': entries before it were lost, and it was not taken in.
   * `isPast`: it was there before the reader; a hole is then no news, but leaves the unfinished answer out.
   */
  hear(entry: StreamEntry, { isPast }: { readonly isPast: boolean }): ChatEvent | 'hole' | null {
    const { claimToken, number, event } = entry
    if (claimToken > 0) {
      if (claimToken < this.#token) return null
      // A run that begins while someone listens begins with 1.
      const begins = isPast || !this.#following ? null : 1
      const expected = claimToken > this.#token ? begins : this.#next
      if (expected !== null && number !== null && number !== expected) {
        if (number < expected) return null
        if (!isPast) return 'hole'
        this.#draft = 'none'
      }
      this.follow(entry)
    }
    return event !== null && this.#isNews(event) ? event : null
  }

  #isNews(event: ChatEvent): boolean {
    switch (event.type) {
      case 'text.delta':
      case 'thinking.delta':
        if (this.#keys.has(finished(event.messageId))) return false
        return this.#draft === 'any' || (this.#draft !== 'none' && this.#draft.messageId === event.messageId)
      case 'message.started':
        if (this.#keys.has(finished(event.messageId)) || !this.tell(event)) return false
        this.#draft = { messageId: event.messageId }
        return true
      case 'attempt.restarted':
      case 'message.finished':
      case 'transcript.cut':
        this.#draft = 'none'
        return this.tell(event)
      // Made by readers: nobody sends it.
      case 'resync':
        return false
      default:
        if (isRunEnd(event)) this.#draft = 'none'
        return this.tell(event)
    }
  }
}

const finished = (messageId: string) => `message.finished ${messageId}`

/** What makes two events the same; null where the same can happen again. */
function keyOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'run.started':
      return `${event.type} ${event.claimToken} ${event.turn}`
    case 'run.finished':
    case 'run.waiting':
    case 'run.cancelled':
      // From outside any run there may be any number of them.
      return event.claimToken === 0 ? null : `${event.type} ${event.claimToken}`
    case 'run.failed':
      return `${event.type} ${event.failure.turn} ${event.failure.at}`
    case 'message.started':
    case 'attempt.restarted':
    case 'message.finished':
      return `${event.type} ${event.messageId}`
    case 'tool_call.requested':
    case 'approval.requested':
      return `${event.type} ${event.toolCall.toolCallId}`
    case 'approval.decided':
      return `${event.type} ${event.toolCall.toolCallId} ${event.approval}`
    case 'input.requested':
    case 'input.answered':
      return `${event.type} ${event.toolCallId} ${event.key}`
    case 'tool.result':
      return `${event.type} ${event.toolCallId}`
    case 'sub_chat.started':
      return `${event.type} ${event.subChatId}`
    case 'queued':
    case 'dequeued':
    case 'unqueued':
      return `${event.type} ${event.queuedId}`
    case 'text.delta':
    case 'thinking.delta':
    case 'tool.progress':
    case 'transferred':
    case 'transcript.cut':
    case 'usage':
    case 'resync':
      return null
    default:
      return event satisfies never
  }
}

/** A call that was decided can be put up for a decision once more, and the other way round. */
function undoneBy(event: LiveEvent): string[] {
  if (event.type === 'approval.requested') {
    return ['approved', 'remembered', 'denied'].map((how) => `approval.decided ${event.toolCall.toolCallId} ${how}`)
  }
  return event.type === 'approval.decided' ? [`approval.requested ${event.toolCall.toolCallId}`] : []
}
