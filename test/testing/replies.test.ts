import { expect } from 'chai'
import type OpenAI from 'openai'
import { ArgumentError } from '../../src/errors.ts'
import {
  countTokens,
  cut,
  hang,
  httpError,
  rawBody,
  rawSse,
  rules,
  streamError,
  text,
  toolCalls,
} from '../../src/testing/index.ts'
import { clientOf, closeServers, failureOf, hello, readStream, serverWith, streamedHello } from './support.ts'

const clock = { name: 'clock', arguments: { city: 'Tokyo' } }

describe('Replies of the model server', () => {
  afterEach(closeServers)

  describe('text', () => {
    it('is one JSON answer when no stream is asked for', async () => {
      const server = await serverWith([text('Hello there')])
      const answer = await clientOf(server).chat.completions.create(hello)
      expect(answer.object).to.equal('chat.completion')
      expect(answer.model).to.equal('test-model')
      expect(answer.choices[0]?.message.content).to.equal('Hello there')
      expect(answer.choices[0]?.finish_reason).to.equal('stop')
      expect(answer.usage).to.include({ prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 })
      expect(server.requests[0]?.ended).to.equal('answered')
    })

    it('streams one chunk a word, with one id, and ends with usage', async () => {
      const server = await serverWith([text('Hello  big\nworld ')])
      const stream = await readStream(clientOf(server))
      expect(stream.error).to.equal(undefined)
      expect(stream.pieces).to.deep.equal(['Hello', '  big', '\nworld', ' '])
      expect(stream.finish).to.equal('stop')
      expect(new Set(stream.chunks.map((chunk) => chunk.id)).size).to.equal(1)
      expect(stream.chunks[0]?.choices[0]?.delta.role).to.equal('assistant')
      expect(stream.chunks.at(-1)?.choices).to.deep.equal([])
      expect(stream.chunks.at(-1)?.usage?.completion_tokens).to.equal(countTokens('Hello  big\nworld '))
    })

    it('reports no usage in a stream that did not ask for it', async () => {
      const server = await serverWith([text('Hello')])
      const stream = await readStream(clientOf(server), { ...hello, stream: true })
      expect(stream.usage).to.equal(null)
      expect(stream.finish).to.equal('stop')
    })

    it('ends a stream with [DONE]', async () => {
      const server = await serverWith([text('Hello')])
      const response = await fetch(`${server.url}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(streamedHello),
      })
      expect(response.headers.get('content-type')).to.match(/^text\/event-stream/)
      expect(await response.text()).to.match(/"usage":\{.*\}\}\n\ndata: \[DONE\]\n\n$/)
    })

    it('takes the number of chunks, the usage, the finish reason, the model and the thinking from its options', async () => {
      const options = {
        chunks: 3,
        usage: { prompt_tokens: 7, completion_tokens: 5 },
        finishReason: 'length',
        model: 'other',
        thinking: 'Hm',
      }
      const server = await serverWith([text('añb😀cd', options), text('Yes', options)])
      const stream = await readStream(clientOf(server))
      expect(stream.pieces).to.deep.equal(['añ', 'b😀', 'cd'])
      expect(stream.usage).to.deep.equal({ prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 })
      expect(stream.finish).to.equal('length')
      expect(stream.chunks[0]?.model).to.equal('other')
      const deltas = stream.chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.delta)) as object[]
      expect(deltas.filter((delta) => 'reasoning_content' in delta).length).to.equal(2)
      const whole = await clientOf(server).chat.completions.create(hello)
      expect(whole.choices[0]?.message).to.include({ content: 'Yes', reasoning_content: 'Hm' })
    })

    it('reports no usage at all when it is null', async () => {
      const server = await serverWith(text('Hello', { usage: null }))
      expect((await readStream(clientOf(server))).usage).to.equal(null)
      expect((await clientOf(server).chat.completions.create(hello)).usage).to.equal(undefined)
    })

    it('takes its time before the first chunk and between chunks', async () => {
      const server = await serverWith(text('a b c', { delayMs: 40, chunkDelayMs: 20 }))
      const from = performance.now()
      expect((await readStream(clientOf(server))).text).to.equal('a b c')
      expect(performance.now() - from).to.be.at.least(95)
    })
  })

  describe('toolCalls', () => {
    it('streams each call by index, its arguments in pieces that join to the JSON', async () => {
      const server = await serverWith([toolCalls([clock, { ...clock, id: 'call_mine' }], { argumentChunks: 4 })])
      const stream = await readStream(clientOf(server))
      const parts = stream.chunks.flatMap((chunk) => chunk.choices.flatMap((choice) => choice.delta.tool_calls ?? []))
      const joined = (index: number) =>
        parts.flatMap((part) => (part.index === index ? [part.function?.arguments ?? ''] : [])).join('')
      expect(parts.length).to.equal(10)
      expect([joined(0), joined(1)]).to.deep.equal(['{"city":"Tokyo"}', '{"city":"Tokyo"}'])
      const ids = parts.flatMap((part) => (part.id ? [part.id] : []))
      expect(ids[0]).to.match(/^call_\w{24}$/)
      expect(ids[1]).to.equal('call_mine')
      expect(stream.finish).to.equal('tool_calls')
    })

    it('makes a fresh id for every request, none for null, and sends malformed arguments as they are', async () => {
      const server = await serverWith(
        toolCalls([clock, { name: 'broken', arguments: '{"city":', id: null }], { text: 'Let me see.' }),
      )
      const client = clientOf(server)
      const answers = [await client.chat.completions.create(hello), await client.chat.completions.create(hello)]
      const [first, second] = answers.map((answer) => answer.choices[0]?.message)
      expect(first?.content).to.equal('Let me see.')
      expect(first?.tool_calls?.[0]?.id).to.not.equal(second?.tool_calls?.[0]?.id)
      const broken = first?.tool_calls?.[1] as OpenAI.ChatCompletionMessageFunctionToolCall | undefined
      expect(broken).to.deep.equal({ type: 'function', function: { name: 'broken', arguments: '{"city":' } })
    })

    it('is read by the streaming helper of the client as whole calls', async () => {
      const server = await serverWith([toolCalls([clock])])
      const final = await clientOf(server).chat.completions.stream(hello).finalChatCompletion()
      expect(final.choices[0]?.message.content).to.equal(null)
      expect(final.choices[0]?.message.tool_calls?.[0]).to.deep.include({ type: 'function' })
    })
  })

  describe('httpError', () => {
    it('makes the client throw its error with status, message, type and headers', async () => {
      const server = await serverWith([httpError(429, 'Slow down', { 'retry-after': '7' })])
      const error = await failureOf(clientOf(server).chat.completions.create(hello))
      expect(error).to.include({ status: 429, type: 'rate_limit_error', requestID: 'req_1' })
      expect(error.message).to.contain('Slow down')
      expect((error.headers as Headers).get('retry-after')).to.equal('7')
      expect(server.requests[0]?.ended).to.equal('failed')
    })

    it('sends an object as it is, also where a stream was asked for', async () => {
      const server = await serverWith([httpError(400, { error: { message: 'No', code: 'context_length_exceeded' } })])
      const { error, chunks } = await readStream(clientOf(server))
      expect(error).to.include({ status: 400, code: 'context_length_exceeded' })
      expect(chunks).to.deep.equal([])
    })

    it('refuses a status that is no error', () => {
      expect(() => httpError(200, 'fine')).to.throw(ArgumentError, /400 to 599/)
    })
  })

  describe('streamError', () => {
    it('throws out of a stream that began well', async () => {
      const server = await serverWith([streamError('The engine broke', { after: 'Well begun' })])
      const stream = await readStream(clientOf(server))
      expect(stream.text).to.equal('Well begun')
      expect(stream.finish).to.equal(null)
      expect((stream.error as Error).message).to.contain('The engine broke')
      expect(server.requests[0]?.ended).to.equal('failed')
    })

    it('is a 200 body with an error where no stream was asked for', async () => {
      const server = await serverWith([streamError({ message: 'Broke', code: 'server_error' })])
      const answer: unknown = await clientOf(server).chat.completions.create(hello)
      expect(answer).to.deep.include({ error: { message: 'Broke', code: 'server_error' } })
    })
  })

  describe('cut', () => {
    it('destroys the socket after some text, without finish reason', async () => {
      const server = await serverWith([cut({ after: 'Half an' })])
      const stream = await readStream(clientOf(server))
      expect(stream.text).to.equal('Half an')
      expect(stream.finish).to.equal(null)
      expect(stream.error).to.be.instanceOf(Error)
      expect(server.requests[0]?.ended).to.equal('cut')
    })

    it('can send the finish reason and [DONE] before', async () => {
      const server = await serverWith([
        cut({ after: 'Whole', finishReason: 'stop' }),
        cut({ after: 'Whole', finishReason: 'stop', done: true }),
      ])
      const first = await readStream(clientOf(server))
      expect(first).to.include({ text: 'Whole', finish: 'stop' })
      expect(first.error).to.be.instanceOf(Error)
      const second = await fetch(`${server.url}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(streamedHello),
      })
      let bytes = ''
      const error = await failureOf(
        (async () => {
          for await (const piece of second.body ?? []) bytes += Buffer.from(piece).toString()
        })(),
      )
      expect(error).to.be.instanceOf(TypeError)
      expect(bytes).to.match(/"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/)
    })

    it('cuts after whole tool calls, without their end', async () => {
      const server = await serverWith([cut({ after: toolCalls([clock]) })])
      const stream = await readStream(clientOf(server))
      const parts = stream.chunks.flatMap((chunk) => chunk.choices.flatMap((choice) => choice.delta.tool_calls ?? []))
      expect(parts.map((part) => part.function?.arguments).join('')).to.equal('{"city":"Tokyo"}')
      expect(stream.finish).to.equal(null)
      expect(stream.error).to.be.instanceOf(Error)
    })

    it('breaks off an answer that is not streamed in the middle of its JSON', async () => {
      const server = await serverWith([cut({ after: 'Half' })])
      const response = await fetch(`${server.url}/chat/completions`, { method: 'POST', body: JSON.stringify(hello) })
      expect(response.status).to.equal(200)
      expect(await failureOf(response.text())).to.be.instanceOf(TypeError)
    })

    it('is a connection error when nothing was sent', async () => {
      const server = await serverWith([cut()])
      const error = await failureOf(clientOf(server).chat.completions.create(hello))
      expect(error.constructor.name).to.equal('APIConnectionError')
      expect(server.requests[0]?.ended).to.equal('cut')
    })
  })

  describe('hang', () => {
    it('says nothing until the client goes away, and the log says that it did', async () => {
      const server = await serverWith([hang()])
      const leaving = new AbortController()
      const asked = clientOf(server).chat.completions.create(streamedHello, { signal: leaving.signal })
      const [request] = await server.waitForRequests(1)
      expect(request?.ended).to.equal(null)
      leaving.abort()
      expect((await failureOf(asked)).constructor.name).to.equal('APIUserAbortError')
      if (request !== undefined) expect(await server.waitForEnd(request)).to.equal('aborted')
      expect(request?.endedAt).to.be.a('number')
    })

    it('falls silent after some text', async () => {
      const server = await serverWith([hang({ after: 'And then' })])
      const stream = await clientOf(server).chat.completions.create(streamedHello)
      let said = ''
      for await (const chunk of stream) {
        said += chunk.choices[0]?.delta.content ?? ''
        if (said === 'And then') break
      }
      const [request] = await server.waitForRequests(1)
      if (request !== undefined) expect(await server.waitForEnd(request)).to.equal('aborted')
    })
  })

  describe('raw bytes', () => {
    const sse =
      'data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Grüße 😀"}}]}\r\n\r\n: ping\n\ndata: [DONE]\n\n'

    it('rawSse arrives whole however it is cut', async () => {
      for (const pieces of [1, 2, 5, 40, 1000]) {
        const server = await serverWith([rawSse(sse, { pieces })])
        const stream = await readStream(clientOf(server))
        expect(stream).to.include({ text: 'Grüße 😀', error: undefined })
      }
    })

    it('rawSse is cut into pieces of odd sizes', async () => {
      const server = await serverWith([rawSse(sse, { pieces: 4 })])
      const response = await fetch(`${server.url}/chat/completions`, { method: 'POST', body: JSON.stringify(hello) })
      const sizes: number[] = []
      for await (const piece of response.body ?? []) sizes.push(piece.length)
      expect(sizes.length).to.be.greaterThan(1)
      expect(sizes.reduce((sum, size) => sum + size, 0)).to.equal(Buffer.byteLength(sse))
    })

    it('rawBody bears its status and headers', async () => {
      const page = '<h1>Bad gateway</h1>'
      const server = await serverWith([rawBody(page, { 'content-type': 'text/html' }, { status: 502 })])
      const error = await failureOf(clientOf(server).chat.completions.create(hello))
      expect(error).to.include({ status: 502 })
      expect(error.message).to.contain(page)
    })

    it('rawBody is JSON unless it says otherwise', async () => {
      const server = await serverWith([rawBody('{"choices":[]}')])
      const answer = await clientOf(server).chat.completions.create(hello)
      expect(answer.choices).to.deep.equal([])
    })
  })

  it('rules makes the reply from the request and its index', async () => {
    const server = await serverWith([
      text('first'),
      rules((request, index) => text(`${index}: ${request.messages[0]?.content}`)),
    ])
    const client = clientOf(server)
    await client.chat.completions.create(hello)
    const answer = await client.chat.completions.create(hello)
    expect(answer.choices[0]?.message.content).to.equal('1: Hello')
  })
})
