import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { ArgumentError } from '../../src/errors.ts'
import type { ChatEvent, LiveEvent } from '../../src/events/event.ts'
import { streamKey } from '../../src/events/keys.ts'
import { type EventPublisher, eventPublisher } from '../../src/events/publisher.ts'
import { type ReadEventsOptions, readEvents } from '../../src/events/reader.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'
import { startProxy } from './proxy.ts'
import {
  cancelled,
  clientOf,
  closeClients,
  prefix,
  readerClientOf,
  readSome,
  readUntil,
  started,
  text,
  textOf,
  until,
  whenReady,
} from './support.ts'

const chatId = 'c'

const bare = ({ id: _id, chatId: _chatId, claimToken: _claimToken, ...event }: ChatEvent) => event as LiveEvent

const turnsOf = (events: readonly ChatEvent[]) =>
  events.flatMap((event) => (event.type === 'run.started' ? [event.turn] : []))

describe('reading live events', () => {
  let server: TestRedisServer
  let redis: Redis
  let publisher: EventPublisher
  let connections: Redis[]

  before(async () => {
    server = await startRedisServer()
  })
  after(() => server.stop())
  beforeEach(async () => {
    connections = []
    redis = clientOf(server.url)
    await whenReady(redis)
    await redis.flushall()
    publisher = eventPublisher(redis, { prefix, onError: () => {} })
  })
  afterEach(async () => {
    await publisher.close()
    closeClients()
  })

  const open = (options: Partial<ReadEventsOptions> = {}, client: () => Redis = () => readerClientOf(server.url)) =>
    readEvents(
      () => {
        const connection = client()
        connections.push(connection)
        return connection
      },
      { prefix, chatId, ...options },
    )

  async function publish(...events: [token: number, event: LiveEvent][]): Promise<void> {
    for (const [token, event] of events) publisher.publish(chatId, token, event)
    await publisher.flush(chatId)
  }

  const allDisconnected = () => until(() => connections.every(({ status }) => status === 'end'))

  describe('where it starts', () => {
    it('is the end of the stream as of the call, not of the first event asked for', async () => {
      await publish([1, started(1)])
      const reader = open()
      await reader.ready
      await publish([1, started(2)])
      expect(turnsOf(await readSome(reader, 1))).to.deep.equal([2])
    })

    it('is the start of a stream that did not exist at the call', async () => {
      const reader = open()
      await reader.ready
      await publish([1, started(1)])
      expect(turnsOf(await readSome(reader, 1))).to.deep.equal([1])
    })

    it('is everything that is kept after 0, and right behind an id after that', async () => {
      await publish([1, started(1)], [1, started(2)], [1, started(3)])
      const all = await readSome(open({ after: '0' }), 3)
      expect(turnsOf(all)).to.deep.equal([1, 2, 3])
      expect(turnsOf(await readSome(open({ after: all[0]?.id }), 2))).to.deep.equal([2, 3])
    })

    it('is refused when it is no id of an event', () => {
      for (const after of ['', '$', 'abc', '1-', '-1', '1-2-3', '99999999999999999999', '1 2']) {
        expect(() => open({ after }), after).to.throw(ArgumentError, /after must be an event's id/)
      }
      expect(connections).to.have.length(0)
    })
  })

  it('gives each event with its chat, its claim token and an id that goes up', async () => {
    await publish([4, started(1)], [4, text('a')])
    const [first, second] = await readSome(open({ after: '0' }), 2)
    expect(first).to.deep.equal({ type: 'run.started', turn: 1, id: first?.id, chatId, claimToken: 4 })
    expect(second).to.include({ type: 'text.delta', text: 'a', claimToken: 4 })
    expect(Number(second?.id.replace('-', '.'))).to.be.above(Number(first?.id.replace('-', '.')))
  })

  it('drops what an overtaken run still sends, but never what comes from outside any run', async () => {
    await publish(
      [1, started(1)],
      [0, cancelled],
      [2, started(2)],
      [1, text('zombie')],
      [0, cancelled],
      [2, started(3)],
    )
    const events = await readUntil(open({ after: '0' }), (event) => event.type === 'run.started' && event.turn === 3)
    expect(events.map(bare)).to.deep.equal([started(1), cancelled, started(2), cancelled, started(3)])
  })

  it('drops what an overtaken run sends to a reader who came after the take-over', async () => {
    await publish([2, started(1)])
    const reader = open()
    await reader.ready
    await publish([1, text('zombie')], [2, started(2)])
    expect((await readSome(reader, 1)).map(bare)).to.deep.equal([started(2)])
  })

  it('skips entries that it can not read', async () => {
    await publish([1, started(1)])
    await redis.xadd(streamKey(prefix, chatId), '*', 'token', '1', 'event', '{"type":"from.the.future"}')
    await redis.xadd(streamKey(prefix, chatId), '*', 'other', 'fields')
    await publish([1, started(2)])
    expect(turnsOf(await readSome(open({ after: '0' }), 2))).to.deep.equal([1, 2])
  })

  it('gives two readers the same, each at its own pace', async () => {
    const [fast, slow] = [open(), open()]
    await Promise.all([fast.ready, slow.ready])
    const fastly = readSome(fast, 50)
    for (let turn = 0; turn < 50; turn++) await publish([1, started(turn)])
    const seen = await fastly
    expect(turnsOf(seen)).to.deep.equal(Array.from({ length: 50 }, (_, turn) => turn))
    expect(await readSome(slow, 50)).to.deep.equal(seen)
  })

  it('brings the text of 2,000 deltas whole, while it is written', async () => {
    const reader = open()
    await reader.ready
    const parts = Array.from({ length: 2000 }, (_, index) => `${index} é👩‍👩‍👧 `.slice(0, 3 + (index % 7)))
    const reading = readUntil(reader, ({ type }) => type === 'run.finished')
    for (const [index, part] of parts.entries()) {
      publisher.publish(chatId, 1, text(part))
      if (index % 20 === 0) await new Promise((done) => setTimeout(done, 1))
    }
    publisher.publish(chatId, 1, { type: 'run.finished', messageId: 'm1' })
    const events = await reading
    expect(textOf(events)).to.equal(parts.join(''))
    expect(events.length).to.be.within(3, 500)
  })

  describe('its end', () => {
    it('comes with a break, which closes the connection', async () => {
      await publish([1, started(1)])
      await readSome(open({ after: '0' }), 1)
      await allDisconnected()
    })

    it('comes with an error of whoever reads', async () => {
      await publish([1, started(1)])
      const reading = readUntil(open({ after: '0' }), () => {
        throw new Error('of the reader')
      })
      expect(await reading.catch((error: Error) => error.message)).to.equal('of the reader')
      await allDisconnected()
    })

    it('comes at once with return(), for a next() that waits too', async () => {
      const reader = open({ blockMs: 600_000 })
      const waiting = reader.next()
      await reader.ready
      expect(await reader.return()).to.deep.equal({ done: true, value: undefined })
      expect(await waiting).to.deep.equal({ done: true, value: undefined })
      expect(await reader.next()).to.deep.equal({ done: true, value: undefined })
      await allDisconnected()
    })

    it('comes with return() for a reader that was never iterated', async () => {
      const reader = open()
      await reader.return()
      await reader.ready
      await allDisconnected()
    })

    it('comes without an error when the signal is aborted, even in the middle of what was read', async () => {
      const controller = new AbortController()
      await publish([1, started(1)], [1, started(2)], [1, started(3)])
      const seen: ChatEvent[] = []
      for await (const event of open({ after: '0', signal: controller.signal, blockMs: 600_000 })) {
        seen.push(event)
        if (seen.length === 2) controller.abort()
      }
      expect(turnsOf(seen)).to.deep.equal([1, 2])
      await allDisconnected()
    })

    itOnRealRedis('comes when the signal is aborted while it waits', async () => {
      const controller = new AbortController()
      const reader = open({ signal: controller.signal, blockMs: 600_000 })
      const waiting = reader.next()
      await until(async () => /cmd=xread/.test(String(await redis.client('LIST'))))
      controller.abort(new Error('why'))
      expect(await waiting).to.deep.equal({ done: true, value: undefined })
      await until(async () => !/cmd=xread/.test(String(await redis.client('LIST'))))
      await allDisconnected()
    })

    it('is there from the start, without a connection, when the signal is aborted already', async () => {
      expect(await readSome(open({ after: '0', signal: AbortSignal.abort() }), 1)).to.deep.equal([])
      expect(connections).to.have.length(0)
    })

    it('comes at once while Redis is away', async () => {
      await server.kill()
      try {
        // The pause before the next attempt would keep the process alive if it were not ended, too.
        const reader = open({}, () => readerClientOf(server.url, { retryStrategy: () => 600_000 }))
        const waiting = reader.next()
        await until(() => connections[0]?.status === 'reconnecting')
        expect(await reader.return()).to.deep.equal({ done: true, value: undefined })
        expect(await waiting).to.deep.equal({ done: true, value: undefined })
      } finally {
        await server.restart()
      }
    })
  })

  describe('when Redis goes away and comes back', () => {
    async function readsOn(client: () => Redis): Promise<Error[]> {
      await publish([1, started(1)])
      const problems: Error[] = []
      const reader = open({ after: '0', onError: (error) => problems.push(error) }, client)
      expect(turnsOf([(await reader.next()).value])).to.deep.equal([1])
      const waiting = reader.next()
      await server.restart()
      await whenReady(redis)
      await publish([1, started(2)], [1, started(3)])
      expect(turnsOf([(await waiting).value, (await reader.next()).value])).to.deep.equal([2, 3])
      await reader.return()
      await allDisconnected()
      return problems
    }

    itOnRealRedis('goes on behind the last event', async () => {
      await readsOn(() => readerClientOf(server.url))
    })

    it('goes on over a client that fails at once, and says so', async () => {
      expect(await readsOn(() => clientOf(server.url))).not.to.have.length(0)
    })

    it('goes on over a new client when the old one gave up', async () => {
      await readsOn(() => readerClientOf(server.url, { retryStrategy: () => null }))
      expect(connections.length).to.be.above(1)
    })
  })

  it('connects again when a connection falls silent without an end', async () => {
    const proxy = await startProxy(server.port)
    try {
      const reader = open({ after: '0', blockMs: 20 }, () => readerClientOf(proxy.url))
      await publish([1, started(1)])
      expect(turnsOf([(await reader.next()).value])).to.deep.equal([1])
      proxy.muteOpenConnections()
      await publish([1, started(2)])
      expect(turnsOf([(await reader.next()).value])).to.deep.equal([2])
      expect(connections).to.have.length(2)
      await reader.return()
    } finally {
      await proxy.close()
    }
  })

  it('goes on trying when Redis refuses a command', async () => {
    await redis.set(streamKey(prefix, chatId), 'no stream')
    const problems: string[] = []
    const reader = open({ after: '0', onError: (error) => problems.push(error.message) })
    const waiting = reader.next()
    await until(() => problems.some((message) => /WRONGTYPE/.test(message)))
    await redis.del(streamKey(prefix, chatId))
    await publish([1, started(1)])
    expect(turnsOf([(await waiting).value])).to.deep.equal([1])
    await reader.return()
  })
})
