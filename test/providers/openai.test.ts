import { expect } from 'chai'
import { ConfigurationError } from '../../src/errors.ts'
import { openAiClient } from '../../src/providers/openai.ts'
import { clientOfLocalServer, EVENT_STREAM, STOP, SUM } from './local-client.ts'
import { attemptOptions, chunk, minimalRequest, sendInPieces, sse } from './scripted-server.ts'

describe('A client for Chat Completions', () => {
  const { server, attempt, answerWith, beginWith, failure } = clientOfLocalServer()

  describe('sends', () => {
    it('exactly one request, with the key and the extra headers', async () => {
      answerWith(sse(...SUM, STOP, '[DONE]'))
      const answer = await attempt({ headers: { 'x-trace': 't1' } })
      expect(answer.text).to.equal('The sum is 4')
      expect(server.requests).to.have.length(1)
      const [request] = server.requests
      expect(request?.url).to.equal('/v1/chat/completions')
      expect(request?.headers).to.include({ authorization: 'Bearer secret-key-1', 'x-trace': 't1' })
      expect(JSON.parse(request?.body ?? '')).to.deep.include({ model: 'm-test', stream: true })
    })

    it('one request only when the answer is an error that could be retried', async () => {
      answerWith('{"error":{"message":"busy"}}', { 'content-type': 'application/json', 'retry-after': '0' }, 503)
      expect(await failure(attempt())).to.include({ code: 'provider.server_error', retryable: true })
      expect(server.requests).to.have.length(1)
    })

    it('no authorization when there is no key', async () => {
      answerWith(sse(...SUM, STOP, '[DONE]'))
      await openAiClient({ apiKey: '', baseURL: server.baseURL }).attempt(minimalRequest(), attemptOptions())
      expect(server.requests[0]?.headers).to.not.have.property('authorization')
    })

    it('the output limit under the name that the provider knows', async () => {
      answerWith(sse(STOP))
      const ask = async (provider: string) => {
        const client = openAiClient({ apiKey: 'k', baseURL: server.baseURL, provider })
        expect(client.provider).to.equal(provider)
        await client.attempt(minimalRequest({ maxOutputTokens: 5 }), attemptOptions())
        return JSON.parse(server.requests.at(-1)?.body ?? '') as unknown
      }
      expect(await ask('openai'))
        .to.include({ max_completion_tokens: 5 })
        .and.not.have.property('max_tokens')
      expect(await ask('mistral'))
        .to.include({ max_tokens: 5 })
        .and.not.have.property('max_completion_tokens')
    })

    it('documents in the form that the provider has for them, and says which it takes (E84)', async () => {
      const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
      const files = [word, 'application/pdf'].map((contentType) => ({ filename: 'a', contentType, base64: 'QQ==' }))
      const ask = async (provider: string) => {
        answerWith(sse(STOP))
        const client = openAiClient({ apiKey: 'k', baseURL: server.baseURL, provider })
        const taken = files.filter(({ contentType }) => client.supportsAttachment?.(contentType))
        const messages = [{ role: 'user' as const, content: '', files: taken }]
        await client.attempt(minimalRequest({ messages }), attemptOptions())
        const { messages: sent } = JSON.parse(server.requests.at(-1)?.body ?? '') as {
          messages: { content: unknown }[]
        }
        return sent[0]?.content
      }
      const bytes = { type: 'file_url', file_url: { url: 'QQ==' } }
      expect(await ask('perplexity')).to.deep.equal([bytes, bytes])
      expect(await ask('openai')).to.deep.equal([
        { type: 'file', file: { filename: 'a', file_data: 'data:application/pdf;base64,QQ==' } },
      ])
    })

    it('through the fetch that it was given', async () => {
      const fetch = () => Promise.resolve(new Response(sse(...SUM, '[DONE]')))
      const client = openAiClient({ apiKey: 'k', fetch })
      expect((await client.attempt(minimalRequest(), attemptOptions())).text).to.equal('The sum is 4')
    })

    it('nothing with a key or a base URL that can’t be used, and doesn’t show the key', () => {
      expect(() => openAiClient({ apiKey: 'sk-1\n' }))
        .to.throw(ConfigurationError)
        .with.property('message')
        .not.contain('sk-1')
      expect(() => openAiClient({ apiKey: 'k', baseURL: 'localhost:80' })).to.throw(ConfigurationError)
      expect(() => openAiClient({ apiKey: 'k', baseURL: 'http://me:hush@localhost:80' }))
        .to.throw(ConfigurationError)
        .with.property('message')
        .not.contain('hush')
    })
  })

  describe('reads a stream', () => {
    const framed =
      ': warming up\r\n\r\n' +
      'data:{"id":"","choices":[],"model":"","prompt_filter_results":[]}\r\n\r\n' +
      'data: \r\n\r\n' +
      'data: {"id":"cc-b19","choices":[{"index":0,"delta":{"content":"Gö"},"finish_reason":null}]}\r\n\r\n' +
      ': ping\n' +
      'data:{"id":"cc-b19","choices":[{"index":0,"delta":{"content":"od"},"finish_reason":"stop"}]}\n\n' +
      'data: {"id":"cc-b19","choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}}\n\n' +
      'data:[DONE]\n\n'

    for (const size of [framed.length * 2, 1]) {
      it(`in every legal framing, ${size === 1 ? 'one byte' : 'all of it'} in a write`, async () => {
        server.answer = async (response) => {
          response.socket?.setNoDelay(true)
          response.writeHead(200, EVENT_STREAM)
          await sendInPieces(response, framed, size)
        }
        const answer = await attempt()
        expect(answer).to.deep.include({ text: 'Göod', toolCalls: [], finishReason: 'stop', responseId: 'cc-b19' })
        expect(answer.usage).to.include({ input: 4, output: 2 })
      })
    }

    it('and reports it in order, waiting for whoever listens', async () => {
      answerWith(sse(...SUM, STOP, '[DONE]'))
      const seen: string[] = []
      await attempt({
        onProgress: async (step) => {
          seen.push(`begin ${'text' in step ? step.text : ''}`)
          await new Promise(setImmediate)
          seen.push('end')
        },
      })
      expect(seen).to.deep.equal(['begin The sum ', 'end', 'begin is 4', 'end'])
    })

    const endings: [string, string, boolean][] = [
      ['neither finish reason nor terminator', sse(...SUM), false],
      ['the terminator only', sse(...SUM, '[DONE]'), true],
      ['the finish reason only', sse(...SUM, STOP), true],
      ['both', sse(...SUM, STOP, '[DONE]'), true],
      ['a terminator without a line end', `${sse(...SUM)}data: [DONE]`, true],
      ['half an event', `${sse(...SUM)}data: {"id":"cc-1","cho`, false],
      ['half an event after the finish reason', `${sse(...SUM, STOP)}data: {"id":"cc-1","cho`, true],
    ]
    for (const [ending, body, complete] of endings) {
      it(`that ends with ${ending} as ${complete ? 'complete' : 'cut'}`, async () => {
        answerWith(body)
        if (complete) expect((await attempt()).text).to.equal('The sum is 4')
        else expect(await failure(attempt())).to.include({ code: 'provider.stream_cut', retryable: true })
      })
    }

    it('whose connection breaks as cut, and as complete after the finish reason', async () => {
      beginWith(sse(...SUM), 'breaks')
      expect(await failure(attempt())).to.include({ code: 'provider.stream_cut', retryable: true })
      beginWith(sse(...SUM, STOP), 'breaks')
      expect((await attempt()).text).to.equal('The sum is 4')
    })

    it('with whole calls that is cut as cut', async () => {
      const call = { index: 0, id: 'a', function: { name: 'pay', arguments: '{"eur":5}' } }
      answerWith(sse(chunk({ tool_calls: [call] })))
      expect((await failure(attempt())).code).to.equal('provider.stream_cut')
    })

    it('that reports an error as that error, after what it had shown', async () => {
      const error = {
        id: 'x',
        choices: [],
        error: { message: 'worker queue full (9/8)', type: 'server_error', code: 502 },
      }
      answerWith(sse(...SUM, error, '[DONE]'), { ...EVENT_STREAM, 'x-request-id': 'req_7' })
      const options = attemptOptions()
      const thrown = await failure(attempt(options))
      expect(thrown).to.include({ code: 'provider.server_error', retryable: true, requestId: 'req_7' })
      expect(thrown.message).to.contain('worker queue full (9/8)')
      expect(options.progress).to.have.length(2)
      answerWith('event: error\ndata: no more\n\n')
      expect((await failure(attempt())).message).to.contain('no more')
    })

    it('with an event that is no JSON as malformed', async () => {
      answerWith(sse(...SUM, '{oops', STOP))
      expect(await failure(attempt())).to.include({ code: 'provider.malformed_answer', retryable: true })
    })
  })

  describe('reads a document', () => {
    const json = { 'content-type': 'application/json' }
    const whole = {
      id: 'cc-2',
      choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1 },
    }

    it('when one was asked for, without reporting progress', async () => {
      answerWith(JSON.stringify(whole), json)
      const options = attemptOptions()
      expect((await attempt(options, { streaming: false })).text).to.equal('Hi')
      expect(options.progress).to.deep.equal([])
      expect(JSON.parse(server.requests[0]?.body ?? '')).to.not.have.property('stream')
    })

    it('after blanks that kept the connection alive', async () => {
      server.answer = (response) =>
        sendInPieces(response.writeHead(200, json), `\n     \n\n${JSON.stringify(whole)}`, 3)
      expect((await attempt({}, { streaming: false })).text).to.equal('Hi')
    })

    it('where a stream was asked for, whatever it is labelled', async () => {
      answerWith(JSON.stringify(whole), EVENT_STREAM)
      const options = attemptOptions()
      expect((await attempt(options)).text).to.equal('Hi')
      expect(options.progress.map((step) => step.type)).to.deep.equal(['text', 'usage'])
      answerWith('{"error":{"message":"no such luck","code":429}}', json)
      expect(await failure(attempt())).to.include({ code: 'provider.rate_limit', status: undefined })
    })

    it('as a stream where a stream came instead', async () => {
      answerWith(sse(...SUM, STOP, '[DONE]'), json)
      expect((await attempt({}, { streaming: false })).text).to.equal('The sum is 4')
    })

    it('that is none as malformed', async () => {
      const bodies: [string, boolean, boolean][] = [
        ['<html>Welcome</html>', true, false],
        ['{"id":"cc-2","cho', false, true],
        ['upstream is tired', false, true],
        ['upstream is tired', true, true],
        ['', false, true],
      ]
      for (const [body, streaming, retryable] of bodies) {
        answerWith(body, json)
        const error = await failure(attempt({}, { streaming }))
        expect(error, body).to.include({ code: 'provider.malformed_answer', retryable })
      }
    })

    it('that breaks off as a failed connection', async () => {
      server.answer = (response) => {
        response
          .writeHead(200, { ...json, 'content-length': '900' })
          .write('{"id":', () => setImmediate(() => response.destroy()))
      }
      expect(await failure(attempt({}, { streaming: false }))).to.include({
        code: 'provider.connection',
        retryable: true,
      })
    })
  })
})
