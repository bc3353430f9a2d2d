import { expect } from 'chai'
import { problemsOf, type RunFacts, usualOf } from '../../../src/testing/crashes/invariants.ts'
import type { ToolExecution } from '../../../src/testing/index.ts'

type State = RunFacts['final']['chats'][number]
type Message = State['messages'][number]
type Usage = RunFacts['final']['usages'][number]

const call = (more: object = {}) => ({ id: 'key', name: 'refund', startedAt: null, resultId: 'm2', ...more })
const message = (position: number, role: string, more: object = {}): Message =>
  ({
    id: `m${position}`,
    position,
    role,
    content: role,
    toolCalls: [],
    summaryThrough: null,
    ...more,
  }) as unknown as Message
const usage = (more: object = {}): Usage =>
  ({ model: 'scripted', status: 'succeeded', messageId: 'm', ...more }) as unknown as Usage
const state = (messages: readonly Message[], row: object = {}, queued = 0): State => ({
  row: { nextPosition: messages.length, claimedBy: null, wantedAt: null, ...row } as unknown as State['row'],
  messages,
  queued,
})
const round = (resultOf: object = {}) => [
  message(0, 'user'),
  message(1, 'assistant', { toolCalls: [call(resultOf)] }),
  message(2, 'tool'),
  message(3, 'assistant'),
]
const executed = (more: object = {}): ToolExecution => ({
  tool: 'refund',
  key: 'key',
  chatId: 'c',
  process: 'next',
  returned: true,
  ...more,
})
const request = (text: string) =>
  ({ model: 'scripted', messages: [{ role: 'user', content: text }] }) as unknown as RunFacts['requests'][number]

const good: RunFacts = {
  end: 'answered',
  atDeath: null,
  final: { chats: [state(round())], usages: [usage(), usage()] },
  executions: [executed()],
  requests: [request('a'), request('b')],
}
const usual = usualOf(good)
/** As it was when the process died in the middle of the call. */
const cutOff = {
  chats: [state(round({ startedAt: new Date(), resultId: null }).slice(0, 2))],
  usages: [usage()],
}
const problems = (more: Partial<RunFacts>, once: readonly string[] = []) =>
  problemsOf({ ...good, ...more }, usual, once)
const final = (messages: readonly Message[], row: object = {}, queued = 0) => ({
  final: { chats: [state(messages, row, queued)], usages: [] },
})

describe('What must hold after a crash', () => {
  it('holds for a whole turn, with or without a death (E111)', () => {
    expect(problemsOf(good, null, [])).to.eql([])
    expect(problems({})).to.eql([])
    expect(problems({ end: 'failed' })).to.eql([])
    expect(problems({ end: 'cancelled' })).to.eql([])
  })

  for (const [name, more, pattern] of [
    ['a turn that waits', { end: 'waiting' }, /waits for a decision/],
    ['a turn without an end', { end: 'stuck' }, /did not end within/],
    [
      'a call without a result',
      final([...round({ resultId: null }).slice(0, 2), message(2, 'assistant')]),
      /refund has no result/,
    ],
    [
      'a result without a call',
      final([message(0, 'user'), message(1, 'tool'), message(2, 'assistant')]),
      /not that of one call/,
    ],
    [
      'a result elsewhere',
      final([
        message(0, 'user'),
        message(1, 'assistant', { toolCalls: [call({ resultId: 'm3' })] }),
        message(2, 'user'),
        message(3, 'tool'),
      ]),
      /not behind its round/,
    ],
    ['a second answer', final([...round(), message(4, 'assistant')]), /followed by another/],
    [
      'a message that is there twice',
      final([...round(), message(4, 'user', { id: 'm0' })]),
      /there twice|transcript twice/,
    ],
    ['a gap', final([message(0, 'user'), message(2, 'assistant')]), /Position 1/],
    ['a position too far on', final(round(), { nextPosition: 9 }), /next position/],
    [
      'a question that is gone',
      final([message(0, 'user', { content: 'else' }), ...round().slice(1)]),
      /other questions/,
    ],
    ['a claim', final(round(), { claimedBy: 'x' }), /still claimed/],
    ['a wish', final(round(), { wantedAt: new Date() }), /still wanted/],
    ['a queue', final(round(), {}, 2), /holds 2 messages/],
    [
      'an open usage entry',
      { final: { ...good.final, usages: [usage({ status: 'pending' })] } },
      /still written down as under way/,
    ],
    [
      'a request made twice',
      { requests: [request('a'), request('a')] },
      /asked again.*1 requests too many, of which the crash explains 0/,
    ],
    ['an execution of no call', { executions: [executed({ key: 'other' })] }, /that of no call/],
    ['an execution too many', { executions: [executed(), executed()] }, /2 times.*no crash cut it off/],
    [
      'two executions too many after a crash',
      { atDeath: cutOff, executions: [executed(), executed(), executed()] },
      /3 times.*no crash cut it off/,
    ],
  ] satisfies [string, Partial<RunFacts>, RegExp][]) {
    it(`does not for ${name} (E111)`, () => {
      expect(problems(more).join('\n')).to.match(pattern)
    })
  }

  it('allows one more execution of a call that the crash cut off, but not where it is never to run again (E112)', () => {
    const twice = { atDeath: cutOff, executions: [executed({ process: 'killed' }), executed()] }
    expect(problems(twice)).to.eql([])
    expect(problems(twice, ['refund']).join()).to.match(
      /2 times under the key key, although its onInterrupted is 'fail'/,
    )
    const stored = { ...twice, atDeath: good.final }
    expect(problems(stored).join()).to.match(/2 times/)
  })

  it('allows the request to be made again whose answer was not stored (E111)', () => {
    const open = { chats: [state([message(0, 'user')])], usages: [usage({ messageId: null, status: 'pending' })] }
    expect(problems({ atDeath: open, requests: [request('a'), request('a'), request('b')] })).to.eql([])
    expect(
      problems({ atDeath: open, requests: [request('a'), request('a'), request('b'), request('b')] }),
    ).to.have.length(1)
  })

  it('measures tools and requests by the run without a crash (E112)', () => {
    const asking = { ...good, executions: [executed(), executed()], requests: [request('a'), request('a')] }
    expect(problemsOf(asking, usualOf(asking), ['refund'])).to.eql([])
  })
})
