import { expect } from 'chai'
import { entryFields } from '../../src/events/entry.ts'
import type { ChatEvent, LiveEvent } from '../../src/events/event.ts'
import { streamKey } from '../../src/events/keys.ts'
import { MOST_WAITING } from '../../src/events/mailbox.ts'
import type { EventReader } from '../../src/events/reader.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { chatId, useRig } from './rig.ts'
import { answered, running } from './rows.ts'
import { begun, finished, prefix, readSome, readUntil, runFinished, started, text, textOf, until } from './support.ts'

const lastTurn = (turn: number) => (event: ChatEvent) => event.type === 'run.started' && event.turn === turn

describe('readers of one process', () => {
  const rig = useRig()
  const { publish, connections, rows } = rig

  const clients = async () =>
    String(await rig.redis.client('LIST'))
      .trim()
      .split('\n').length
  const joined = (readers: readonly EventReader[]) => Promise.all(readers.map((reader) => reader.ready))

  itOnRealRedis('share one connection, 500 of one chat as well as those of 50 chats', async () => {
    const before = await clients()
    const { read } = rig.process()
    const many = Array.from({ length: 500 }, () => read(chatId, { history: 'none' }))
    const others = Array.from({ length: 50 }, (_, at) => read(`chat-${at}`, { history: 'none' }))
    await joined([...many, ...others])
    const reading = many.map((reader) => readSome(reader, 3))
    const elsewhere = others.map((reader) => readSome(reader, 1))
    // Each has looked at the stream once more when these are answered, and reads along from then on.
    for (const _ of [1, 2]) await rig.redis.ping()
    await publish([1, started(1)], [1, begun()], [1, text('a')])
    const seen = await Promise.all(reading)
    expect(await clients()).to.equal(before + 1)
    for (const at of others.keys()) {
      rig.publisher.publish(`chat-${at}`, 1, started(at))
    }
    expect((await Promise.all(elsewhere)).map(([event]) => event?.chatId)).to.deep.equal(
      others.map((_, at) => `chat-${at}`),
    )
    // Each entry was read once, for all of them.
    for (const events of seen) for (const [at, event] of events.entries()) expect(event).to.equal(seen[0]?.[at])
    expect(connections).to.have.length(1)
    await until(async () => (await clients()) === before)
  })

  it('open it with the first and close it soon after the last', async () => {
    const { read } = rig.process({ lingerMs: 1 })
    const [first, second] = [read(chatId, { after: '0' }), read('other', { after: '0' })]
    await joined([first, second])
    expect(connections).to.have.length(0)
    const waiting = [first.next(), second.next()]
    await until(() => connections[0]?.status === 'ready')
    await first.return()
    expect(connections[0]?.status).to.equal('ready')
    await second.return()
    await until(() => connections[0]?.status === 'end')
    await Promise.all(waiting)
    const again = read(chatId, { after: '0' })
    const next = again.next()
    await until(() => connections[1]?.status === 'ready')
    await publish([1, started(1)])
    expect((await next).value).to.include({ type: 'run.started' })
    expect(connections).to.have.length(2)
  })

  it('all end when the process closes, whatever they do', async () => {
    const process = rig.process()
    const [idle, waiting, never] = [process.read(chatId), process.read(chatId, { after: '0' }), process.read('x')]
    const next = waiting.next()
    await joined([idle, waiting, never])
    process.close()
    process.hub.close()
    const done = { done: true, value: undefined }
    expect(await next).to.deep.equal(done)
    expect(await idle.next()).to.deep.equal(done)
    expect(await process.read(chatId).next()).to.deep.equal(done)
    await until(() => connections.every(({ status }) => status === 'end'))
  })

  it('hear a chat that is watched while others are waited for, at once', async () => {
    const { read } = rig.process({ blockMs: 600_000 })
    const first = read(chatId, { history: 'none' })
    const waiting = first.next()
    await until(() => connections[0]?.status === 'ready')
    const second = read('other', { history: 'none' })
    await second.ready
    const next = second.next()
    rig.publisher.publish('other', 1, started(7))
    expect((await next).value).to.include({ type: 'run.started', turn: 7, chatId: 'other' })
    await first.return()
    await waiting
  })

  it('miss nothing and get nothing twice when they join one after the other while it is sent', async () => {
    const { read } = rig.process()
    rows.set(chatId, running(1))
    await publish([1, started(1)], [1, begun()])
    let sent = ''
    let at = 0
    const reading: Promise<ChatEvent[]>[] = []
    for (; at < 400; at++) {
      sent += `${at} `
      rig.publisher.publish(chatId, 1, text(`${at} `))
      if (at % 10 === 0) reading.push(readUntil(read(chatId), ({ type }) => type === 'message.finished'))
      if (at % 4 === 0) await new Promise((done) => setTimeout(done, 1))
    }
    await publish([1, finished(sent)])
    for (const events of await Promise.all(reading)) expect(textOf(events)).to.equal(sent)
  })

  it('have an answer of 5,000 deltas whole, none twice, though they leave and join again 100 times (B83)', async function () {
    this.timeout(60_000)
    const { read } = rig.process()
    const [deltas, rejoins] = [5_000, 100]
    const parts = Array.from({ length: deltas }, (_, at) => `${at} `)
    const whole = parts.join('')
    rows.set(chatId, running(1))
    await publish([1, started(1)], [1, begun()])
    const sending = (async () => {
      for (const [at, part] of parts.entries()) {
        rig.publisher.publish(chatId, 1, text(part))
        if (at % 5 === 0) await rig.publisher.flush(chatId)
      }
      await publish([1, finished(whole)])
    })()
    let last: string | undefined
    let shown = 0
    for (let joins = 0; joins < rejoins; joins++) {
      // By turns behind the last event, and from scratch: then everything comes again.
      const after = joins % 2 === 0 ? last : undefined
      if (after === undefined) shown = 0
      const enough = Math.floor((whole.length * (joins + Math.random())) / (rejoins + 1))
      for await (const event of read(chatId, { after })) {
        last = event.id
        expect(event.type).not.to.equal('resync')
        if (event.type !== 'text.delta') continue
        expect(event.text).to.equal(whole.slice(shown, shown + event.text.length))
        shown += event.text.length
        if (shown >= enough) break
      }
    }
    for await (const event of read(chatId, { after: last })) {
      if (event.type === 'text.delta') shown += event.text.length
      if (event.type === 'message.finished') break
    }
    expect(shown).to.equal(whole.length)
    await sending
  })

  describe('one of which is slow', () => {
    const many: LiveEvent[] = Array.from({ length: 3 * MOST_WAITING }, (_, turn) => started(turn + 2))

    it('delays no other, keeps little in memory, and still gets everything', async () => {
      const { read } = rig.process()
      const [slow, fast] = [read(chatId, { after: '0' }), read(chatId, { after: '0' })]
      const beginnings = [slow.next(), fast.next()]
      await until(() => connections[0]?.status === 'ready')
      await publish([1, started(1)])
      await Promise.all(beginnings)
      const fastly = readUntil(fast, lastTurn(many.length + 1))
      const [one] = [slow.next()]
      for (const [at, event] of many.entries()) {
        rig.publisher.publish(chatId, 1, event)
        if (at % 100 === 0) await rig.publisher.flush(chatId)
      }
      expect(await fastly).to.have.length(many.length)
      const rest = [(await one).value, ...(await readUntil(slow, lastTurn(many.length + 1)))]
      expect(rest.map((event) => event.turn)).to.deep.equal(many.map((_, at) => at + 2))
    })

    it('is told to start anew when what it missed is no longer kept', async () => {
      const { read } = rig.process()
      const slow = read(chatId, { after: '0' })
      const beginning = slow.next()
      await until(() => connections[0]?.status === 'ready')
      await publish([1, started(1)])
      await beginning
      const waiting = slow.next()
      await publish(...many.map((event): [number, LiveEvent] => [1, event]))
      await waiting
      await rig.redis.xtrim(streamKey(prefix, chatId), 'MAXLEN', 1)
      rows.set(chatId, answered(1, 'Yes.'))
      const rest = await readUntil(slow, ({ type }) => type === 'run.finished')
      expect(rest.slice(-3).map(({ type }) => type)).to.deep.equal(['resync', 'message.finished', 'run.finished'])
    })
  })

  it('are polled for where one call can not wait for them all, over no connection of their own', async () => {
    const { read } = rig.process({ client: null })
    const readers = [chatId, 'other'].map((id) => read(id, { history: 'none' }))
    await joined(readers)
    const reading = readers.map((reader) => readSome(reader, 2))
    await publish([1, started(1)], [1, started(2)])
    rig.publisher.publish('other', 1, started(3))
    rig.publisher.publish('other', 1, started(4))
    const turns = (await Promise.all(reading)).map((events) =>
      events.map((event) => (event.type === 'run.started' ? event.turn : 0)),
    )
    expect(turns).to.deep.equal([
      [1, 2],
      [3, 4],
    ])
    expect(connections).to.have.length(0)
  })

  describe('that hear nothing', () => {
    it('learn from the rows that the turn has ended, and how, once', async () => {
      const { read } = rig.process({ silenceMs: 20 })
      rows.set(chatId, running(1))
      await publish([1, started(1)], [1, begun()], [1, text('Yes')])
      const reader = read(chatId)
      await readUntil({ [Symbol.asyncIterator]: () => ({ next: () => reader.next() }) }, (_, all) => all.length === 3)
      const waiting = reader.next()
      rows.set(chatId, answered(1, 'Yes.'))
      const events = [(await waiting).value, (await reader.next()).value]
      expect(events.map(({ type }) => type)).to.deep.equal(['message.finished', 'run.finished'])
      const next = reader.next()
      await publish([1, text('.')], [1, finished('Yes.')], [1, runFinished()], [2, started(2)])
      expect((await next).value).to.include({ type: 'run.started', turn: 2 })
      await reader.return()
    })

    it('learn it while Redis is away, too', async () => {
      const { read } = rig.process({ silenceMs: 20 })
      rows.set(chatId, running(1))
      const reader = read(chatId)
      expect((await reader.next()).value).to.include({ type: 'run.started' })
      const waiting = reader.next()
      await until(() => connections[0]?.status === 'ready')
      await rig.server.kill()
      try {
        rows.set(chatId, answered(1, 'Yes.'))
        expect((await waiting).value).to.include({ type: 'message.finished', text: 'Yes.' })
        await reader.return()
      } finally {
        await rig.server.restart()
      }
    })

    it('look at the rows once for all of them, and less often while the chat rests', async () => {
      const { read } = rig.process({ silenceMs: 50 })
      rows.set(chatId, answered(1, 'Yes.'))
      const readers = Array.from({ length: 20 }, () => read(chatId, { history: 'none' }))
      await joined(readers)
      const waiting = readers.map((reader) => reader.next())
      await until(() => rig.looks() === 2)
      await Promise.all(readers.map((reader) => reader.return()))
      await Promise.all(waiting)
    })
  })

  describe('when Redis is flushed', () => {
    it('go on without a word when they had heard everything', async () => {
      const { read } = rig.process()
      rows.set(chatId, running(1))
      await publish([1, started(1)], [1, begun()], [1, text('Once ')])
      const reader = read(chatId)
      const reading = readUntil(reader, ({ type }) => type === 'message.finished')
      await until(() => connections[0]?.status === 'ready')
      await publish([1, text('upon ')])
      // Whoever reads along shows that the others have read it, too.
      await readUntil(read(chatId), (_, all) => textOf(all) === 'Once upon ')
      await rig.redis.flushall()
      await publish([1, text('a time')], [1, finished('Once upon a time')])
      const events = await reading
      expect(textOf(events)).to.equal('Once upon a time')
      expect(events.map(({ type }) => type)).not.to.include('resync')
    })

    it('are told to start anew when a part is missing, and then get the answer whole', async () => {
      const { read } = rig.process()
      rows.set(chatId, running(1))
      await publish([1, started(1)], [1, begun()], [1, text('Once ')])
      const reading = readUntil(read(chatId), ({ type }) => type === 'message.finished')
      await until(() => connections[0]?.status === 'ready')
      // As if 4 to 8 had been flushed away before anyone read them.
      await rig.redis.xadd(streamKey(prefix, chatId), '*', ...entryFields(1, 9, text('a time')))
      await rig.redis.xadd(streamKey(prefix, chatId), '*', ...entryFields(1, 10, finished('Once upon a time')))
      const events = await reading
      const from = events.findIndex(({ type }) => type === 'resync')
      expect(from).to.be.above(0)
      expect(events.slice(from).map(({ type }) => type)).to.deep.equal([
        'resync',
        'run.started',
        'message.started',
        'text.delta',
        'message.finished',
      ])
    })

    it('are told to start anew when nothing more comes while the turn goes on', async () => {
      const { read } = rig.process({ silenceMs: 20 })
      rows.set(chatId, running(1))
      await publish([1, started(1)], [1, begun()], [1, text('Once ')])
      const reader = read(chatId)
      const reading = readUntil(reader, ({ type }) => type === 'resync')
      await until(() => rig.looks() > 0)
      await rig.redis.flushall()
      expect(textOf(await reading)).to.equal('Once ')
    })

    it('are told nothing when the stream only expired after its end', async () => {
      const { read } = rig.process({ silenceMs: 20 })
      rows.set(chatId, answered(1, 'Yes.'))
      await publish([1, started(1)], [1, runFinished()])
      const reader = read(chatId)
      const reading = readUntil(reader, ({ type }) => type === 'run.started')
      await until(() => rig.looks() > 0)
      await rig.redis.flushall()
      const looked = rig.looks()
      await until(() => rig.looks() > looked + 1)
      await publish([2, started(2)])
      expect((await reading).map(({ type }) => type)).to.deep.equal(['message.finished', 'run.finished', 'run.started'])
    })
  })
})
