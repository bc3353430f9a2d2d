import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { ArgumentError } from '../../src/errors.ts'
import type { ChatEvent, LiveEvent } from '../../src/events/event.ts'
import { streamKey } from '../../src/events/keys.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { startProxy } from './proxy.ts'
import { chatId, useRig } from './rig.ts'
import { running } from './rows.ts'
import {
  cancelled,
  clientOf,
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

const bare = ({ id: _id, chatId: _chatId, claimToken: _claimToken, ...event }: ChatEvent) => event as LiveEvent

const turnsOf = (events: readonly ChatEvent[]) =>
  events.flatMap((event) => (event.type === 'run.started' ? [event.turn] : []))

describe('reading live events', () => {
  const rig = useRig()
  const { open, publish, connections } = rig

  const allDisconnected = () => until(() => connections.every(({ status }) => status === 'end'))
  const live = { history: 'none' } as const

  describe('where it starts', () => {
    it('is the end of the stream as of the call, not of the first event asked for', async () => {
      await publish([1, started(1)])
      const reader = open(live)
      await reader.ready
      await publish([1, started(2)])
      expect(turnsOf(await readSome(reader, 1))).to.deep.equal([2])
    })

    it('is the start of a stream that did not exist at the call', async () => {
      const reader = open(live)
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
    rig.rows.set(chatId, running(2))
    const reader = open(live)
    await reader.ready
    await publish([1, text('zombie')], [2, started(2)])
    expect((await readSome(reader, 1)).map(bare)).to.deep.equal([started(2)])
  })

  it('skips entries that it can not read', async () => {
    await publish([1, started(1)])
    await rig.redis.xadd(streamKey(prefix, chatId), '*', 'token', '1', 'event', '{"type":"from.the.future"}')
    await rig.redis.xadd(streamKey(prefix, chatId), '*', 'other', 'fields')
    await publish([1, started(2)])
    expect(turnsOf(await readSome(open({ after: '0' }), 2))).to.deep.equal([1, 2])
  })

  it('gives two readers the same, each at its own pace', async () => {
    const [fast, slow] = [open(live), open(live)]
    await Promise.all([fast.ready, slow.ready])
    const fastly = readSome(fast, 50)
    for (let turn = 0; turn < 50; turn++) await publish([1, started(turn)])
    const seen = await fastly
    expect(turnsOf(seen)).to.deep.equal(Array.from({ length: 50 }, (_, turn) => turn))
    expect(await readSome(slow, 50)).to.deep.equal(seen)
  })

  it('brings the text of 2,000 deltas whole, while it is written', async () => {
    const reader = open(live)
    await reader.ready
    const parts = Array.from({ length: 2000 }, (_, index) => `${index} é👩‍👩‍👧 `.slice(0, 3 + (index % 7)))
    const reading = readUntil(reader, ({ type }) => type === 'run.finished')
    for (const [index, part] of parts.entries()) {
      rig.publisher.publish(chatId, 1, text(part))
      if (index % 20 === 0) await new Promise((done) => setTimeout(done, 1))
    }
    rig.publisher.publish(chatId, 1, { type: 'run.finished', messageId: 'm1' })
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
      const reader = open({ ...live, blockMs: 600_000 })
      const waiting = reader.next()
      await reader.ready
      expect(await reader.return()).to.deep.equal({ done: true, value: undefined })
      expect(await waiting).to.deep.equal({ done: true, value: undefined })
      expect(await reader.next()).to.deep.equal({ done: true, value: undefined })
      await allDisconnected()
    })

    it('comes with return() for a reader that was never iterated', async () => {
      const reader = open(live)
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
      const reader = open({ ...live, signal: controller.signal, blockMs: 600_000 })
      const waiting = reader.next()
      await until(async () => /cmd=xread/.test(String(await rig.redis.client('LIST'))))
      controller.abort(new Error('why'))
      expect(await waiting).to.deep.equal({ done: true, value: undefined })
      await until(async () => !/cmd=xread/.test(String(await rig.redis.client('LIST'))))
      await allDisconnected()
    })

    it('is there from the start, without a connection, when the signal is aborted already', async () => {
      expect(await readSome(open({ after: '0', signal: AbortSignal.abort() }), 1)).to.deep.equal([])
      expect(connections).to.have.length(0)
    })

    it('comes at once while Redis is away', async () => {
      // The pause before the next attempt would keep the process alive if it were not ended, too.
      const client = () => readerClientOf(rig.server.url, { retryStrategy: () => 600_000 })
      const reader = open({ after: '0', client })
      const waiting = reader.next()
      await until(() => connections[0]?.status === 'ready')
      await rig.server.kill()
      try {
        await until(() => connections[0]?.status === 'reconnecting')
        const late = open({ ...live, client })
        for (const [one, next] of [
          [reader, waiting],
          [late, late.next()],
        ] as const) {
          expect(await one.return()).to.deep.equal({ done: true, value: undefined })
          expect(await next).to.deep.equal({ done: true, value: undefined })
          await one.ready
        }
      } finally {
        await rig.server.restart()
      }
    })
  })

  describe('when Redis goes away and comes back', () => {
    async function readsOn(client: () => Redis): Promise<void> {
      await publish([1, started(1)])
      const reader = open({ after: '0', client })
      expect(turnsOf([(await reader.next()).value])).to.deep.equal([1])
      const waiting = reader.next()
      await rig.server.restart()
      await whenReady(rig.redis)
      await publish([1, started(2)], [1, started(3)])
      expect(turnsOf([(await waiting).value, (await reader.next()).value])).to.deep.equal([2, 3])
      await reader.return()
      await allDisconnected()
    }

    itOnRealRedis('goes on behind the last event', async () => {
      await readsOn(() => readerClientOf(rig.server.url))
    })

    it('goes on over a client that fails at once, and says so', async () => {
      await readsOn(() => clientOf(rig.server.url))
      expect(rig.problems).not.to.have.length(0)
    })

    it('goes on over a new client when the old one gave up', async () => {
      await readsOn(() => readerClientOf(rig.server.url, { retryStrategy: () => null }))
      expect(connections.length).to.be.above(1)
    })
  })

  it('connects again when a connection falls silent without an end', async () => {
    const proxy = await startProxy(rig.server.port)
    try {
      const reader = open({ after: '0', blockMs: 20, client: () => readerClientOf(proxy.url) })
      await publish([1, started(1)])
      expect(turnsOf([(await reader.next()).value])).to.deep.equal([1])
      const waiting = reader.next()
      await until(() => connections[0]?.status === 'ready')
      proxy.muteOpenConnections()
      await publish([1, started(2)])
      expect(turnsOf([(await waiting).value])).to.deep.equal([2])
      expect(connections).to.have.length(2)
      await reader.return()
    } finally {
      await proxy.close()
    }
  })

  it('goes on trying when Redis refuses a command', async () => {
    await rig.redis.set(streamKey(prefix, chatId), 'no stream')
    const reader = open({ after: '0' })
    const waiting = reader.next()
    await until(() => rig.problems.some((message) => /WRONGTYPE/.test(message)))
    await rig.redis.del(streamKey(prefix, chatId))
    await publish([1, started(1)])
    expect(turnsOf([(await waiting).value])).to.deep.equal([1])
    await reader.return()
  })
})
