import type { ChatEvent } from './event.ts'
import { follow } from './follow.ts'
import type { EventHub } from './hub.ts'
import { type EventRows, type Joined, joinAfresh, joinAtStart, joinBehind } from './join.ts'
import { checkEventsOptions, type EventsOptions } from './options.ts'
import { ended, untilAnswered } from './patience.ts'
import type { EventStream } from './stream.ts'
import { Told } from './told.ts'

/** The live events of one chat, to be read once. Ended by `break`, by `return()`, by its signal, or by `mill.close()`. */
export interface EventReader extends AsyncIterableIterator<ChatEvent> {
  /** Resolves when the reader has its place: what is published from then on will be read. Also resolves at the end. */
  readonly ready: Promise<void>
  /** Ends the reader, whether or not it was ever iterated. A `next` that waits gets `done`. */
  return(): Promise<IteratorResult<ChatEvent>>
}

/** The readers of a process. */
export interface EventReaders {
  /** @throws {ArgumentError} for options that are none. */
  read(chatId: string, options?: EventsOptions): EventReader
  /** Ends all readers; those made afterwards are ended from the start. */
  close(): void
}

export interface EventReadersOptions {
  readonly hub: EventHub
  readonly stream: EventStream
  readonly rows: EventRows
  readonly onError: (error: Error) => void
}

export function eventReaders({ hub, stream, rows, onError }: EventReadersOptions): EventReaders {
  const open = new Set<() => void>()
  let closed = false

  function read(chatId: string, options: EventsOptions = {}): EventReader {
    checkEventsOptions(chatId, options)
    const { after, history = 'turn', signal } = options
    const ending = new AbortController()
    const end = () => {
      open.delete(end)
      signal?.removeEventListener('abort', end)
      ending.abort()
    }
    open.add(end)
    signal?.addEventListener('abort', end)
    if (closed || signal?.aborted) end()

    const ask = async <T>(question: () => Promise<T>): Promise<T> => {
      const answer = await untilAnswered(question, { signal: ending.signal, onError })
      if (answer === ended) throw ending.signal.reason
      return answer
    }
    const following = { hub, stream, rows, chatId, history, ask, told: new Told(), signal: ending.signal, onError }
    // Asked for now, not at the first `next`: what happens between the two is part of what is read.
    const joined = join()
    return readerOf(follow(following, joined), joined, { end, isEnded: () => ending.signal.aborted })

    async function join(): Promise<Joined | 'gone' | null> {
      if (ending.signal.aborted) return null
      if (after === undefined) return joinAfresh(following, history)
      return after === '0' ? joinAtStart(following) : joinBehind(following, after)
    }
  }

  return {
    read,
    close() {
      closed = true
      for (const end of open) end()
    },
  }
}

interface Ending {
  readonly end: () => void
  readonly isEnded: () => boolean
}

function readerOf(
  events: AsyncGenerator<ChatEvent, void>,
  joined: Promise<unknown>,
  { end, isEnded }: Ending,
): EventReader {
  const done = { done: true, value: undefined } as const
  return {
    ready: joined.then(
      () => {},
      () => {},
    ),
    async next() {
      try {
        const next = await events.next()
        if (next.done === true) end()
        return next
      } catch (error) {
        // Whatever was under way when the reader was ended is no failure.
        if (isEnded()) return done
        end()
        throw error
      }
    },
    async return() {
      // The generator's own return would wait behind a `next` that waits, so that one is ended first.
      end()
      await events.return().catch(() => {})
      return done
    },
    async throw(error) {
      end()
      await events.return().catch(() => {})
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
