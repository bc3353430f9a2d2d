import { expect } from 'chai'
import { type ChatState, chatStates } from '../../models/overview.ts'
import type { Role, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { diagnose, type Evidence, type WaitsFor } from '../../src/chat/diagnose.ts'
import type { Advice } from '../../src/chat/diagnosis-advice.ts'
import { missingAgent } from '../../src/loop/ending.ts'
import { storedCall } from '../tools/rows.ts'

const now = new Date('2026-03-01T12:00:00.000Z')
const from = (seconds: number) => new Date(now.getTime() + seconds * 1_000)

const untouched: Evidence['chat'] = {
  id: 'chat-1',
  agent: 'support',
  claimedBy: null,
  claimedUntil: null,
  claimToken: 3,
  wantedAt: null,
  wantedQueue: null,
  attempts: 0,
  deaths: 0,
  lastDeath: null,
  putOff: 0,
  rounds: 0,
  failure: null,
  turn: 2,
  cancelTurn: null,
  cancelledTurn: null,
  compactAt: null,
  parked: false,
}

function message(position: number, role: Role, toolCalls: ToolCallRow[] = []): TranscriptMessage {
  const empty = { thinkingText: null, thinkingSignature: null, rawReasoning: null, citations: null }
  const content = toolCalls.length > 0 ? null : 'words'
  return {
    ...{
      id: `message ${position}`,
      chatId: 'chat-1',
      position,
      role,
      content,
      finishReason: null,
      outcome: null,
      summaryThrough: null,
      encoding: null,
      attachments: null,
      cacheBoundary: null,
    },
    ...empty,
    createdAt: from(-50 + position),
    updatedAt: from(-50 + position),
    toolCalls,
  }
}

const call = (id: string, given: Partial<ToolCallRow> = {}) => storedCall({ id, toolCallId: id, ...given })
const pending = (id: string) => call(id, { approval: 'pending' })
const paused = (id: string) => call(id, { name: 'research', mcpState: { task: { id: 't1' } } })
const questioning = (id: string) =>
  call(id, { name: 'research', mcpState: { requests: [{ key: 'k', message: '?', fields: [], expiresAt: null }] } })
const asks = (...calls: ToolCallRow[]) => [message(0, 'user'), message(1, 'assistant', calls)]
const owed = [message(0, 'user')]
const answered = [message(0, 'user'), message(1, 'assistant')]
const failure = {
  code: 'provider.authentication',
  message: 'The key was refused.',
  turn: 2,
  at: '2026-03-01T11:00:00.000Z',
}
const held = { claimedBy: 'claim-1', claimedUntil: from(30) }
const lapsed = { claimedBy: 'claim-1', claimedUntil: from(-5) }

interface Line {
  readonly when: string
  readonly chat?: Partial<Evidence['chat']>
  readonly transcript?: readonly TranscriptMessage[]
  readonly queued?: number
  readonly workers?: number
  readonly act: Advice['act']
  /** What the sentences have to say. */
  readonly why: RegExp
  readonly text: RegExp
  readonly waitsFor?: readonly WaitsFor[]
}

const table: Record<ChatState, readonly Line[]> = {
  running: [
    {
      when: 'a process holds it',
      chat: { ...held, wantedAt: from(-9) },
      act: 'nothing',
      why: /^A process runs it\.$/,
      text: /^nothing: it runs; its claim lapses at 2026-03-01T12:00:30\.000Z/,
    },
    {
      when: 'a process holds it and a cancel waits',
      chat: { ...held, cancelTurn: 2 },
      act: 'nothing',
      why: /carry out a cancel/,
      text: /^nothing/,
    },
    { when: 'it failed before', chat: { ...held, failure }, act: 'nothing', why: /runs it/, text: /^nothing/ },
  ],
  failed: [
    {
      when: 'its turn was given up',
      chat: { failure },
      act: 'retry',
      why: /given up at 2026-03-01T11:00:00\.000Z: The key was refused\. \(provider\.authentication\)/,
      text: /threadmill retry chat-1$/,
    },
    {
      when: 'somebody approved a call of it meanwhile',
      chat: { failure, wantedAt: from(-5) },
      act: 'retry',
      why: /given up/,
      text: /threadmill retry chat-1$/,
    },
    {
      when: 'no worker had its agent',
      chat: { failure: { ...failure, code: missingAgent } },
      act: 'start-worker',
      why: /given up/,
      text: /^start a worker that has agent "support"; .*by itself$/,
    },
  ],
  due: [
    {
      when: 'no worker has taken it yet',
      chat: { wantedAt: from(-9) },
      act: 'nothing',
      why: /due for 9 s/,
      text: /^nothing: a worker takes it/,
    },
    {
      when: 'no worker is connected',
      chat: { wantedAt: from(-9) },
      workers: 0,
      act: 'start-worker',
      why: /No worker is connected/,
      text: /^start a worker that has agent "support"$/,
    },
    {
      when: 'it has no agent, and no worker is connected',
      chat: { wantedAt: from(-9), agent: null },
      workers: 0,
      act: 'start-worker',
      why: /No worker/,
      text: /^start a worker$/,
    },
    {
      when: 'the workers that are there lack its agent',
      chat: { wantedAt: from(-1), putOff: 2 },
      workers: 3,
      act: 'start-worker',
      why: /due for 1 s/,
      text: /agent "support"$/,
    },
    {
      when: 'the process that ran it died',
      chat: { ...lapsed, wantedAt: from(-60) },
      workers: 1,
      act: 'nothing',
      why: /is gone: its claim lapsed at 2026-03-01T11:59:55\.000Z/,
      text: /^nothing: a worker takes it/,
    },
  ],
  'put off': [
    {
      when: 'workers lack its agent or a tool',
      chat: { wantedAt: from(16), putOff: 5 },
      act: 'start-worker',
      why: /put it off 5 times, since they lack its agent or one of its tools; they look again at 2026-03-01T12:00:16/,
      text: /^start a worker that has agent "support"$/,
    },
    {
      when: 'it has no agent: a tool is missing',
      chat: { wantedAt: from(1), putOff: 1, agent: null },
      act: 'start-worker',
      why: /put it off once, since they lack one of its tools/,
      text: /^start a worker$/,
    },
  ],
  wanted: [
    {
      when: 'it was enqueued with a delay',
      chat: { wantedAt: from(60) },
      act: 'nothing',
      why: /^It is wanted at 2026-03-01T12:01:00\.000Z\.$/,
      text: /threadmill enqueue chat-1$/,
    },
    {
      when: 'runs failed in a way that may pass',
      chat: { wantedAt: from(30), attempts: 2 },
      act: 'nothing',
      why: /^Its last 2 runs failed .* begins at 2026-03-01T12:00:30/,
      text: /^nothing: it runs by itself then/,
    },
  ],
  parked: [
    {
      when: 'a call needs a decision, another has its result',
      chat: { parked: true },
      transcript: asks(call('a', { resultId: 'r' }), pending('b')),
      act: 'decide',
      why: /^It waits for a decision about refund \(b\)\.$/,
      text: /^approve or deny b$/,
      waitsFor: [{ toolCallId: 'b', name: 'refund', kind: 'approval' }],
    },
    {
      when: 'two need a decision, and messages wait behind them',
      chat: { parked: true },
      transcript: asks(pending('a'), pending('b')),
      queued: 2,
      act: 'decide',
      why: /2 queued messages wait behind that/,
      text: /^approve or deny a, b$/,
      waitsFor: [
        { toolCallId: 'a', name: 'refund', kind: 'approval' },
        { toolCallId: 'b', name: 'refund', kind: 'approval' },
      ],
    },
    {
      when: 'a call waits for a task, which is looked at by itself',
      chat: { parked: true, wantedAt: from(60) },
      transcript: asks(paused('p')),
      act: 'nothing',
      why: /what research \(p\) began elsewhere/,
      text: /^nothing: a worker looks how it stands at 2026-03-01T12:01:00\.000Z$/,
      waitsFor: [{ toolCallId: 'p', name: 'research', kind: 'task' }],
    },
    {
      when: 'a call asks its user something, for so long only',
      chat: { parked: true, wantedAt: from(60) },
      transcript: asks(questioning('q'), paused('p')),
      act: 'answer',
      why: /an answer to research \(q\)\.$/,
      text: /^answer or decline what q asks$/,
      waitsFor: [
        { toolCallId: 'q', name: 'research', kind: 'answer' },
        { toolCallId: 'p', name: 'research', kind: 'task' },
      ],
    },
    {
      when: 'everything was decided without waking it',
      chat: { parked: true },
      transcript: asks(call('a', { approval: 'approved' })),
      act: 'enqueue',
      why: /nobody asked/,
      text: /^threadmill enqueue chat-1$/,
    },
  ],
  idle: [
    { when: 'it is empty', transcript: [], act: 'nothing', why: /no message yet/, text: /first message/ },
    { when: 'its turn is answered', transcript: answered, act: 'nothing', why: /is answered/, text: /next message/ },
    {
      when: 'a message was only staged',
      transcript: owed,
      act: 'enqueue',
      why: /no answer yet, and nobody asked/,
      text: /^threadmill enqueue chat-1$/,
    },
    {
      when: 'its turn was cancelled',
      transcript: owed,
      chat: { cancelledTurn: 2 },
      act: 'nothing',
      why: /was cancelled/,
      text: /^nothing: .*threadmill enqueue chat-1$/,
    },
    {
      when: 'an earlier turn was cancelled',
      transcript: owed,
      chat: { cancelledTurn: 1 },
      act: 'enqueue',
      why: /nobody asked/,
      text: /enqueue/,
    },
    {
      when: 'a message waits in its queue',
      transcript: answered,
      queued: 1,
      act: 'enqueue',
      why: /^Messages wait in its queue/,
      text: /^threadmill enqueue chat-1$/,
    },
    {
      when: 'every open call waits, and no run has parked it',
      transcript: asks(pending('a')),
      act: 'decide',
      why: /refund \(a\)/,
      text: /^approve or deny a$/,
      waitsFor: [{ toolCallId: 'a', name: 'refund', kind: 'approval' }],
    },
    {
      when: 'one of two open calls can run',
      transcript: asks(pending('a'), call('b')),
      act: 'enqueue',
      why: /nobody asked/,
      text: /enqueue/,
      waitsFor: [{ toolCallId: 'a', name: 'refund', kind: 'approval' }],
    },
    {
      when: 'the process that ran it by hand died',
      transcript: owed,
      chat: lapsed,
      act: 'enqueue',
      why: /nobody asked/,
      text: /enqueue/,
    },
  ],
}

function evidenceOf(line: Line): Evidence {
  const chat = { ...untouched, ...line.chat }
  return {
    chat,
    claimed: chat.claimedUntil !== null && chat.claimedUntil > now,
    due: chat.wantedAt !== null && chat.wantedAt <= now,
    queued: { steering: 0, total: line.queued ?? 0 },
    transcript: line.transcript ?? owed,
    now,
    workers: line.workers ?? null,
  }
}

describe('The diagnosis of a chat', () => {
  for (const state of chatStates) {
    for (const line of table[state]) {
      it(`is "${state}" when ${line.when}`, () => {
        const found = diagnose(evidenceOf(line))
        expect(found.state).to.equal(state)
        expect(found.advice.act).to.equal(line.act)
        expect(found.why).to.match(line.why)
        expect(found.advice.text).to.match(line.text)
        expect(found.waitsFor).to.deep.equal(line.waitsFor ?? [])
      })
    }
  }

  it('carries what it rests on', () => {
    const chat = { ...held, wantedAt: from(-9), cancelTurn: 2, attempts: 1, rounds: 4, putOff: 0 }
    const found = diagnose(evidenceOf({ ...base, chat, queued: 3, transcript: answered }))
    expect(found).to.deep.include({
      chatId: 'chat-1',
      agent: 'support',
      at: now,
      claim: { id: 'claim-1', token: 3, lapsesAt: from(30), lapsesInMs: 30_000 },
      wish: { at: from(-9), inMs: -9_000, queue: 'complete' },
      cancelPending: true,
      queued: 3,
      turn: 2,
      rounds: 4,
      attempts: 1,
      lastMessage: { position: 1, role: 'assistant', at: from(-49) },
      failure: null,
    })
  })

  it('knows of a wish for a summary, and takes no summary for a message', () => {
    const summary = { ...message(2, 'user'), summaryThrough: 1 }
    const found = diagnose(evidenceOf({ ...base, chat: { compactAt: from(-1) }, transcript: [...answered, summary] }))
    expect(found).to.deep.include({ state: 'idle', summaryAt: from(-1) })
    expect(found.advice.act).to.equal('nothing')
    expect(found.lastMessage?.position).to.equal(1)
  })

  it('knows no claim that lapsed, and no cancel of an earlier turn', () => {
    const found = diagnose(evidenceOf({ ...base, chat: { ...lapsed, cancelTurn: 1 }, transcript: [] }))
    expect(found).to.include({ claim: null, wish: null, cancelPending: false, lastMessage: null, summaryAt: null })
  })
})

const base: Line = { when: '', act: 'nothing', why: /./, text: /./ }
