import { expect } from 'chai'
import { cut, gate, rules, text } from '../../src/testing/index.ts'
import { clientOf, closeServers, hello, readStream, serverWith, streamedHello, user } from './support.ts'

describe('Gates of the model server', () => {
  afterEach(closeServers)

  it('hold the whole reply back until they are released', async () => {
    const held = gate(text('Now'))
    const server = await serverWith([held])
    let answered = false
    const asked = readStream(clientOf(server)).finally(() => {
      answered = true
    })
    const request = await held.reached
    expect(request).to.equal(server.requests[0])
    expect([answered, request.ended]).to.deep.equal([false, null])
    held.release()
    expect((await asked).text).to.equal('Now')
    expect(request.ended).to.equal('answered')
  })

  it('let one chunk out a step, and the end with the last', async () => {
    const held = gate(text('one two three'))
    const server = await serverWith([held])
    const asked = clientOf(server).chat.completions.create(streamedHello)
    await held.step()
    const chunks = (await asked)[Symbol.asyncIterator]()
    const nextText = async (): Promise<string> => {
      for (;;) {
        const { value, done } = await chunks.next()
        if (done === true) return 'end'
        if (value.choices[0]?.delta.content) return value.choices[0].delta.content
      }
    }
    expect(await nextText()).to.equal('one')
    await held.step()
    expect(await nextText()).to.equal(' two')
    await held.step()
    expect(await nextText()).to.equal(' three')
    expect(server.requests[0]?.ended).to.equal(null)
    await held.step()
    expect(server.requests[0]?.ended).to.equal('answered')
    expect(await nextText()).to.equal('end')
  })

  it('can be stepped and released before the request comes', async () => {
    const held = gate(text('a b'))
    const sent = [held.step(), held.step(), held.step()]
    const server = await serverWith([held])
    expect((await readStream(clientOf(server))).text).to.equal('a b')
    await Promise.all(sent)
    await held.step() // nothing is left: it resolves all the same
  })

  it('hold an answer that is not streamed as one chunk', async () => {
    const held = gate(text('a b'))
    const server = await serverWith([held])
    const asked = clientOf(server).chat.completions.create(hello)
    await held.step()
    expect((await asked).choices[0]?.message.content).to.equal('a b')
  })

  it('let a cut wait for its own step', async () => {
    const held = gate(cut({ after: 'Half', delayMs: 0 }))
    const server = await serverWith([held])
    const asked = readStream(clientOf(server))
    await held.step()
    expect(server.requests[0]?.ended).to.equal(null)
    await held.step()
    expect(server.requests[0]?.ended).to.equal('cut')
    expect((await asked).error).to.be.instanceOf(Error)
  })

  it('serve several requests at once', async () => {
    const held = gate(rules((request) => text(`Re: ${request.messages[0]?.content}`)))
    const server = await serverWith(() => held)
    const client = clientOf(server)
    const asked = ['A', 'B'].map((word) => readStream(client, { ...streamedHello, messages: [user(word)] }))
    await server.waitForRequests(2)
    held.release()
    expect((await Promise.all(asked)).map((stream) => stream.text)).to.deep.equal(['Re: A', 'Re: B'])
  })

  it('resolve a step whose client went away', async () => {
    const held = gate(text('a b'))
    const server = await serverWith([held])
    const leaving = new AbortController()
    clientOf(server)
      .chat.completions.create(streamedHello, { signal: leaving.signal })
      .catch(() => {})
    const request = await held.reached
    leaving.abort()
    expect(await server.waitForEnd(request)).to.equal('aborted')
    await held.step()
    expect(request.ended).to.equal('aborted')
  })
})
