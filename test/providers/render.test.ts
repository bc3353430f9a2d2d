import { expect } from 'chai'
import { AnswerReader } from '../../src/providers/chat-completions/read.ts'
import { renderRequest } from '../../src/providers/chat-completions/render.ts'
import type { Answer, RequestMessage } from '../../src/providers/provider.ts'
import { chunk, minimalRequest } from './scripted-server.ts'

type Assistant = Extract<RequestMessage, { role: 'assistant' }>

function assistant(changes: Partial<Assistant>): Assistant {
  return {
    role: 'assistant',
    content: null,
    thinking: null,
    thinkingSignature: null,
    rawReasoning: null,
    toolCalls: [],
    ...changes,
  }
}

function rendered(message: RequestMessage): unknown {
  return renderRequest(minimalRequest({ messages: [message] })).messages[0]
}

/** The message that an answer becomes when it is sent back. */
function sentBack(answer: Answer): unknown {
  const toolCalls = answer.toolCalls.map((call) => ({ ...call, id: call.providerCallId ?? '' }))
  return rendered(assistant({ ...answer, content: answer.text, toolCalls }))
}

function answerOf(...chunks: unknown[]): Answer {
  const reader = new AnswerReader()
  for (const each of chunks) reader.push(each)
  reader.terminate()
  return reader.finish()
}

describe('A Chat Completions request', () => {
  it('asks for a stream with its usage, or for neither', () => {
    const streaming = renderRequest(minimalRequest())
    expect(streaming).to.deep.equal({
      model: 'm-test',
      messages: [{ role: 'user', content: 'hi' }],
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(renderRequest(minimalRequest({ streaming: false }))).to.have.all.keys('model', 'messages')
  })

  it('names its tools, and has no such key when there are none', () => {
    const tool = { name: 'rate', description: 'A rate', parameters: { type: 'object' } }
    expect(renderRequest(minimalRequest({ tools: [tool] })).tools).to.deep.equal([{ type: 'function', function: tool }])
    expect(renderRequest(minimalRequest())).to.not.have.property('tools')
  })

  it('limits the output under the name that the server knows', () => {
    const request = minimalRequest({ maxOutputTokens: 9, temperature: 0 })
    expect(renderRequest(request)).to.include({ max_completion_tokens: 9, temperature: 0 })
    expect(renderRequest(request, { outputLimitName: 'max_tokens' })).to.include({ max_tokens: 9 })
  })

  it('lets the provider options win over everything', () => {
    const options = { temperature: 1, model: 'other', stream_options: { include_usage: false }, seed: 4 }
    expect(renderRequest(minimalRequest({ temperature: 0, providerOptions: options }))).to.deep.include(options)
  })

  it('sends calls with the exact text of their arguments, and results under the call’s id', () => {
    const call = { id: 'call_1', name: 'temp', argumentsText: '{"ci', thoughtSignature: null }
    expect(rendered(assistant({ toolCalls: [call] }))).to.deep.equal({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'temp', arguments: '{"ci' } }],
    })
    expect(rendered({ role: 'tool', callId: 'call_1', name: 'temp', content: 'cold' })).to.deep.equal({
      role: 'tool',
      tool_call_id: 'call_1',
      content: 'cold',
    })
  })

  it('sends the files of results behind the last of their round; a boundary stays at its result (E82)', () => {
    const file = (filename: string, data: string) => ({
      filename,
      contentType: 'text/plain',
      base64: Buffer.from(data).toString('base64'),
    })
    const calls = ['a', 'b', 'c'].map((id) => ({ id, name: 'draw', argumentsText: '{}', thoughtSignature: null }))
    const result = (callId: string, more: object = {}) => ({
      ...{ role: 'tool' as const, callId, name: 'draw', content: `${callId} done` },
      ...more,
    })
    const messages = [
      assistant({ toolCalls: calls.slice(0, 2) }),
      result('a', { files: [file('1.txt', 'one'), file('2.txt', 'two')], cacheUntilHere: true }),
      result('b', { files: [] }),
      assistant({ toolCalls: calls.slice(2) }),
      result('c', { files: [file('3.txt', 'three')] }),
      { role: 'user' as const, content: 'And now?' },
    ]
    const texts = (...lines: string[]) => lines.map((line) => ({ type: 'text', text: line }))
    const sent = renderRequest(minimalRequest({ messages }), { cacheBoundaries: true }).messages
    expect(sent.filter(({ role }) => role !== 'assistant')).to.deep.equal([
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [{ type: 'text', text: 'a done', cache_control: { type: 'ephemeral' } }],
      },
      { role: 'tool', tool_call_id: 'b', content: 'b done' },
      {
        role: 'user',
        content: texts('Attached by draw (call a): 1.txt, 2.txt', '1.txt:\n\none', '2.txt:\n\ntwo'),
      },
      { role: 'tool', tool_call_id: 'c', content: 'c done' },
      { role: 'user', content: texts('Attached by draw (call c): 3.txt', '3.txt:\n\nthree') },
      { role: 'user', content: 'And now?' },
    ])
    expect(sent.map(({ role }) => role).join(' ')).to.equal('assistant tool tool user assistant tool user user')
  })

  it('sends thought signatures back with their calls', () => {
    const call = { id: 'a', name: 'f', argumentsText: '{}', thoughtSignature: 'sig' }
    expect(rendered(assistant({ toolCalls: [call] }))).to.have.nested.property(
      'tool_calls[0].extra_content.google.thought_signature',
      'sig',
    )
  })

  it('sends reasoning back beside the calls, under the name that it came with', () => {
    const call = { index: 0, id: 'call_d1', function: { name: 'rate', arguments: '{"pair":"EURSEK"}' } }
    for (const name of ['reasoning_content', 'reasoning']) {
      const answer = answerOf(
        chunk({ content: null, [name]: 'Need the ' }),
        chunk({ [name]: 'rate first.' }),
        chunk({ tool_calls: [call] }),
      )
      expect(sentBack(answer)).to.deep.equal({
        role: 'assistant',
        content: null,
        [name]: 'Need the rate first.',
        tool_calls: [{ id: 'call_d1', type: 'function', function: { name: 'rate', arguments: '{"pair":"EURSEK"}' } }],
      })
    }
  })

  it('sends reasoning details and thinking parts back unchanged', () => {
    const details = [{ type: 'reasoning.encrypted', index: 0, data: 'AAA=', id: 'r1', format: 'f' }]
    expect(sentBack(answerOf(chunk({ content: 'Hi', reasoning_details: details })))).to.deep.equal({
      role: 'assistant',
      content: 'Hi',
      reasoning_details: details,
    })
    const part = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }], closed: true }
    expect(sentBack(answerOf(chunk({ content: [part, { type: 'text', text: 'Hi' }] })))).to.deep.equal({
      role: 'assistant',
      content: [part, { type: 'text', text: 'Hi' }],
    })
  })

  it('invents no reasoning field for a message that has no raw reasoning, or another protocol’s', () => {
    for (const rawReasoning of [null, [{ type: 'reasoning', id: 'rs_1' }], 'text']) {
      expect(rendered(assistant({ content: 'Hi', thinking: 'Hm', rawReasoning }))).to.deep.equal({
        role: 'assistant',
        content: 'Hi',
      })
    }
  })
})
