import { expect } from 'chai'
import { entryFields, readEntry } from '../../src/events/entry.ts'
import type { EventToolCall, LiveEvent } from '../../src/events/event.ts'
import { streamKey } from '../../src/events/keys.ts'

const toolCall: EventToolCall = {
  toolCallId: 'c1',
  name: 'refund',
  arguments: { order: 42, lines: [{ sku: 'a' }, null] },
}
const failure = { code: 'provider.server', message: 'Down', turn: 2, at: '2026-01-01T00:00:00.000Z' }

/** One of each kind; a kind that is missing here does not compile. */
const samples: { readonly [Type in LiveEvent['type']]: Extract<LiveEvent, { type: Type }> } = {
  'run.started': { type: 'run.started', turn: 1 },
  'message.started': { type: 'message.started', messageId: 'm', model: 'gpt' },
  'text.delta': { type: 'text.delta', messageId: 'm', text: 'é 👩‍👩‍👧 \ud83d' },
  'thinking.delta': { type: 'thinking.delta', messageId: 'm', text: '' },
  'attempt.restarted': { type: 'attempt.restarted', messageId: 'm2', replaces: 'm' },
  'message.finished': { type: 'message.finished', messageId: 'm', text: null, finishReason: 'stop' },
  'tool_call.requested': { type: 'tool_call.requested', messageId: 'm', toolCall },
  'approval.requested': { type: 'approval.requested', toolCall },
  'approval.decided': { type: 'approval.decided', toolCall, approval: 'denied' },
  'input.requested': {
    type: 'input.requested',
    toolCallId: 'c1',
    name: 'refund',
    key: 'ask-1',
    message: 'How much?',
    fields: [{ name: 'cents', type: 'integer', default: 7 }],
  },
  'input.answered': { type: 'input.answered', toolCallId: 'c1', key: 'ask-1', declined: true },
  'sub_chat.started': {
    type: 'sub_chat.started',
    toolCallId: 'c1',
    name: 'research',
    subChatId: 's1',
    agent: 'researcher',
  },
  transferred: { type: 'transferred', agent: 'billing' },
  'tool.progress': { type: 'tool.progress', toolCallId: 'c1', message: null, value: 0.5, total: null },
  'tool.result': {
    type: 'tool.result',
    toolCallId: 'c1',
    name: 'refund',
    outcome: 'interrupted',
    content: 'x',
    attachments: [{ id: 'f', filename: 'a.png', contentType: 'image/png', byteSize: 7 }],
  },
  queued: { type: 'queued', queuedId: 'q', content: null, steer: true },
  dequeued: { type: 'dequeued', queuedId: 'q', messageId: 'm' },
  unqueued: { type: 'unqueued', queuedId: 'q' },
  'transcript.cut': { type: 'transcript.cut', messageId: 'm', content: 'x', removed: ['n'] },
  'run.waiting': { type: 'run.waiting', toolCalls: [toolCall] },
  'run.finished': { type: 'run.finished', messageId: null },
  'run.cancelled': { type: 'run.cancelled' },
  'run.failed': { type: 'run.failed', failure, retryInMs: 5000 },
  usage: { type: 'usage', messageId: 'm', inputTokens: 1, outputTokens: null, cost: '0.0001' },
  resync: { type: 'resync' },
}

describe('an entry of the event stream', () => {
  for (const event of Object.values(samples)) {
    it(`brings ${event.type} back as it was`, () => {
      expect(readEntry('chat', '5-1', entryFields(7, 3, event))).to.deep.equal({
        id: '5-1',
        claimToken: 7,
        number: 3,
        event: { ...event, id: '5-1', chatId: 'chat', claimToken: 7 },
      })
    })
  }

  it('is not read when it is no event', () => {
    const event = JSON.stringify(samples['run.started'])
    const unreadable = [
      [],
      ['token', '1'],
      ['event', event],
      ['token', '-1', 'event', event],
      ['token', '1.5', 'event', event],
      ['token', '1', 'event', '{"type":'],
      ['token', '1', 'event', '{"type":"run.invented"}'],
      ['token', '1', 'event', '{"type":"run.started","turn":"1"}'],
      ['token', '1', 'event', '{"type":"approval.requested","toolCall":{"toolCallId":"c","name":"n","arguments":[]}}'],
    ]
    for (const fields of unreadable) expect(readEntry('chat', '1-1', fields).event, fields.join(' ')).to.equal(null)
  })

  it('keeps its number when only the event can not be read, so that it leaves no hole', () => {
    const fields = ['token', '4', 'number', '7', 'event', '{"type":"run.invented"}']
    expect(readEntry('chat', '1-1', fields)).to.deep.equal({ id: '1-1', claimToken: 4, number: 7, event: null })
  })

  it('has no number from outside a run', () => {
    expect(entryFields(0, null, samples['run.cancelled'])).not.to.include('number')
    expect(readEntry('chat', '1-1', entryFields(0, null, samples['run.cancelled'])).number).to.equal(null)
  })

  it('is read without what only a newer process knows', () => {
    const fields = ['since', '9', 'token', '1', 'event', '{"type":"run.cancelled","why":"because"}']
    expect(readEntry('chat', '1-1', fields).event).to.deep.equal({
      type: 'run.cancelled',
      id: '1-1',
      chatId: 'chat',
      claimToken: 1,
    })
  })

  it('lies under a key that keeps a chat on one node of a cluster', () => {
    expect(streamKey('threadmill', 'abc')).to.equal('threadmill:events:{abc}')
  })
})
