import { expect } from 'chai'
import { MalformedAnswerError, RateLimitError, ServerError, StreamCutError } from '../../src/errors.ts'
import { AnswerReader, readAnswer } from '../../src/providers/chat-completions/read.ts'
import type { Answer } from '../../src/providers/provider.ts'
import { chunk } from './scripted-server.ts'

const STOP = chunk({}, { finish_reason: 'stop' })

function read(...chunks: unknown[]): Answer {
  const reader = new AnswerReader()
  for (const each of chunks) reader.push(each)
  return reader.finish()
}

describe('A streamed answer', () => {
  it('is complete with a finish reason and no terminator, and the other way round', () => {
    const byReason = read(chunk({ content: 'The sum ' }), chunk({ content: 'is 4' }), STOP)
    expect(byReason).to.include({ text: 'The sum is 4', finishReason: 'stop' })
    const reader = new AnswerReader()
    reader.push(chunk({ content: 'The sum is 4' }))
    expect(reader.isComplete).to.equal(false)
    reader.terminate()
    expect(reader.isComplete).to.equal(true)
    expect(reader.finish()).to.include({ text: 'The sum is 4', finishReason: null })
  })

  it('is a retryable cut with neither, even when a whole tool call came', () => {
    const reader = new AnswerReader()
    const call = { index: 0, id: 'a', function: { name: 'pay', arguments: '{"eur":5}' } }
    reader.push(chunk({ content: 'The sum ', tool_calls: [call] }))
    expect(() => reader.finish())
      .to.throw(StreamCutError)
      .with.property('retryable', true)
  })

  it('keeps the first id and model that are not empty', () => {
    const first = { id: '', model: '', choices: [], prompt_filter_results: [] }
    expect(read(first, chunk({ content: 'a' }), { ...STOP, id: 'cc-2', model: 'm-2' })).to.include({
      responseId: 'cc-1',
      model: 'm-1',
    })
  })

  it('takes a finish reason that comes twice once, and an empty one for none', () => {
    expect(read(chunk({ content: 'a' }, { finish_reason: '' }), STOP, STOP).finishReason).to.equal('stop')
    const reader = new AnswerReader()
    reader.push(chunk({ content: 'a' }, { finish_reason: '' }))
    expect(reader.isComplete).to.equal(false)
  })

  it('ignores a message that grows beside the deltas, and other choices than the first', () => {
    const growing = (content: string, all: string) => ({
      choices: [
        { index: 1, delta: { content: 'other' } },
        { index: 0, delta: { content }, message: { content: all } },
      ],
    })
    expect(read(growing('1 ', '1 '), growing('2', '1 2'), STOP).text).to.equal('1 2')
  })

  it('reads text and thinking out of content lists', () => {
    const thinking = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] })
    const answer = read(
      chunk({ content: [thinking('Let ')] }),
      chunk({ content: [thinking('me see')] }),
      chunk({
        content: [
          { type: 'thinking', thinking: [], closed: true },
          { type: 'text', text: 'To' },
        ],
      }),
      chunk({ content: [{ type: 'reference', reference_ids: [3] }] }),
      chunk({ content: ' be' }),
      STOP,
    )
    expect(answer).to.deep.include({ text: 'To be', thinking: 'Let me see' })
    expect(answer.citations).to.deep.equal([{ type: 'reference', reference_ids: [3] }])
    expect(answer.rawReasoning).to.deep.equal({
      content_parts: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Let me see' }], closed: true }],
    })
  })

  it('keeps reasoning apart from the text, and remembers under which name it came', () => {
    for (const name of ['reasoning_content', 'reasoning']) {
      const answer = read(
        chunk({ content: null, [name]: 'Need ' }),
        chunk({ [name]: 'it.' }),
        chunk({ content: 'Ok' }),
        STOP,
      )
      expect(answer).to.include({ text: 'Ok', thinking: 'Need it.' })
      expect(answer.rawReasoning).to.deep.equal({ [name]: 'Need it.' })
    }
  })

  it('counts reasoning that comes under two names once, and joins its details', () => {
    const detail = (rest: object) => ({ type: 'reasoning.text', index: 0, format: 'f', ...rest })
    const answer = read(
      chunk({ reasoning: 'Ab', reasoning_details: [detail({ text: 'Ab' })] }),
      chunk({ reasoning: 'cd', reasoning_details: [detail({ text: 'cd' })] }),
      chunk({ reasoning_details: [detail({ signature: 'sig' })] }),
      STOP,
    )
    expect(answer.thinking).to.equal('Abcd')
    expect(answer.rawReasoning).to.deep.equal({
      reasoning: 'Abcd',
      reasoning_details: [detail({ text: 'Abcd', signature: 'sig' })],
    })
  })

  it('shows the details when they are all there is, and keeps encrypted ones without showing them', () => {
    const details = [
      { type: 'reasoning.summary', index: 0, summary: 'Sums.' },
      { type: 'reasoning.encrypted', index: 1, data: 'AAA=' },
    ]
    const answer = read(chunk({ reasoning_details: details }), STOP)
    expect(answer.thinking).to.equal('Sums.')
    expect(answer.rawReasoning).to.deep.equal({ reasoning_details: details })
  })

  it('has no thinking and nothing to send back when none came', () => {
    expect(read(chunk({ content: 'a', reasoning: null }), STOP)).to.include({ thinking: null, rawReasoning: null })
  })

  it('counts a refusal as text', () => {
    expect(read(chunk({ refusal: 'I can’t ' }), chunk({ refusal: 'do that.' }), STOP).text).to.equal('I can’t do that.')
  })

  it('collects sources that are repeated on every chunk once, and annotations as they come', () => {
    const sources = { citations: ['https://a.test'], search_results: [{ url: 'https://a.test', title: 'A' }] }
    const annotation = { type: 'url_citation', url_citation: { url: 'https://b.test' } }
    const answer = read(chunk({ content: 'a' }, sources), chunk({ annotations: [annotation] }, sources), STOP)
    expect(answer.citations).to.deep.equal([annotation, { url: 'https://a.test', title: 'A' }])
    expect(read(chunk({ content: 'a' }, { citations: ['https://a.test'] }), STOP).citations).to.deep.equal([
      'https://a.test',
    ])
    expect(read(STOP).citations).to.equal(null)
  })

  it('reports what each chunk adds, in order, and nothing for a chunk that adds nothing', () => {
    const reader = new AnswerReader()
    const usage = { prompt_tokens: 4, completion_tokens: 2 }
    expect(reader.push(chunk({ role: 'assistant', content: '' }))).to.deep.equal([])
    expect(reader.push(chunk({ reasoning: 'Hm', content: 'Go' }, { usage }))).to.deep.equal([
      { type: 'thinking', text: 'Hm' },
      { type: 'text', text: 'Go' },
      { type: 'usage', usage: { input: 4, output: 2, cacheRead: null, cacheWrite: null, thinking: null } },
    ])
  })

  it('does not fall over optional fields of the wrong type', () => {
    const odd = { id: 7, model: [], choices: [{ index: 'x', delta: { content: 5, tool_calls: {} } }, 9], usage: 'none' }
    expect(read(odd, { choices: 'none' }, chunk({ content: 'fine' }), STOP)).to.include({ text: 'fine', usage: null })
  })

  it('throws what a chunk reports as an error, with the server’s words', () => {
    const inChunk = {
      id: 'x',
      choices: [],
      error: { message: 'worker queue full (9/8)', type: 'server_error', code: 502 },
    }
    const flat = { object: 'error', message: 'Slow down', type: 'rate_limited', code: '1300' }
    const inChoice = { choices: [{ index: 0, delta: {}, error: { message: 'cut off', code: 502 } }] }
    expect(() => read(chunk({ content: 'Hel' }), inChunk)).to.throw(ServerError, 'worker queue full (9/8)')
    expect(() => read(flat)).to.throw(RateLimitError, 'Slow down')
    expect(() => read(inChoice)).to.throw(ServerError, 'cut off')
    expect(() => read(chunk({ content: 'a' }, { finish_reason: 'error' }))).to.throw(ServerError, 'gave up')
    expect(() => read([])).to.throw(MalformedAnswerError)
  })

  it('is not stopped by an error field that is null', () => {
    expect(read(chunk({ content: 'a' }, { error: null }), STOP).text).to.equal('a')
  })
})

describe('The usage of an answer', () => {
  const usageOf = (...reports: unknown[]) => read(...reports.map((usage) => ({ choices: [], usage })), STOP).usage

  it('is the last report that says something, never the sum', () => {
    const report = (output: number) => ({ prompt_tokens: 19, completion_tokens: output, total_tokens: 19 + output })
    expect(usageOf(report(2), report(5), report(9), null, {})).to.include({ input: 19, output: 9 })
  })

  it('has cached tokens taken off the input, down to 0', () => {
    const report = (cached: number) => ({
      prompt_tokens: 1500,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: cached },
    })
    expect(usageOf(report(1100))).to.include({ input: 400, cacheRead: 1100, output: 50 })
    expect(usageOf(report(1600))).to.include({ input: 0, cacheRead: 1600 })
  })

  it('finds cached and reasoning tokens under their other names, and cache writes', () => {
    expect(usageOf({ prompt_tokens: 10, prompt_cache_hit_tokens: 4 })).to.include({
      input: 6,
      cacheRead: 4,
      output: null,
    })
    expect(usageOf({ prompt_tokens: 10, num_cached_tokens: 4 })).to.include({ input: 6, cacheRead: 4 })
    expect(usageOf({ prompt_tokens: 10, prompt_tokens_details: { cache_write_tokens: 3 } })).to.include({
      input: 7,
      cacheWrite: 3,
    })
    expect(usageOf({ completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 6 } })).to.include({
      thinking: 6,
    })
    expect(usageOf({ completion_tokens: 9, reasoning_tokens: 5 })).to.include({ thinking: 5 })
  })

  it('is null, not 0, when nothing was reported', () => {
    expect(usageOf()).to.equal(null)
    expect(usageOf({ prompt_tokens: 'many', completion_tokens: -3 })).to.equal(null)
  })
})

describe('A JSON answer', () => {
  const body = (message: object, rest: object = {}) => ({
    id: 'cc-9',
    model: 'm-9',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    ...rest,
  })

  it('is read like a stream of one chunk', () => {
    const answer = readAnswer(
      body(
        { content: 'Hi', reasoning_content: 'Greet.', annotations: [{ type: 'url_citation' }] },
        { usage: { prompt_tokens: 3, completion_tokens: 1 } },
      ),
    )
    expect(answer).to.deep.equal({
      text: 'Hi',
      thinking: 'Greet.',
      thinkingSignature: null,
      rawReasoning: { reasoning_content: 'Greet.' },
      citations: [{ type: 'url_citation' }],
      toolCalls: [],
      finishReason: 'stop',
      usage: { input: 3, output: 1, cacheRead: null, cacheWrite: null, thinking: null },
      model: 'm-9',
      responseId: 'cc-9',
    })
  })

  it('is complete without a finish reason', () => {
    expect(readAnswer({ choices: [{ message: { content: 'Hi' } }] })).to.include({ text: 'Hi', finishReason: null })
  })

  it('is refused when it holds an error or no message', () => {
    expect(() => readAnswer({ error: { message: 'no', code: 429 } })).to.throw(RateLimitError, 'no')
    expect(() => readAnswer({ error: 'all wrong' })).to.throw(ServerError, 'all wrong')
    for (const odd of [{}, { choices: [] }, { choices: [{}] }, 'x', null, 5]) {
      expect(() => readAnswer(odd), JSON.stringify(odd)).to.throw(MalformedAnswerError)
    }
  })
})
