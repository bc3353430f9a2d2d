import type { RedisClient } from './redis-clients.ts'

/** What was heard of a connection since it was looked at last. */
export interface Heard {
  /** Whether commands can be sent on it; one that is known to be gone is not silent. */
  readonly isReady: boolean
  /** Whether a command waits for its answer, or was given up without one. */
  readonly isOwed: boolean
  /** Whether Redis has answered a command, by an error too. */
  readonly isAnswered: boolean
}

/** How many looks in a row found a connection silent, given how many did before. */
export function silentLooks(before: number, { isReady, isOwed, isAnswered }: Heard): number {
  return isReady && isOwed && !isAnswered ? before + 1 : 0
}

export interface SilenceOptions {
  /** Whether it is the connection: it does not answer itself, and another one does. Must not reject. */
  readonly isAlone: (client: RedisClient) => Promise<boolean>
  /** Told before a connection is made anew. */
  readonly onSilent: (client: RedisClient) => void
  /** Time between two looks, in ms. Default: 1000. */
  readonly lookEveryMs?: number | undefined
}

/** So many looks in a row have to find a connection silent before anything is done about it. */
const looksAllowed = 3
const defaultLookMs = 1_000

interface Watched {
  readonly client: RedisClient
  unanswered: number
  isDoubted: boolean
  isAnswered: boolean
  looks: number
  isChecked: boolean
}

/**
 * Watches clients for a connection that is open and answers nothing: a router that forgot it, a server that was cut off. TCP
 * finds out after a quarter of an hour, or never. Such a connection is made anew, and what waits for an answer is sent again.
 * It sends nothing as long as all is well. Time is counted in looks, so that an event loop that stood still counts once.
 */
export class SilenceWatch {
  readonly #options: SilenceOptions
  readonly #watched = new Set<Watched>()
  #timer: NodeJS.Timeout | null = null

  constructor(options: SilenceOptions) {
    this.#options = options
  }

  /** From now on, until the client ends. Not for one that blocks. */
  watch(client: RedisClient): void {
    const watched = listenTo(client)
    this.#watched.add(watched)
    client.once('end', () => this.#watched.delete(watched))
    this.#timer ??= setInterval(() => this.#look(), this.#options.lookEveryMs ?? defaultLookMs).unref()
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#watched.clear()
  }

  #look(): void {
    for (const watched of this.#watched) {
      const { client, unanswered, isDoubted, isAnswered } = watched
      const isReady = client.status === 'ready'
      if (!isReady || isAnswered) watched.isDoubted = false
      watched.isAnswered = false
      watched.looks = silentLooks(watched.looks, { isReady, isOwed: unanswered > 0 || isDoubted, isAnswered })
      if (watched.looks >= looksAllowed && !watched.isChecked) void this.#check(watched)
    }
  }

  async #check(watched: Watched): Promise<void> {
    const { client } = watched
    watched.isChecked = true
    const isAlone = await this.#options.isAlone(client)
    watched.isChecked = false
    watched.looks = 0
    watched.isDoubted = false
    if (!isAlone || client.status !== 'ready' || !this.#watched.has(watched)) return
    this.#options.onSilent(client)
    client.disconnect(true)
  }
}

function listenTo(client: RedisClient): Watched {
  const watched: Watched = { client, unanswered: 0, isDoubted: false, isAnswered: false, looks: 0, isChecked: false }
  const target = client as { sendCommand(...input: unknown[]): unknown }
  const send = target.sendCommand.bind(client)
  target.sendCommand = (...input) => {
    watched.unanswered++
    const sent = send(...input)
    Promise.resolve(sent).then(
      () => {
        watched.unanswered--
        watched.isAnswered = true
      },
      (error: unknown) => {
        watched.unanswered--
        // Anything else, such as a time limit of the client's own, is no answer.
        if ((error as Error | null)?.name === 'ReplyError') watched.isAnswered = true
        else watched.isDoubted = true
      },
    )
    return sent
  }
  return watched
}
