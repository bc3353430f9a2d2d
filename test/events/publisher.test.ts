import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { readEntry } from '../../src/events/entry.ts'
import type { LiveEvent } from '../../src/events/event.ts'
import { streamKey } from '../../src/events/keys.ts'
import { type EventPublisherOptions, eventPublisher } from '../../src/events/publisher.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'
import {
  cancelled,
  clientOf,
  closeClients,
  manualTimers,
  prefix,
  readerClientOf,
  started,
  stored,
  text,
  textOf,
  thinking,
  until,
  whenReady,
} from './support.ts'

describe('publishing live events', () => {
  let server: TestRedisServer
  let redis: Redis
  let errors: [message: string, chatId: string][]

  before(async () => {
    server = await startRedisServer()
  })
  after(() => server.stop())
  beforeEach(async () => {
    errors = []
    redis = clientOf(server.url)
    await whenReady(redis)
    await redis.flushall()
  })
  afterEach(closeClients)

  const publisherOf = (options: Partial<EventPublisherOptions> = {}, client: Redis = redis) =>
    eventPublisher(client, {
      prefix,
      gatherMs: 0,
      onError: (error, chatId) => errors.push([error.message, chatId]),
      ...options,
    })

  const numbersOf = async (chatId: string) => {
    const entries = await redis.xrange(streamKey(prefix, chatId), '-', '+')
    return entries.map(([id, fields]) => readEntry(chatId, id, fields).number)
  }
  const eventsOf = async (chatId: string) => (await stored(redis, chatId)).map(([, event]) => event)

  it('joins the deltas of a message that come within the time, into one entry', async () => {
    const timers = manualTimers()
    const { publish } = publisherOf({ timers, coalesceMs: 20 })
    publish('c', 3, text('Oh. '))
    await until(async () => (await eventsOf('c')).length > 0)
    for (const part of ['Hel', 'lo', ' you']) publish('c', 3, text(part))
    expect(await eventsOf('c')).to.deep.equal([text('Oh. ')])
    expect(timers.pending()).to.deep.equal([20])

    timers.fire(20)
    await until(async () => (await eventsOf('c')).length > 1)
    publish('c', 3, text('!'))
    timers.fire(20)
    await until(async () => (await eventsOf('c')).length > 2)
    expect(await stored(redis, 'c')).to.deep.equal([
      [3, text('Oh. ')],
      [3, text('Hello you')],
      [3, text('!')],
    ])
    expect(await numbersOf('c')).to.deep.equal([1, 2, 3])
    expect(errors).to.deep.equal([])
  })

  it('sends the first delta of each message and kind at once, and more than 1 KiB too', async () => {
    const timers = manualTimers()
    const { publish } = publisherOf({ timers })
    publish('c', 1, thinking('hm'))
    publish('c', 1, text('a'))
    publish('c', 1, text('b', 'm2'))
    await until(async () => (await eventsOf('c')).length === 3)
    expect(timers.pending()).to.deep.equal([])
    publish('c', 1, text('c', 'm2'))
    expect(timers.pending()).to.deep.equal([40])
    publish('c', 1, text('d'.repeat(1_023), 'm2'))
    expect(timers.pending()).to.deep.equal([])
    await until(async () => (await eventsOf('c')).length === 4)
    expect(textOf(await eventsOf('c'))).to.equal(`abc${'d'.repeat(1_023)}`)
  })

  it('numbers what a run sends, and leaves a hole where something was dropped', async () => {
    const { publish, flush } = publisherOf({ timers: manualTimers(), maxWaiting: 2 })
    publish('c', 1, started(1))
    publish('c', 0, cancelled)
    for (const id of ['m1', 'm2', 'm3', 'm4']) publish('c', 1, text('a', id))
    await flush('c')
    publish('c', 2, started(2))
    publish('c', 1, text('zombie'))
    await flush('c')
    expect(await numbersOf('c')).to.deep.equal([1, null, 5, 1, null])
  })

  it('sends any other event at once, behind the deltas that wait', async () => {
    const timers = manualTimers()
    const { publish } = publisherOf({ timers })
    publish('c', 1, thinking('hm'))
    publish('c', 1, text('a'))
    publish('c', 1, text('b', 'm2'))
    publish('c', 1, started(1))
    expect(timers.pending()).to.deep.equal([])
    await until(async () => (await eventsOf('c')).length === 4)
    expect(await eventsOf('c')).to.deep.equal([thinking('hm'), text('a'), text('b', 'm2'), started(1)])
  })

  it('gathers what one move tells, but holds a first delta back for nothing', async () => {
    const timers = manualTimers()
    const { publish } = publisherOf({ timers, gatherMs: 5 })
    publish('c', 1, started(1))
    publish('c', 1, started(2))
    expect(timers.pending()).to.deep.equal([5])
    expect(await eventsOf('c')).to.deep.equal([])
    publish('c', 1, text('a'))
    expect(timers.pending()).to.deep.equal([])
    await until(async () => (await eventsOf('c')).length === 3)
    publish('c', 1, text('b'))
    publish('c', 1, started(3))
    expect(timers.pending()).to.deep.equal([5])
    timers.fire(5)
    await until(async () => (await eventsOf('c')).length === 5)
  })

  it('keeps the order of a chat over many sends, and chats apart', async () => {
    const { publish, flush } = publisherOf()
    const expected: LiveEvent[] = Array.from({ length: 300 }, (_, turn) => started(turn))
    for (const [turn, event] of expected.entries()) {
      publish('a', 1, event)
      publish('b', 2, event)
      if (turn % 10 === 7) await redis.ping()
    }
    await Promise.all([flush('a'), flush('b')])
    expect(await eventsOf('a')).to.deep.equal(expected)
    expect(await eventsOf('b')).to.deep.equal(expected)
  })

  it('flushes what waits, at once and for that chat alone', async () => {
    const timers = manualTimers()
    const { publish, flush } = publisherOf({ timers, coalesceMs: 20 })
    publish('c', 1, text('a'))
    publish('c', 1, text('b'))
    for (const part of ['a', 'b', 'c']) publish('other', 1, text(part))
    await flush('c')
    expect(textOf(await eventsOf('c'))).to.equal('ab')
    expect(textOf(await eventsOf('other'))).to.equal('a')
    await flush('nobody')
    expect(timers.pending()).to.deep.equal([20])
  })

  it('closes with everything sent and no timer left, and publishes nothing afterwards', async () => {
    const timers = manualTimers()
    const { publish, close } = publisherOf({ timers })
    publish('a', 1, text('a'))
    publish('b', 1, text('b'))
    await Promise.all([close(), close()])
    publish('a', 1, started(2))
    publish('a', 1, text('late'))
    expect(timers.pending()).to.deep.equal([])
    expect([await eventsOf('a'), await eventsOf('b')]).to.deep.equal([[text('a')], [text('b')]])
  })

  it('lets a stream expire, and keeps it about as long as it may be', async () => {
    const { publish, flush } = publisherOf({
      expireMs: { running: 60_000, ended: 60_000 },
      maxLength: 100,
      maxWaiting: 5000,
    })
    for (let turn = 0; turn < 1000; turn++) publish('c', 1, started(turn))
    await flush('c')
    expect(await redis.pttl(streamKey(prefix, 'c'))).to.be.within(50_000, 60_000)
    expect(await redis.xlen(streamKey(prefix, 'c'))).to.be.within(100, 300)
  })

  it('sends one command an entry, and says only now and then how long the stream is to live', async () => {
    const monitor = await redis.monitor()
    const seen: string[] = []
    monitor.on('monitor', (_, [name = '']: string[]) => seen.push(name.toLowerCase()))
    const { publish, flush } = publisherOf({ timers: manualTimers() })
    for (const part of ['a', 'b', 'c']) publish('c', 1, text(part))
    publish('c', 1, thinking('d'))
    await flush('c')
    await redis.ping()
    await until(() => seen.includes('ping'))
    monitor.disconnect()
    expect(seen).to.deep.equal(['xadd', 'pexpire', 'xadd', 'xadd', 'ping'])
  })

  it('lets the stream of a run that has ended live less long', async () => {
    const { publish, flush } = publisherOf()
    const life = () => redis.pttl(streamKey(prefix, 'c'))
    publish('c', 1, started(1))
    await flush('c')
    expect(await life()).to.be.within(3_000_000, 3_600_000)
    publish('c', 1, cancelled)
    await flush('c')
    expect(await life()).to.be.within(500_000, 600_000)
    publish('c', 2, started(2))
    await flush('c')
    expect(await life()).to.be.within(3_000_000, 3_600_000)
  })

  it('reports what Redis refuses, and goes on', async () => {
    await redis.set(streamKey(prefix, 'c'), 'no stream')
    const { publish, flush } = publisherOf()
    publish('c', 1, started(1))
    await flush('c')
    expect(errors).to.have.length(1)
    expect(errors[0]?.[0]).to.match(/WRONGTYPE/)
    expect(errors[0]?.[1]).to.equal('c')
    await redis.del(streamKey(prefix, 'c'))
    publish('c', 1, started(2))
    await flush('c')
    expect(await eventsOf('c')).to.deep.equal([started(2)])
  })

  it('drops an event that is no JSON, but not those around it', async () => {
    const { publish, flush } = publisherOf({ timers: manualTimers() })
    publish('c', 1, text('a'))
    publish('c', 1, { type: 'run.started', turn: 1n as unknown as number })
    publish('c', 1, started(2))
    await flush('c')
    expect(await eventsOf('c')).to.deep.equal([text('a'), started(2)])
    expect(errors[0]?.[0]).to.match(/BigInt/)
  })

  it('does not end anything when the one it reports to throws', async () => {
    await redis.set(streamKey(prefix, 'c'), 'no stream')
    const { publish, flush } = publisherOf({
      onError() {
        throw new Error('listener')
      },
    })
    publish('c', 1, started(1))
    await flush('c')
  })

  describe('while Redis is away', () => {
    beforeEach(() => server.kill())
    afterEach(() => server.restart())

    it('drops events with a report and sends again once it is back', async () => {
      await until(() => redis.status !== 'ready')
      const { publish, flush } = publisherOf()
      publish('c', 1, started(1))
      await flush('c')
      expect(errors.map(([, chatId]) => chatId)).to.deep.equal(['c'])
      await server.restart()
      await whenReady(redis)
      publish('c', 1, started(2))
      await flush('c')
      expect(await eventsOf('c')).to.deep.equal([started(2)])
    })

    it('keeps a bounded number of events on a connection that waits, the oldest deltas going first', async () => {
      const patient = readerClientOf(server.url)
      const timers = manualTimers()
      const { publish, flush } = publisherOf({ timers, maxWaiting: 50, giveUpMs: 2000 }, patient)
      publish('c', 1, started(1))
      publish('c', 1, started(2))
      for (let message = 0; message < 5000; message++) publish('c', 1, text(`${message} `, `m${message}`))
      publish('c', 1, cancelled)
      const flushed = flush('c')
      timers.fire(2000)
      await flushed
      expect(errors.map(([message]) => message.split(':')[0])).to.deep.equal([
        'More than 50 live events wait for Redis, so the oldest are dropped',
        'Redis did not take live events within 2000 ms',
      ])

      await server.restart()
      await whenReady(redis)
      await flush('c')
      const events = await eventsOf('c')
      const kept = Array.from({ length: 48 }, (_, index) => `${4952 + index} `).join('')
      expect(events).to.have.length(51)
      expect([events[0], events[1], events.at(-1)]).to.deep.equal([started(1), started(2), cancelled])
      expect(textOf(events)).to.equal(kept)
    })

    it('forgets a chat in time (E155)', async () => {
      const patient = readerClientOf(server.url)
      const timers = manualTimers()
      const { forget } = publisherOf({ timers, giveUpMs: 2000 }, patient)
      const forgotten = forget('c')
      timers.fire(2000)
      await forgotten
      expect(errors[0]?.[0]).to.match(/^Redis did not take live events within 2000 ms/)
      expect(timers.pending()).to.deep.equal([])
    })

    it('closes in time, dropping what is left', async () => {
      const patient = readerClientOf(server.url)
      const timers = manualTimers()
      const { publish, close } = publisherOf({ timers, giveUpMs: 2000 }, patient)
      publish('c', 1, started(1))
      publish('c', 1, text('left'))
      const closed = close()
      timers.fire(2000)
      await closed
      expect(timers.pending()).to.deep.equal([])
      await server.restart()
      await whenReady(redis)
      await until(async () => (await eventsOf('c')).length > 0)
      await patient.ping()
      expect(await eventsOf('c')).to.deep.equal([started(1)])
    })
  })
})
