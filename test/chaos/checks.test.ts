import { expect } from 'chai'
import type { JournalEntry } from '../../src/testing/crashes/journal.ts'
import type { Said } from './book.ts'
import type { Evidence, Rule } from './evidence.ts'
import { madeUp, type Turn } from './made-up.ts'
import { percentile, recoveryTimes } from './recovery.ts'
import { violationsOf } from './violations.ts'

const rulesOf = (evidence: Evidence): Rule[] => [...new Set(violationsOf(evidence).map(({ rule }) => rule))]
const textOf = (evidence: Evidence): string =>
  violationsOf(evidence)
    .map(({ what }) => what)
    .join('\n')
const turns: readonly Turn[] = [
  { question: 'm1', calls: ['quick', 'once'] },
  { question: 'm2', calls: [] },
]
const whole = (change: Parameters<typeof madeUp>[1] = {}) => madeUp(turns, change)

describe('The checks of a chaos run', () => {
  it('find nothing in a run that went well (E162)', () => {
    expect(violationsOf(whole())).to.eql([])
  })

  describe('of messages', () => {
    const other = (more: Partial<Said>): Said => ({
      ...{ chatId: 'chat', text: 'm3', steer: null, begun: 90, ended: 91, heard: 'accepted', unqueued: 'no' },
      ...more,
    })

    it('miss one that was accepted (E162)', () => {
      const evidence = whole({ said: [other({})] })
      expect(rulesOf(evidence)).to.eql(['message'])
      expect(textOf(evidence)).to.equal('"m3" was accepted, and is there 0 times.')
    })

    it('do not ask for one that nobody was told of, that was refused or taken back (E162)', () => {
      const said = [other({ heard: 'unknown' }), other({ heard: 'refused' }), other({ unqueued: 'yes' })]
      expect(violationsOf(whole({ said }))).to.eql([])
    })

    it('find one that is there twice, or that nobody said (E162)', () => {
      expect(textOf(madeUp([...turns, { question: 'm2', calls: [] }]))).to.include(
        '"m2" was accepted, and is there 2 times.',
      )
      const evidence = whole()
      expect(textOf({ ...evidence, book: { ...evidence.book, said: [] } })).to.include(
        '"m1" is there, and nobody said it.',
      )
    })

    it('find one that overtook another in the queue (E162)', () => {
      const evidence = whole()
      const said = evidence.book.said.map((one) => ({
        ...one,
        steer: true,
        begun: 100 - one.begun,
        ended: 101 - one.begun,
      }))
      expect(textOf({ ...evidence, book: { ...evidence.book, said } })).to.include('"m1" came before "m2"')
    })

    it('find a chat that is at rest and has something left to do (E162)', () => {
      expect(textOf(whole({ row: { wantedAt: new Date() } }))).to.include('it is wanted')
      expect(textOf(whole({ row: { claimedBy: 'somebody' } }))).to.include('it is claimed')
      expect(textOf(whole({ row: { cancelTurn: 2 } }))).to.include('its cancel was not met')
      expect(textOf(whole({ queued: ['m1'] }))).to.include('messages wait in its queue')
      expect(textOf(whole({ without: { answer: 'm2' } }))).to.include('an answer is owed')
    })

    it('take a recorded failure for an end (E162)', () => {
      const failure = { code: 'error', message: 'it failed', turn: 2, at: '' }
      expect(violationsOf(whole({ without: { answer: 'm2' }, row: { failure } }))).to.eql([])
    })
  })

  describe('of claims and answers', () => {
    it('find a gap, a result of no call, and an answer behind another (E162)', () => {
      expect(textOf(whole({ row: { nextPosition: 9 } }))).to.include('The next position does not follow')
      expect(textOf(whole({ unlinked: 'once' }))).to.include('is not that of one call')
      expect(textOf(whole({ doubled: 'm2' }))).to.include('is followed by another')
    })

    it('find an answer that was made for another transcript (E162)', () => {
      expect(textOf(whole({ askedBefore: 'm2' }))).to.include('was made for another transcript')
    })

    it('find a commit of an earlier claim behind one of a later claim (E162)', () => {
      expect(textOf(whole({ tokens: { m1: 7, m2: 6 } }))).to.include('Claim 6 committed position')
    })

    it('find an answer that was asked for again, and let a lost claim ask in vain (E162)', () => {
      expect(rulesOf(whole({ again: { question: 'm2', token: 3 } }))).to.include('answer')
      expect(rulesOf(whole({ again: { question: 'm2', token: 0 } }))).to.eql([])
    })
  })

  describe('of tools', () => {
    const twice = (tool: string, more: Partial<Parameters<typeof madeUp>[1]> = {}) =>
      madeUp([{ question: 'm1', calls: [tool] }], { executedAgain: tool, ...more })
    const freeze = { worker: 'worker-1', from: 1_000, to: 9_000_000, held: new Map() }

    it('find a second execution where nothing had happened (E163)', () => {
      expect(textOf(twice('quick'))).to.include('nothing had happened to worker-1')
    })

    it('let a call run again whose process died, stood still or was cut off from the database (E163)', () => {
      const tally = { deaths: [], freezes: [], outages: [] }
      expect(violationsOf(twice('quick', { tally: { ...tally, freezes: [freeze] } }))).to.eql([])
      expect(violationsOf(twice('quick', { tally: { ...tally, outages: [freeze] } }))).to.eql([])
      expect(violationsOf(twice('quick', { diedAt: 5_000 }))).to.eql([])
    })

    it('never let a call run again whose onInterrupted is fail (E163)', () => {
      expect(textOf(twice('once', { diedAt: 5_000 }))).to.include(`although onInterrupted is 'fail'`)
    })

    it('find a gated call that ran though nobody allowed it, one after it was denied, and one by another key (E163)', () => {
      const gated: readonly Turn[] = [{ question: 'm1', calls: ['gated'] }]
      expect(textOf(madeUp(gated))).to.include('nobody allowed it')
      const allowed = { chatId: 'chat', callId: 'call-m1-gated', approved: true, at: 100, heard: 'accepted' } as const
      expect(violationsOf(madeUp(gated, { decisions: [allowed] }))).to.eql([])
      const denied = (at: number) => ({ decisions: [allowed, { ...allowed, approved: false, at }], denied: 'gated' })
      expect(textOf(madeUp(gated, denied(500)))).to.include('after it was denied')
      expect(violationsOf(madeUp(gated, denied(5_000))), 'denied once it was interrupted').to.eql([])
      const evidence = whole()
      const ledger = evidence.ledger.map((entry): JournalEntry => ({ ...entry, key: `${entry.key}-again` }))
      expect(textOf({ ...evidence, ledger })).to.include('which is that of no call')
    })
  })

  it('find a request without an entry, and an entry that is open (E164)', () => {
    const evidence = whole()
    const [chat] = evidence.chats
    if (chat === undefined) throw new Error('there is no chat')
    const open = chat.usages.map((usage) => ({ ...usage, status: 'pending' as const }))
    expect(textOf({ ...evidence, chats: [{ ...chat, usages: open }] })).to.include('is still open')
    const later = chat.usages.slice(1)
    expect(rulesOf({ ...evidence, chats: [{ ...chat, usages: later }] })).to.include('usage')
  })
})

describe('The time to recover', () => {
  const held = new Map([['chat', 3]])
  const take = (token: number, at: number) => ({ chatId: 'chat', token, worker: 'worker-2', at })

  it('is from the death or the stop of a holder to the next take of its chat (E161)', () => {
    const tally = {
      deaths: [{ worker: 'worker-1', at: 1_000, held }],
      freezes: [{ worker: 'worker-1', from: 500, to: 3_000, held }],
      outages: [],
    }
    expect(recoveryTimes({ tally, takes: [take(3, 100), take(4, 2_500)] })).to.eql([1_500, 2_000])
    expect(recoveryTimes({ tally, takes: [take(3, 100)] })).to.eql([])
  })

  it('is told by percentiles (E161)', () => {
    const times = Array.from({ length: 100 }, (_, at) => at)
    expect([percentile(times, 0.5), percentile(times, 0.99), percentile([], 0.5)]).to.eql([50, 99, null])
  })
})
