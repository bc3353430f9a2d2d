import type { Cluster, Redis } from 'ioredis'
import type { Database } from '../../models/database.ts'
import { readCallsBelow } from '../../models/sub-chats.ts'
import { lookAtChat, readLastTurn, readQueue, readTranscript } from '../../models/transcript.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { Observe } from '../observability/observation.ts'
import { eventHub } from './hub.ts'
import { type EventPublisher, eventPublisher } from './publisher.ts'
import { type EventReaders, eventReaders } from './reader.ts'
import { eventStream } from './stream.ts'

/** After how long without an event a reader looks at the rows, in ms. */
const SILENCE_MS = 5_000

/** A process's share in live events: it tells, and it reads. */
export interface LiveEvents {
  readonly publisher: EventPublisher
  readonly readers: EventReaders
  /** Ends all readers and their connection. */
  stopReading(): void
}

export interface LiveEventsOptions {
  readonly prefix: string
  /** A connection that should fail at once, not queue, while Redis is away. */
  readonly redis: Redis | Cluster
  /** Gives a connection for reads that block. */
  readonly connect: () => Redis | Cluster
  readonly db: Database
  readonly coalesceMs: number
  readonly observe: Observe
  /** Default: 5000. */
  readonly silenceMs?: number | undefined
}

export function liveEvents(options: LiveEventsOptions): LiveEvents {
  const { prefix, redis, connect, db, coalesceMs, observe, silenceMs = SILENCE_MS } = options
  const publisher = eventPublisher(redis, {
    prefix,
    coalesceMs,
    onError: (error, chatId) => observe({ type: 'events.dropped', chatId, error: errorFacts(error) }),
  })
  const onError = (error: Error) =>
    observe({ type: 'redis.trouble', doing: 'reading live events', error: errorFacts(error) })
  const stream = eventStream(redis, prefix)
  const look = (chatId: string) => lookAtChat(db, chatId)
  const hub = eventHub({
    prefix,
    redis,
    connect: redis.isCluster ? null : connect,
    look,
    holds: (chatId, id) => stream.holds(chatId, id),
    silenceMs,
    onError,
  })
  const readers = eventReaders({ hub, stream, rows: { read: (chatId, which) => readRows(db, chatId, which) }, onError })
  return {
    publisher,
    readers,
    stopReading() {
      readers.close()
      hub.close()
    },
  }
}

/** The chat first, so that an end that it tells of is one of the messages that are read. */
async function readRows(db: Database, chatId: string, which: 'turn' | 'all') {
  const look = await lookAtChat(db, chatId)
  if (look === null) return null
  const transcript = await (which === 'all' ? readTranscript(db, chatId) : readLastTurn(db, chatId))
  const open = transcript.flatMap(({ toolCalls }) => toolCalls.filter(({ resultId }) => resultId === null))
  const below = (await readCallsBelow(db, open)).map(({ call }) => call)
  return { look, transcript, below, queue: look.queued.total > 0 ? await readQueue(db, chatId) : [] }
}
