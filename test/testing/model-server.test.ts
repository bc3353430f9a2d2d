import { expect } from 'chai'
import { execa } from 'execa'
import { ConnectionError } from '../../src/errors.ts'
import type { ReplyFunction } from '../../src/testing/index.ts'
import { gate, hang, startModelServer, text } from '../../src/testing/index.ts'
import { clientOf, closeServers, failureOf, hello, readStream, serverWith, streamedHello, user } from './support.ts'

const tools = [{ type: 'function' as const, function: { name: 'clock', parameters: { type: 'object' } } }]

describe('The model server', () => {
  afterEach(closeServers)

  describe('respond', () => {
    it('uses a script in order and then fails with a clear text, which the client does not retry', async () => {
      const server = await serverWith([text('one'), text('two')])
      const client = clientOf(server)
      client.maxRetries = 2
      const first = await client.chat.completions.create(hello)
      const second = await client.chat.completions.create(hello)
      expect([first, second].map((answer) => answer.choices[0]?.message.content)).to.deep.equal(['one', 'two'])
      const error = await failureOf(client.chat.completions.create(hello))
      expect(error).to.include({ status: 500 })
      expect(error.message).to.contain('the script has no reply left')
      expect(server.requests.length).to.equal(3)
    })

    it('asks a function, which may take its time', async () => {
      const respond: ReplyFunction = async (request, index) => text(`${index} ${request.model}`)
      const server = await serverWith(respond)
      expect((await readStream(clientOf(server))).text).to.equal('0 test-model')
    })

    it('turns an error of the function into a 500 with its text', async () => {
      const server = await serverWith(() => {
        throw new TypeError('a bug in the test')
      })
      const error = await failureOf(clientOf(server).chat.completions.create(hello))
      expect(error).to.include({ status: 500 })
      expect(error.message).to.contain('a bug in the test')
      expect(server.requests[0]?.ended).to.equal('failed')
    })

    it('has no reply when it is left out', async () => {
      const server = await serverWith(undefined)
      const error = await failureOf(clientOf(server).chat.completions.create(hello))
      expect(error.message).to.contain('no reply left')
    })
  })

  describe('the log', () => {
    it('holds what was asked, with the key masked', async () => {
      const server = await serverWith([text('Hi')])
      const from = Date.now()
      await clientOf(server, { 'x-threadmill-chat': 'chat-1' }).chat.completions.create({ ...hello, tools })
      const [request] = server.requests
      expect(request).to.deep.include({ id: 'req_1', model: 'test-model', messages: hello.messages, tools })
      expect(request).to.include({ chat: 'chat-1', ended: 'answered' })
      expect(request?.headers.authorization).to.equal('Bearer ***')
      expect(JSON.stringify(request)).to.not.contain('sk-test')
      expect(request?.startedAt).to.be.at.least(from)
      expect(request?.endedAt).to.be.at.least(request?.startedAt ?? Number.NaN)
    })

    it('takes the chat from the user field, or has none', async () => {
      const server = await serverWith(text('Hi'))
      await clientOf(server).chat.completions.create({ ...hello, user: 'chat-2' })
      await clientOf(server).chat.completions.create(hello)
      expect(server.requests.map((request) => request.chat)).to.deep.equal(['chat-2', null])
    })

    it('lets a test wait for a number of requests', async () => {
      const server = await serverWith(text('Hi'))
      const waited = server.waitForRequests(2)
      const client = clientOf(server)
      await client.chat.completions.create(hello)
      await client.chat.completions.create({ ...hello, model: 'second' })
      expect((await waited).map((request) => request.model)).to.deep.equal(['test-model', 'second'])
      expect((await server.waitForRequests(1)).length).to.equal(1)
    })

    it('pairs the requests of one chat that were open at the same time', async () => {
      const held = gate(text('late'))
      const server = await serverWith((request) => (request.model === 'held' ? held : text('at once')))
      const [a, b] = ['a', 'b'].map((chat) => clientOf(server, { 'x-threadmill-chat': chat }))
      if (a === undefined || b === undefined) return
      const first = a.chat.completions.create({ ...hello, model: 'held' })
      await held.reached
      await b.chat.completions.create(hello)
      await clientOf(server).chat.completions.create(hello)
      expect(server.overlaps()).to.deep.equal([])
      await a.chat.completions.create(hello)
      held.release()
      await first
      expect(server.overlaps()).to.deep.equal([[server.requests[0], server.requests[3]]])
    })

    it('sees no overlap in requests that follow each other at once, answered or given up', async () => {
      const server = await serverWith((_, index) => (index % 2 === 0 ? text('a b') : hang({ after: 'x' })))
      const client = clientOf(server, { 'x-threadmill-chat': 'same' })
      for (let round = 0; round < 20; round++) {
        await readStream(client)
        const stream = await client.chat.completions.create(streamedHello)
        for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'x') break
        const last = server.requests.at(-1)
        if (last !== undefined) await server.waitForEnd(last)
      }
      expect(server.requests.length).to.equal(40)
      expect(server.overlaps()).to.deep.equal([])
    })
  })

  describe('strict reading', () => {
    const call = { id: 'c1', type: 'function' as const, function: { name: 'clock', arguments: '{}' } }
    const asking = { role: 'assistant' as const, content: null, tool_calls: [call] }
    const result = (id: string) => ({ role: 'tool' as const, tool_call_id: id, content: 'noon' })

    it('takes a transcript whose results follow their calls', async () => {
      const server = await serverWith([text('Noon.')])
      const messages = [user('time?'), asking, result('c1')]
      const answer = await clientOf(server).chat.completions.create({ ...hello, messages })
      expect(answer.choices[0]?.message.content).to.equal('Noon.')
    })

    for (const [what, messages] of [
      ['a call without a result', [user('time?'), asking, user('hello?')]],
      ['a call without a result at the end', [user('time?'), asking]],
      ['a result without a call', [user('time?'), result('c1')]],
      ['a result that comes twice', [user('time?'), asking, result('c1'), result('c1')]],
      ['no messages', []],
    ] as const) {
      it(`refuses ${what} and uses up no reply`, async () => {
        const server = await serverWith([text('kept')])
        const client = clientOf(server)
        const error = await failureOf(client.chat.completions.create({ ...hello, messages: [...messages] }))
        expect(error).to.include({ status: 400 })
        expect((await client.chat.completions.create(hello)).choices[0]?.message.content).to.equal('kept')
      })
    }

    it('can be turned off', async () => {
      const server = await serverWith([text('fine')], { strict: false })
      const answer = await clientOf(server).chat.completions.create({ ...hello, messages: [user('time?'), asking] })
      expect(answer.choices[0]?.message.content).to.equal('fine')
    })

    it('refuses other paths and bodies without logging them', async () => {
      const server = await serverWith([])
      const error = await failureOf(clientOf(server).models.list())
      expect(error).to.include({ status: 404 })
      for (const body of ['{', '[]', '{"model":"m"}', '{"model":"m","messages":[1]}']) {
        const response = await fetch(`${server.url}/chat/completions`, { method: 'POST', body })
        expect(response.status).to.equal(400)
      }
      expect(server.requests).to.deep.equal([])
    })
  })

  describe('close', () => {
    it('cuts what is open, ends every wait and stops listening', async () => {
      const server = await startModelServer({ respond: hang({ after: '' }) })
      const asked = readStream(clientOf(server))
      const [request] = await server.waitForRequests(1)
      const waiting = failureOf(server.waitForRequests(5))
      await server.close()
      await server.close()
      expect((await asked).error).to.be.instanceOf(Error)
      expect(request?.ended).to.equal('cut')
      const error = await waiting
      expect(error).to.be.instanceOf(ConnectionError)
      expect(error.message).to.contain('waited for 5 requests; 1 came')
      expect((await failureOf(clientOf(server).chat.completions.create(hello))).constructor.name).to.equal(
        'APIConnectionError',
      )
    })

    it('leaves nothing that would keep a process alive', async () => {
      const index = new URL('../../src/testing/index.ts', import.meta.url).href
      const script = `
        import OpenAI from 'openai'
        import { gate, hang, startModelServer, text } from ${JSON.stringify(index)}
        const replies = [text('Hi'), hang(), gate(text('never')), text('slow', { delayMs: 3600000 })]
        const server = await startModelServer({ respond: replies })
        const client = new OpenAI({ baseURL: server.url, apiKey: 'k', maxRetries: 0 })
        const ask = () => client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
        await ask()
        const open = [ask(), ask(), ask()]
        await server.waitForRequests(4)
        await server.close()
        await Promise.allSettled(open)
        console.log(process.getActiveResourcesInfo().filter((name) => !/PipeWrap|TTY/.test(name)).join() || 'none')`
      const { stdout } = await execa(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
        timeout: 20_000,
      })
      expect(stdout.trim()).to.not.match(/TCPServer|TCPSocket|Timeout/)
      expect(stdout.trim()).to.not.equal('')
    }).timeout(30_000)
  })
})
