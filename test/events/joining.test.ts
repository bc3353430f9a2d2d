import { expect } from 'chai'
import type { ChatEvent, LiveEvent } from '../../src/events/event.ts'
import { streamKey } from '../../src/events/keys.ts'
import type { EventsOptions } from '../../src/events/options.ts'
import type { EventReader } from '../../src/events/reader.ts'
import { chatId, useRig } from './rig.ts'
import { answered, messageOf, rowsOf, running } from './rows.ts'
import { begun, cancelled, finished, prefix, runFinished, started, text, textOf, until } from './support.ts'

const restarted: LiveEvent = { type: 'attempt.restarted', messageId: 'm2', replaces: 'm1' }
const failedAt = '2026-01-01T00:00:00.000Z'

const typesOf = (events: readonly ChatEvent[]) => events.map(({ type }) => type)

describe('joining a chat', () => {
  const rig = useRig()
  const { open, publish, rows } = rig

  /** Takes the next events of a reader that is known to have them. */
  async function take(reader: EventReader, count: number): Promise<ChatEvent[]> {
    const events: ChatEvent[] = []
    while (events.length < count) {
      const { value, done } = await reader.next()
      if (done === true) throw new Error(`The reader ended after ${typesOf(events).join(', ')}`)
      events.push(value)
    }
    return events
  }

  /** Takes events to the first of a type. */
  async function takeTo(reader: EventReader, last: ChatEvent['type']): Promise<ChatEvent[]> {
    const events = await take(reader, 1)
    while (events.at(-1)?.type !== last) events.push(...(await take(reader, 1)))
    return events
  }

  /** Takes events until they hold this text. */
  async function takeText(reader: EventReader, whole: string): Promise<ChatEvent[]> {
    const events: ChatEvent[] = []
    while (textOf(events) !== whole) events.push(...(await take(reader, 1)))
    return events
  }

  /** What a reader is told before the event that the test sends once it has its place. */
  async function toldBefore(options: EventsOptions): Promise<ChatEvent[]> {
    const reader = open(options)
    await reader.ready
    rig.publisher.publish(chatId, 0, { type: 'unqueued', queuedId: 'mark' })
    const events: ChatEvent[] = []
    for await (const event of reader) {
      if (event.type === 'unqueued') break
      events.push(event)
    }
    return events
  }

  describe('in the middle of an answer', () => {
    beforeEach(async () => {
      rows.set(chatId, running(1))
      await publish([1, started(1)], [1, begun()], [1, text('Once ')])
      await publish([1, text('upon ')])
    })

    it('gives its text from the first delta on, each once, and goes on', async () => {
      const reader = open()
      const events = await takeText(reader, 'Once upon ')
      await publish([1, text('a time')], [1, finished('Once upon a time')], [1, runFinished()])
      events.push(...(await takeTo(reader, 'run.finished')))
      expect(typesOf(events).filter((type) => type !== 'text.delta')).to.deep.equal([
        'run.started',
        'message.started',
        'message.finished',
        'run.finished',
      ])
      expect(textOf(events)).to.equal('Once upon a time')
      await reader.return()
    })

    it('gives nothing of it, only what comes, when no history is asked for', async () => {
      const reader = open({ history: 'none' })
      await reader.ready
      await publish([1, text('a time')])
      expect(textOf(await take(reader, 1))).to.equal('a time')
      await reader.return()
    })

    it('leaves it out when its beginning is no longer kept, and gives it whole at its end', async () => {
      await rig.redis.flushall()
      await publish([1, text('a time')])
      const reader = open()
      await reader.ready
      await publish([1, text(', ')], [1, finished('Once upon a time, ')], [1, runFinished()])
      const events = await takeTo(reader, 'run.finished')
      expect(typesOf(events)).to.deep.equal(['run.started', 'message.finished', 'run.finished'])
      await reader.return()
    })

    it('leaves it out when a part in the middle is missing', async () => {
      const entries = await rig.redis.xrange(streamKey(prefix, chatId), '-', '+')
      await publish([1, text('a ')])
      const [hole = ''] = entries.at(-1) ?? []
      await rig.redis.xdel(streamKey(prefix, chatId), hole)
      const reader = open()
      await reader.ready
      await publish([1, text('time')], [1, finished('Once upon a time')])
      // What was before the hole had been told by then.
      expect(textOf(await takeTo(reader, 'message.finished'))).to.equal('Once ')
      await reader.return()
    })

    it('gives the latest attempt alone when the answer began anew', async () => {
      await publish([1, restarted], [1, begun('m2')], [1, text('Two', 'm2')])
      const reader = open()
      const events = await take(reader, 3)
      expect(typesOf(events)).to.deep.equal(['run.started', 'message.started', 'text.delta'])
      expect(textOf(events)).to.equal('Two')
      await reader.return()
    })

    it('is not misled by what an overtaken run still sends', async () => {
      rows.set(chatId, running(2))
      const other = rig.publisherOf()
      other.publish(chatId, 2, started(1))
      other.publish(chatId, 2, restarted)
      other.publish(chatId, 2, begun('m2'))
      other.publish(chatId, 2, text('Two', 'm2'))
      await other.flush(chatId)
      await publish([1, text('zombie')], [1, begun('m9')], [1, text('zombie', 'm9')])
      expect(textOf(await toldBefore({}))).to.equal('Two')
    })

    it('keeps the text of a worker that died, until somebody begins anew', async () => {
      rows.set(chatId, rowsOf({ claimedBy: 'dead', claimToken: 1, claimedUntil: new Date(0) }))
      const reader = open({ silenceMs: 20 })
      await takeText(reader, 'Once upon ')
      const waiting = reader.next()
      await until(() => rig.looks() > 2)
      await publish([2, started(1)])
      expect((await waiting).value).to.include({ type: 'run.started', claimToken: 2 })
      await reader.return()
    })

    it('does not say twice what was committed and not yet sent when it looked', async () => {
      rows.set(chatId, answered(1, 'Once upon a time'))
      const reader = open()
      const events = await take(reader, 2)
      await publish([1, text('a time')], [1, finished('Once upon a time')], [1, runFinished()], [2, started(2)])
      events.push(...(await take(reader, 1)))
      expect(typesOf(events)).to.deep.equal(['message.finished', 'run.finished', 'run.started'])
      await reader.return()
    })
  })

  describe('that rests', () => {
    it('tells the last turn from its rows, and ends with an id to go on from', async () => {
      rows.set(chatId, answered(3, 'Yes.'))
      await publish([3, started(1)], [3, begun()], [3, text('Yes.')], [3, finished('Yes.')], [3, runFinished()])
      const events = await toldBefore({})
      expect(events).to.deep.equal([
        {
          type: 'message.finished',
          messageId: 'm1',
          text: 'Yes.',
          finishReason: 'stop',
          id: '0-0',
          chatId,
          claimToken: 3,
        },
        { type: 'run.finished', messageId: 'm1', id: events.at(-1)?.id, chatId, claimToken: 3 },
      ])
      expect(await toldBefore({ after: events.at(-1)?.id })).to.deep.equal([])
      expect(typesOf(await take(open({ after: events[0]?.id }), 3))).to.deep.equal([
        'resync',
        'message.finished',
        'run.finished',
      ])
    })

    it('tells nothing of the past when no history is asked for, nor after a silence', async () => {
      rows.set(chatId, answered(3, 'Yes.'))
      const reader = open({ history: 'none', silenceMs: 20 })
      await until(() => rig.connections.length === 0)
      const waiting = reader.next()
      await until(() => rig.looks() > 1)
      await publish([4, started(2)])
      expect((await waiting).value).to.include({ type: 'run.started', turn: 2 })
      await reader.return()
    })

    it('tells calls, decisions, results and what waits in the queue', async () => {
      const call = (id: string, approval: 'denied' | 'pending' | null, resultId: string | null) => ({
        id,
        chatId,
        messageId: 'm1',
        resultId,
        position: 0,
        toolCallId: `call_${id}`,
        providerCallId: null,
        name: 'look',
        namespace: null,
        arguments: { at: id },
        malformedArguments: null,
        thoughtSignature: null,
        approval,
        remote: false,
        offered: true,
        claimedBy: null,
        claimedUntil: null,
        startedAt: null,
        mcpState: null,
        editedArguments: null,
        decidedBy: null,
        decisionReason: null,
        askedAt: null,
        expiresAt: null,
        createdAt: new Date(0),
        updatedAt: new Date(0),
      })
      const toolCalls = [call('a', 'denied', 't1'), call('b', 'pending', null)]
      const read = rowsOf({ claimToken: 2, parked: true }, [
        messageOf({ role: 'user', content: 'Look', id: 'u1' }),
        messageOf({ role: 'assistant', content: null, finishReason: 'tool_calls', toolCalls }),
        messageOf({ role: 'tool', content: 'no', id: 't1', outcome: 'denied' }),
      ])
      const queued = {
        id: 'q1',
        chatId,
        position: 0,
        content: 'Later',
        attachments: null,
        steer: true,
        owner: null,
        ownerKey: null,
        createdAt: new Date(0),
      }
      rows.set(chatId, { ...read, queue: [queued] })
      const events = await toldBefore({})
      expect(typesOf(events)).to.deep.equal([
        'message.finished',
        'tool_call.requested',
        'tool_call.requested',
        'approval.decided',
        'approval.requested',
        'tool.result',
        'queued',
        'run.waiting',
      ])
      expect(events[5]).to.include({ toolCallId: 'call_a', name: 'look', outcome: 'denied', content: 'no' })
      expect(events[7]).to.have.deep.property('toolCalls', [
        { toolCallId: 'call_b', name: 'look', arguments: { at: 'b' } },
      ])
    })

    it('tells how it failed or was cancelled', async () => {
      const failure = { code: 'provider.server', message: 'Down', turn: 1, at: failedAt }
      rows.set(chatId, rowsOf({ claimToken: 1, failure }))
      expect((await toldBefore({}))[0]).to.deep.include({ type: 'run.failed', failure, retryInMs: null })
      rows.set(chatId, rowsOf({ claimToken: 1, cancelledTurn: 1 }))
      expect(typesOf(await toldBefore({}))).to.deep.equal(['run.cancelled'])
      rows.set(chatId, rowsOf({ claimToken: 1 }, [messageOf({ role: 'user', content: 'And?' })]))
      expect(typesOf(await toldBefore({}))).to.deep.equal([])
    })
  })

  it('does not take the end of the turn before for that of the one that is wanted', async () => {
    await publish([1, started(1)], [1, finished('Yes.')], [1, runFinished()])
    rows.set(chatId, rowsOf({ claimToken: 1, turn: 2, wantedAt: new Date() }))
    expect(typesOf(await toldBefore({}))).to.deep.equal([])
  })

  it('tells of a failure that is about to be mended', async () => {
    const failure = { code: 'provider.server', message: 'Down', turn: 1, at: failedAt }
    await publish([1, started(1)], [1, begun()], [1, { type: 'run.failed', failure, retryInMs: 5_000 }])
    rows.set(chatId, rowsOf({ claimToken: 1, wantedAt: new Date() }))
    expect(typesOf(await toldBefore({}))).to.deep.equal(['run.failed'])
  })

  describe('behind an event that is not there', () => {
    const unknown = { trimmed: '5-1', newer: '9999999999999-0', 'made from rows': '0-0' }

    for (const [name, after] of Object.entries(unknown)) {
      it(`says so first, then tells what anyone who joins is told: ${name} (B83)`, async () => {
        rows.set(chatId, running(1))
        await publish([1, started(1)], [1, begun()], [1, text('Once ')])
        const reader = open({ after })
        await publish([1, text('upon')])
        const events = await takeText(reader, 'Once upon')
        expect(typesOf(events).slice(0, 3)).to.deep.equal(['resync', 'run.started', 'message.started'])
        expect(textOf(events)).to.equal('Once upon')
        await reader.return()
      })
    }
  })

  it('goes on behind a given event with each one once, while they are being sent (B83)', async () => {
    rows.set(chatId, running(1))
    await publish([1, started(1)], [1, begun()], [1, text('1 ')])
    await publish([1, text('2 ')])
    const all = await take(open({ after: '0' }), 4)
    const reader = open({ after: all[2]?.id })
    const sending = publish([1, text('3 ')], [1, text('4 ')], [1, runFinished()])
    const events: ChatEvent[] = []
    for await (const event of reader) {
      events.push(event)
      if (event.type === 'run.finished') break
    }
    await sending
    expect(textOf(events)).to.equal('2 3 4 ')
  })

  it('ends when the chat does not exist, and when it is deleted', async () => {
    rows.set(chatId, null)
    expect(await open().next()).to.deep.equal({ done: true, value: undefined })
    rows.set(chatId, running(1))
    const reader = open({ after: '0', silenceMs: 20 })
    const waiting = reader.next()
    await reader.ready
    rows.set(chatId, null)
    expect(await waiting).to.deep.equal({ done: true, value: undefined })
  })

  it('drops a second cancel of nobody, but tells both', async () => {
    await publish([0, cancelled], [0, cancelled])
    expect(typesOf(await take(open({ after: '0' }), 2))).to.deep.equal(['run.cancelled', 'run.cancelled'])
  })
})
