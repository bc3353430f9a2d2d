import { expect } from 'chai'
import fc from 'fast-check'
import type { LiveEvent } from '../../src/events/event.ts'
import { addWaiting, joinWaiting, type WaitingEvent } from '../../src/events/waiting.ts'
import { cancelled, text, thinking } from './support.ts'

type Sent = Pick<WaitingEvent, 'claimToken' | 'event'>

function waitingOf(events: readonly Sent[], limit = 1000): Sent[] {
  const waiting: WaitingEvent[] = []
  for (const { claimToken, event } of events) {
    if (!joinWaiting(waiting, claimToken, event)) addWaiting(waiting, { claimToken, number: 1, event }, limit)
  }
  return waiting.map(({ claimToken, event }) => ({ claimToken, event }))
}

const by = (claimToken: number) => (event: LiveEvent) => ({ claimToken, event })

describe('events that wait to be sent', () => {
  it('joins deltas of one message, and nothing else', () => {
    const waiting = waitingOf([
      ...[text('a'), text('b'), thinking('c'), text('d'), text('e', 'm2'), cancelled, text('f', 'm2')].map(by(1)),
      ...[text('g', 'm2'), text('h', 'm2')].map(by(2)),
    ])
    expect(waiting).to.deep.equal([
      ...[text('ab'), thinking('c'), text('d'), text('e', 'm2'), cancelled, text('f', 'm2')].map(by(1)),
      by(2)(text('gh', 'm2')),
    ])
  })

  it('says the same in the same order, whatever comes', () => {
    const event = fc.oneof(
      fc.tuple(fc.string(), fc.constantFrom('m1', 'm2')).map(([part, id]) => text(part, id)),
      fc.tuple(fc.string(), fc.constantFrom('m1', 'm2')).map(([part, id]) => thinking(part, id)),
      fc.constant(cancelled),
    )
    const letters = ({ claimToken, event }: Sent) =>
      'text' in event && typeof event.text === 'string'
        ? [...event.text].map((letter) => ({ claimToken, event: { ...event, text: letter } }))
        : [{ claimToken, event }]
    fc.assert(
      fc.property(fc.array(fc.record({ claimToken: fc.constantFrom(1, 2), event })), (events) => {
        expect(waitingOf(events).flatMap(letters)).to.deep.equal(events.flatMap(letters))
      }),
    )
  })

  it('keeps the number of the entry that a delta joins', () => {
    const waiting: WaitingEvent[] = [{ ...by(1)(text('a')), number: 7 }]
    expect(joinWaiting(waiting, 1, text('b'))).to.equal(true)
    expect(waiting).to.deep.equal([{ ...by(1)(text('ab')), number: 7 }])
  })

  it('drops the oldest delta first when there is too much', () => {
    const events = [text('old', 'm1'), cancelled, text('new', 'm2'), cancelled].map(by(1))
    expect(waitingOf(events, 3)).to.deep.equal([cancelled, text('new', 'm2'), cancelled].map(by(1)))
    expect(waitingOf([...events, by(2)(cancelled)], 2).map(({ claimToken }) => claimToken)).to.deep.equal([1, 2])
  })

  it('does not let one entry grow without end', () => {
    const waiting = waitingOf(
      Array.from({ length: 10_000 }, () => by(1)(text('0123456789'))),
      5,
    )
    expect(waiting).to.have.length(5)
    expect(JSON.stringify(waiting).length).to.be.below(25_000)
  })
})
