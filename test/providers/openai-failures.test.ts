import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect } from 'chai'
import { ConfigurationError } from '../../src/errors.ts'
import { openAiClient } from '../../src/providers/openai.ts'
import type { AttemptOptions } from '../../src/providers/provider.ts'
import { clientOfLocalServer, EVENT_STREAM, STOP, SUM } from './local-client.ts'
import { attemptOptions, chunk, minimalRequest, rejection, sse, until } from './scripted-server.ts'

describe('An attempt through a client for Chat Completions', () => {
  const { server, attempt, answerWith, beginWith, failure } = clientOfLocalServer()

  describe('fails', () => {
    it('before anything is sent when a header can’t be, and doesn’t show its value', async () => {
      const error = await rejection(attempt({ headers: { 'x-token': 'hidden-value-1\nx' } }))
      expect(error).to.be.instanceOf(ConfigurationError)
      expect((error as Error).message).to.not.contain('hidden-value-1')
      expect(server.requests).to.have.length(0)
    })

    it('with the server’s words and without the key when the status says so', async () => {
      answerWith('{"error":"who is secret-key-1?"}', { 'x-request-id': 'req_5' }, 401)
      const error = await failure(attempt())
      expect(error).to.include({ code: 'provider.authentication', status: 401, requestId: 'req_5' })
      expect(error.message).to.contain('who is ***?').and.contain('Check the API key')
      expect(JSON.stringify([error.message, error.stack, error.cause])).to.not.contain('secret-key-1')
    })

    it('as never having reached the provider when nobody listens or the host is unknown', async () => {
      const port = createServer().listen(0, '127.0.0.1')
      await once(port, 'listening')
      const address = port.address() as { port: number }
      port.close()
      await once(port, 'close')
      for (const baseURL of [`http://127.0.0.1:${address.port}/v1`, 'http://no-such-host.invalid/v1']) {
        const error = await failure(openAiClient({ apiKey: 'k', baseURL }).attempt(minimalRequest(), attemptOptions()))
        expect(error).to.include({ code: 'provider.connection', retryable: true, reachedProvider: false })
      }
    })

    it('as perhaps having reached the provider when the connection breaks before the answer', async () => {
      server.answer = (response) => void response.destroy()
      expect(await failure(attempt())).to.include({
        code: 'provider.connection',
        retryable: true,
        reachedProvider: true,
      })
    })

    it('when the whole attempt takes too long, before or within the answer', async () => {
      server.answer = () => {}
      expect(await failure(attempt({ timeoutMs: 30 }))).to.include({ code: 'provider.timeout', retryable: true })
      beginWith(sse(...SUM), 'is silent')
      expect(await failure(attempt({ timeoutMs: 60 }))).to.include({ code: 'provider.timeout', retryable: true })
      await until(() => server.open === 0)
    })

    it('when a stream is silent for too long, but not once its finish reason came', async () => {
      beginWith(sse(...SUM), 'is silent')
      expect(await failure(attempt({ idleMs: 30 }))).to.include({ code: 'provider.stream_idle', retryable: true })
      beginWith(sse(...SUM, STOP), 'is silent')
      expect((await attempt({ idleMs: 200 })).text).to.equal('The sum is 4')
      await until(() => server.open === 0)
    })

    it('not for silence when a document was asked for, and not for a slow listener', async () => {
      server.answer = (response) => {
        response.writeHead(200).write(' ')
        setTimeout(() => response.end('{"choices":[{"message":{"content":"Late"}}]}'), 60)
      }
      expect((await attempt({ idleMs: 10 }, { streaming: false })).text).to.equal('Late')
      answerWith(sse(...SUM, STOP, '[DONE]'))
      const slow = () => new Promise<void>((resolve) => setTimeout(resolve, 250))
      expect((await attempt({ idleMs: 200, onProgress: slow })).text).to.equal('The sum is 4')
    })

    it('with the reason of the signal as it is, at every stage, and lets the connection go', async () => {
      const reason = { why: 'stopped' }
      expect(await rejection(attempt({ signal: AbortSignal.abort(reason) }))).to.equal(reason)
      expect(server.requests).to.have.length(0)

      const waiting = new AbortController()
      server.answer = () => waiting.abort(reason)
      expect(await rejection(attempt({ signal: waiting.signal }))).to.equal(reason)

      const reading = new AbortController()
      beginWith(sse(...SUM), 'is silent')
      expect(await rejection(attempt({ signal: reading.signal, onProgress: () => reading.abort(reason) }))).to.equal(
        reason,
      )

      const listening = new AbortController()
      const never = () => new Promise<void>(() => listening.abort(reason))
      expect(await rejection(attempt({ signal: listening.signal, onProgress: never }))).to.equal(reason)

      const finished = new AbortController()
      beginWith(sse(...SUM, chunk({}, { finish_reason: 'stop', usage: { prompt_tokens: 1 } })), 'is silent')
      const onProgress: AttemptOptions['onProgress'] = (step) => {
        if (step.type === 'usage') setImmediate(() => finished.abort(reason))
      }
      expect(await rejection(attempt({ signal: finished.signal, onProgress }))).to.equal(reason)
      await until(() => server.open === 0)
    })

    it('with what the listener throws, as it is, and lets the connection go', async () => {
      const thrown = new Error('listener')
      const throwing: AttemptOptions['onProgress'][] = [
        () => {
          throw thrown
        },
        () => Promise.reject(thrown),
      ]
      for (const onProgress of throwing) {
        beginWith(sse(...SUM, STOP), 'is silent')
        expect(await rejection(attempt({ onProgress }))).to.equal(thrown)
      }
      await until(() => server.open === 0)
    })
  })

  it('uses its connection again after a whole answer, and leaves no listener on the signal', async () => {
    server.answer = (response) => {
      response
        .writeHead(200, EVENT_STREAM)
        .write(sse(...SUM, STOP, '[DONE]'), () => setTimeout(() => response.end(), 5))
    }
    await attempt()
    const before = server.connections
    const { signal } = new AbortController()
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1
      remove(...args)
    }
    for (let n = 0; n < 5; n += 1) await attempt({ signal })
    expect(server.connections - before).to.be.lessThan(2)
    expect(listeners).to.equal(0)
  })

  it('comes back soon from a server that keeps the connection open after the terminator', async () => {
    beginWith(sse(...SUM, STOP, '[DONE]'), 'is silent')
    const begun = Date.now()
    expect((await attempt()).text).to.equal('The sum is 4')
    expect(Date.now() - begun).to.be.lessThan(5_000)
    await until(() => server.open === 0)
  })
})
