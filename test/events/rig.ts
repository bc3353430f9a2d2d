import type { Redis } from 'ioredis'
import type { LiveEvent } from '../../src/events/event.ts'
import type { RowsOfChat } from '../../src/events/history.ts'
import { type EventHubOptions, eventHub } from '../../src/events/hub.ts'
import type { EventsOptions } from '../../src/events/options.ts'
import { type EventPublisher, type EventPublisherOptions, eventPublisher } from '../../src/events/publisher.ts'
import { type EventReader, type EventReaders, eventReaders } from '../../src/events/reader.ts'
import { eventStream } from '../../src/events/stream.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'
import { rowsOf } from './rows.ts'
import { clientOf, closeClients, prefix, readerClientOf, whenReady } from './support.ts'

export const chatId = 'c'

export interface RigOptions extends Partial<Pick<EventHubOptions, 'blockMs' | 'lingerMs' | 'silenceMs'>> {
  /** Where the blocking connection comes from; null: there is none, streams are polled. */
  readonly client?: (() => Redis) | null
  /** For commands that do not block. */
  readonly commands?: Redis
}

/** A publisher and readers over a Redis of its own, with rows that the test makes up; new for each test. */
export interface Rig {
  readonly server: TestRedisServer
  readonly redis: Redis
  readonly publisher: EventPublisher
  /** Every blocking connection that readers had. */
  readonly connections: Redis[]
  readonly problems: string[]
  /** What the database holds, by chat; a chat that is not named was never run. */
  readonly rows: Map<string, RowsOfChat | null>
  /** How often the rows of a chat were looked at because nothing came. */
  readonly looks: () => number
  publish(...events: [token: number, event: LiveEvent][]): Promise<void>
  /** Publishes as another process would. */
  publisherOf(options?: Partial<EventPublisherOptions>): EventPublisher
  /** The readers of a process. */
  process(options?: RigOptions): EventReaders & { readonly hub: ReturnType<typeof eventHub> }
  /** A reader of a process of its own. */
  open(options?: EventsOptions & RigOptions): EventReader
}

export function useRig(): Rig {
  let server: TestRedisServer
  let redis: Redis
  let publisher: EventPublisher
  let looks = 0
  const connections: Redis[] = []
  const problems: string[] = []
  const rows = new Map<string, RowsOfChat | null>()
  let closing: (() => unknown)[] = []

  before(async () => {
    server = await startRedisServer()
  })
  after(() => server.stop())
  beforeEach(async () => {
    for (const list of [connections, problems]) list.length = 0
    rows.clear()
    looks = 0
    redis = clientOf(server.url)
    await whenReady(redis)
    await redis.flushall()
    publisher = publisherOf()
  })
  afterEach(async () => {
    for (const close of closing) await close()
    closing = []
    closeClients()
  })

  function publisherOf(options: Partial<EventPublisherOptions> = {}): EventPublisher {
    const made = eventPublisher(redis, { prefix, onError: () => {}, ...options })
    closing.push(() => made.close())
    return made
  }

  function process({ client = () => readerClientOf(server.url), commands = redis, ...options }: RigOptions = {}) {
    const stream = eventStream(commands, prefix)
    const onError = (error: Error) => void problems.push(error.message)
    const rowsOfChat = (id: string) => {
      const known = rows.get(id)
      return known === undefined ? rowsOf() : known
    }
    const connect = () => {
      const connection = client?.() ?? redis
      connections.push(connection)
      return connection
    }
    const hub = eventHub({
      prefix,
      redis: commands,
      connect: client === null ? null : connect,
      look: async (id) => {
        looks++
        return rowsOfChat(id)?.look ?? null
      },
      holds: (id, entry) => stream.holds(id, entry),
      silenceMs: 60_000,
      onError,
      ...options,
    })
    const readers = eventReaders({ hub, stream, rows: { read: async (id) => rowsOfChat(id) }, onError })
    closing.push(() => {
      readers.close()
      hub.close()
    })
    return { ...readers, hub }
  }

  return {
    get server() {
      return server
    },
    get redis() {
      return redis
    },
    get publisher() {
      return publisher
    },
    connections,
    problems,
    rows,
    looks: () => looks,
    async publish(...events) {
      for (const [token, event] of events) publisher.publish(chatId, token, event)
      await publisher.flush(chatId)
    },
    publisherOf,
    process,
    open: ({ after, history, signal, ...options } = {}) => process(options).read(chatId, { after, history, signal }),
  }
}
