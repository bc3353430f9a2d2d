import { expect } from 'chai'
import type { ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { type ContextPressure, type DecideOptions, decide, type Snapshot } from '../../src/loop/decide.ts'
import { storedCall } from '../tools/rows.ts'
import { message } from './support.ts'

const call = (id: string, given: Partial<ToolCallRow> = {}) => storedCall({ id, ...given })
const done = (id: string) => call(id, { resultId: `result of ${id}` })
const pending = (id: string) => call(id, { approval: 'pending' })

const system = message('system')
const user = message('user')
const tool = message('tool')
const answer = message('assistant', { content: 'answer' })
const blank = message('assistant', { content: ' \n' })
const asks = (...toolCalls: ToolCallRow[]) => message('assistant', { toolCalls })

interface Line {
  readonly when: string
  readonly transcript: readonly TranscriptMessage[]
  /** Turn 7 runs unless it says otherwise. */
  readonly chat?: Partial<Snapshot['chat']>
  readonly queued?: { readonly steering: number; readonly total: number }
  readonly reconsider?: DecideOptions['reconsider']
  readonly context?: ContextPressure
  /** The move, calls by their ids. */
  readonly move: string
}

const steering = { steering: 1, total: 2 }
const nextTurn = { steering: 0, total: 1 }
const cancel = { cancelTurn: 7 }
const settled = { cancelledTurn: 7 }
const spent = { rounds: 3 }
const summary = message('assistant', { content: 'summary', summaryThrough: 0 })
/** Over the threshold of 800 and under the limit of 1,000. */
const crowded: ContextPressure = { tokens: 900, threshold: 800, limit: 1_000, keep: 1, spent: false }

const table: Record<string, readonly Line[]> = {
  'a cancel of this turn waits, the turn has work': [
    { when: 'an answer is owed', transcript: [user], chat: cancel, move: 'settle-cancelled' },
    {
      when: 'calls could run',
      transcript: [user, asks(done('a'), call('b'))],
      chat: cancel,
      move: 'settle-cancelled b',
    },
    { when: 'all calls wait', transcript: [user, asks(pending('a'))], chat: cancel, move: 'settle-cancelled a' },
    {
      when: 'an earlier round was abandoned, it is closed too',
      transcript: [user, asks(call('a')), user, asks(call('b'))],
      chat: cancel,
      move: 'settle-cancelled a b',
    },
    {
      when: 'the model is owed the results',
      transcript: [user, asks(done('a')), tool],
      chat: cancel,
      move: 'settle-cancelled',
    },
    { when: 'rounds are spent as well', transcript: [user], chat: { ...cancel, ...spent }, move: 'settle-cancelled' },
    { when: 'messages wait', transcript: [user], chat: cancel, queued: steering, move: 'settle-cancelled' },
    { when: 'it was for an earlier turn', transcript: [user], chat: { cancelTurn: 6 }, move: 'generate' },
    { when: 'the turn is answered', transcript: [user, answer], chat: cancel, move: 'rest' },
    {
      when: 'the turn is answered and a message waits',
      transcript: [user, answer],
      chat: cancel,
      queued: nextTurn,
      move: 'take-queued all, new turn',
    },
  ],
  'open round, a call can make progress': [
    { when: 'nothing has run yet', transcript: [user, asks(call('a'), call('b'))], move: 'run-tools a b' },
    { when: 'some have results', transcript: [user, asks(done('a'), call('b')), tool], move: 'run-tools b' },
    { when: 'others wait for a decision', transcript: [user, asks(pending('a'), call('b'))], move: 'run-tools b' },
    { when: 'a decision was made', transcript: [user, asks(call('a', { approval: 'approved' }))], move: 'run-tools a' },
    { when: 'it was refused', transcript: [user, asks(call('a', { approval: 'denied' }))], move: 'run-tools a' },
    {
      when: 'this run may look at a waiting call again',
      transcript: [user, asks(pending('a'), pending('b'))],
      reconsider: ({ id }) => id === 'b',
      move: 'run-tools b',
    },
    {
      when: 'a steering message waits, which may not come between',
      transcript: [user, asks(call('a'))],
      queued: steering,
      move: 'run-tools a',
    },
    {
      when: 'the rounds are used up, for its results are owed',
      transcript: [user, asks(call('a'))],
      chat: spent,
      move: 'run-tools a',
    },
    { when: 'system messages follow', transcript: [user, asks(call('a')), system], move: 'run-tools a' },
    { when: 'a blank row follows', transcript: [user, asks(call('a')), blank], move: 'run-tools a' },
  ],
  'open round, every call waits on something outside': [
    { when: 'for a decision', transcript: [user, asks(done('a'), pending('b'), pending('c')), tool], move: 'park b c' },
    {
      when: 'for what it paused on',
      transcript: [user, asks(call('a', { mcpState: { task: { id: 't1' } } }))],
      move: 'park a',
    },
    { when: 'messages wait: they stay', transcript: [user, asks(pending('a'))], queued: steering, move: 'park a' },
  ],
  'an answer is owed but the turn was cancelled': [
    { when: 'nothing is queued', transcript: [user], chat: settled, move: 'rest' },
    { when: 'after a round', transcript: [user, asks(done('a')), tool], chat: settled, move: 'rest' },
    {
      when: 'a message is queued',
      transcript: [user],
      chat: settled,
      queued: nextTurn,
      move: 'take-queued all, new turn',
    },
    {
      when: 'a steering message is queued: it has no turn to join',
      transcript: [user],
      chat: settled,
      queued: steering,
      move: 'take-queued all, new turn',
    },
    {
      when: 'an earlier turn was cancelled, not this one',
      transcript: [user],
      chat: { cancelledTurn: 6 },
      move: 'generate',
    },
  ],
  'a steering message waits': [
    { when: 'before the first request', transcript: [user], queued: steering, move: 'take-queued steering' },
    {
      when: 'between two requests',
      transcript: [user, asks(done('a')), tool],
      queued: steering,
      move: 'take-queued steering',
    },
    {
      when: 'the rounds are used up',
      transcript: [user, asks(done('a')), tool],
      queued: steering,
      chat: spent,
      move: 'take-queued steering',
    },
    { when: 'only messages for later turns wait', transcript: [user], queued: nextTurn, move: 'generate' },
  ],
  "the turn's tool rounds are used up": [
    {
      when: 'by as many rounds as allowed',
      transcript: [user, asks(done('a')), tool],
      chat: spent,
      move: 'stop-rounds 3',
    },
    { when: 'by more', transcript: [user, asks(done('a')), tool], chat: { rounds: 4 }, move: 'stop-rounds 3' },
    { when: 'one is left', transcript: [user, asks(done('a')), tool], chat: { rounds: 2 }, move: 'generate' },
  ],
  'the context is over the threshold of compaction': [
    { when: 'and there is a history', transcript: [user, answer, user], context: crowded, move: 'compact, keep 1' },
    {
      when: 'exactly',
      transcript: [user, answer, user],
      context: { ...crowded, tokens: 800 },
      move: 'compact, keep 1',
    },
    {
      when: 'keeping so much that nothing is left: nothing is kept',
      transcript: [user, answer, user],
      context: { ...crowded, keep: 9 },
      move: 'compact, keep 0',
    },
    {
      when: 'still, after one summary',
      transcript: [user, answer, user],
      chat: { compactions: 1 },
      context: crowded,
      move: 'compact, keep 0',
    },
    {
      when: 'still, after two (B65)',
      transcript: [user, answer, user],
      chat: { compactions: 2 },
      context: crowded,
      move: 'generate',
    },
    {
      when: 'and over the limit, after two (B65)',
      transcript: [user, answer, user],
      chat: { compactions: 2 },
      context: { ...crowded, tokens: 1_000 },
      move: 'stop-context 1000 of 1000',
    },
    {
      when: 'and a summary has failed',
      transcript: [user, answer, user],
      context: { ...crowded, spent: true },
      move: 'generate',
    },
    {
      when: 'by the running turn alone',
      transcript: [user, asks(done('a')), tool],
      context: crowded,
      move: 'generate',
    },
    {
      when: 'by the running turn alone, and over the limit',
      transcript: [user],
      context: { ...crowded, tokens: 1_100 },
      move: 'stop-context 1100 of 1000',
    },
    {
      when: 'and a steering message waits',
      transcript: [user, answer, user],
      queued: steering,
      context: crowded,
      move: 'take-queued steering',
    },
    { when: 'and nothing is asked', transcript: [user, answer], context: crowded, move: 'rest' },
  ],
  'there is a summary, which is no message': [
    { when: 'it comes last on an answered turn', transcript: [user, answer, summary], move: 'rest' },
    { when: 'it comes last on an open turn', transcript: [user, summary], move: 'generate' },
    { when: 'all else was left out', transcript: [system, summary], move: 'rest' },
    { when: 'it follows an open round', transcript: [user, asks(call('a')), summary], move: 'run-tools a' },
  ],
  'otherwise the model is asked': [
    { when: 'by a user', transcript: [system, user], move: 'generate' },
    { when: 'about results', transcript: [user, asks(done('a')), tool], move: 'generate' },
    { when: 'system messages follow', transcript: [user, system], move: 'generate' },
    { when: 'a blank row follows', transcript: [user, blank], move: 'generate' },
    {
      when: 'a round was abandoned: its calls are closed first',
      transcript: [user, asks(call('a'), done('b')), tool, user],
      move: 'generate a',
    },
    { when: 'an answered round has lost its result rows', transcript: [user, asks(done('a'))], move: 'generate' },
  ],
  'a message waits': [
    { when: 'for the next turn', transcript: [user, answer], queued: nextTurn, move: 'take-queued all, new turn' },
    {
      when: 'to steer a turn that is over',
      transcript: [user, answer],
      queued: steering,
      move: 'take-queued all, new turn',
    },
    { when: 'on an empty chat', transcript: [], queued: steering, move: 'take-queued all, new turn' },
    {
      when: 'although the last turn used its rounds up',
      transcript: [user, answer],
      queued: nextTurn,
      chat: spent,
      move: 'take-queued all, new turn',
    },
  ],
  nothing: [
    { when: 'the turn is answered', transcript: [user, answer], move: 'rest' },
    { when: 'the chat is empty', transcript: [], move: 'rest' },
    { when: 'there are only system messages', transcript: [system], move: 'rest' },
    { when: 'there is only a blank row', transcript: [blank], move: 'rest' },
    { when: 'system messages follow the answer', transcript: [user, answer, system], move: 'rest' },
  ],
}

function spell(move: ReturnType<typeof decide>): string {
  switch (move.kind) {
    case 'settle-cancelled':
      return [move.kind, ...move.open.map(({ id }) => id)].join(' ')
    case 'run-tools':
      return [move.kind, ...move.calls.map(({ id }) => id)].join(' ')
    case 'park':
      return [move.kind, ...move.waiting.map(({ id }) => id)].join(' ')
    case 'generate':
      return [move.kind, ...move.abandoned.map(({ id }) => id)].join(' ')
    case 'take-queued':
      return `${move.kind} ${move.which}${move.startsTurn ? ', new turn' : ''}`
    case 'stop-rounds':
      return `${move.kind} ${move.limit}`
    case 'compact':
      return `${move.kind}, keep ${move.keep}`
    case 'stop-context':
      return `${move.kind} ${move.tokens} of ${move.limit}`
    default:
      return move.kind
  }
}

describe('The next move', () => {
  for (const [line, cases] of Object.entries(table)) {
    describe(line, () => {
      for (const { when, transcript, chat, queued, reconsider, context, move } of cases) {
        it(`${when}: ${move} (R8)`, () => {
          const snapshot: Snapshot = {
            chat: {
              turn: 7,
              cancelTurn: null,
              cancelledTurn: null,
              rounds: 0,
              compactions: 0,
              transferTo: null,
              ...chat,
            },
            queued: queued ?? { steering: 0, total: 0 },
            transcript,
          }
          const before = structuredClone(snapshot)
          const options = { roundLimit: 3, reconsider: reconsider ?? (() => false), context: context ?? null }
          expect(spell(decide(snapshot, options))).to.equal(move)
          expect(spell(decide(snapshot, options)), 'asked again').to.equal(move)
          expect(snapshot, 'rows are only read').to.eql(before)
        })
      }
    })
  }

  it('names the message whose calls run, which is not always the last', () => {
    const round = asks(done('a'), call('b'))
    const transcript = [user, round, tool, system]
    const snapshot = {
      chat: { turn: 1, cancelTurn: null, cancelledTurn: null, rounds: 0, compactions: 0, transferTo: null },
      queued: { steering: 0, total: 0 },
    }
    const move = decide({ ...snapshot, transcript }, { roundLimit: 3, reconsider: () => false, context: null })
    expect(move).to.have.property('message', round)
  })
})
