import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { execa } from 'execa'
import { AnswerTooLargeError } from '../../src/errors.ts'
import type { AnswerProgress } from '../../src/providers/provider.ts'
import { clientOfLocalServer, EVENT_STREAM, STOP } from './local-client.ts'
import { chunk, sse, until } from './scripted-server.ts'

const MIB = 1024 * 1024
const letters = 'x'.repeat(1000)
const callPiece = (piece: object) => sse(chunk({ tool_calls: [piece] }))

/** What a server can send without end: how it begins, and what comes over and over. */
const endless: Readonly<Record<string, readonly [begin: string, again: string]>> = {
  text: ['', sse(chunk({ content: letters }))],
  reasoning: ['', sse(chunk({ reasoning_content: letters }))],
  'hidden reasoning': ['', sse(chunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: letters }] }))],
  'tool arguments': [
    callPiece({ index: 0, id: 'a', function: { name: 'f', arguments: '{"t":"' } }),
    callPiece({ index: 0, function: { arguments: letters } }),
  ],
  'tool calls': ['', callPiece({ id: 'a', function: { name: 'f', arguments: '{"a":1}' } })],
  sources: ['', sse(chunk({ annotations: Array.from(letters) }))],
  comments: ['', `: ${letters}\n\n`],
  'empty deltas': ['', sse(chunk({})).repeat(50)],
  'unknown fields': ['', sse({ padding: letters })],
  'blank events': ['', 'data: \n\n'.repeat(500)],
  'blank lines': ['', '\n'.repeat(4000)],
  'carriage returns': [sse(chunk({ content: 'a' })), '\r'.repeat(4000)],
  'one event': ['data: {"x":"', letters],
  'lines of one event': ['', `data: ${letters}\n`],
  'one document': ['{"x":"', letters],
  'an empty document': ['{', ' '.repeat(4000)],
}

describe('An answer that is too large', () => {
  const { server, attempt, answerWith, failure } = clientOfLocalServer()

  async function sendForever(response: ServerResponse, begin: string, again: string): Promise<void> {
    response.writeHead(200, EVENT_STREAM).write(begin === '' ? ': \n\n' : begin)
    const gone = once(response, 'close')
    while (!response.destroyed) if (!response.write(again)) await Promise.race([once(response, 'drain'), gone])
  }

  for (const [what, [begin, again]] of Object.entries(endless)) {
    it(`is cut off where it is ${what} without end, and its connection closed (E100, E101)`, async () => {
      let sent = 0
      server.answer = async (response) => {
        const { socket } = response
        await sendForever(response, begin, again)
        sent = socket?.bytesWritten ?? 0
      }
      const error = await failure(attempt({ maxAnswerBytes: MIB }))
      expect(error).to.be.instanceOf(AnswerTooLargeError)
      expect(error).to.include({ code: 'provider.answer_too_large', retryable: false, reachedProvider: true })
      expect(error.message).to.contain('m-test').and.contain(`${MIB} bytes`).and.contain('maxAnswerBytes')
      await until(() => server.open === 0)
      // The rest was on its way, in the buffers of two sockets.
      expect(sent).to.be.lessThan(40 * MIB)
    })
  }

  it('is measured by the bytes of its text, reasoning and arguments together (E100)', async () => {
    const call = { index: 0, id: 'ab', function: { name: 'f', arguments: '{"é":1}' } }
    const body = sse(chunk({ content: 'éé' }), chunk({ tool_calls: [call] }), STOP, '[DONE]')
    answerWith(body)
    // Two letters of two bytes each; an id, a name, arguments, and a row.
    const bytes = 4 + 2 + 1 + 8 + 1024
    expect((await attempt({ maxAnswerBytes: bytes })).text).to.equal('éé')
    expect((await failure(attempt({ maxAnswerBytes: bytes - 1 }))).code).to.equal('provider.answer_too_large')
    const reasoned = sse(chunk({ reasoning: 'é', content: 'a' }), STOP)
    answerWith(reasoned)
    // The reasoning is kept to be shown, and as JSON to go back.
    expect((await attempt({ maxAnswerBytes: 2 + 4 + 1 })).thinking).to.equal('é')
    expect((await failure(attempt({ maxAnswerBytes: 2 + 4 }))).code).to.equal('provider.answer_too_large')
  })

  it('shows nothing beyond the limit (E100)', async () => {
    const shown: AnswerProgress[] = []
    answerWith(sse(chunk({ content: letters }), chunk({ content: letters }), STOP))
    await failure(attempt({ maxAnswerBytes: 1500, onProgress: (step) => void shown.push(step) }))
    expect(shown).to.deep.equal([{ type: 'text', text: letters }])
  })

  it('is refused as a document too, read no further than needed (E100, E101)', async () => {
    const json = { 'content-type': 'application/json' }
    answerWith(JSON.stringify({ choices: [{ message: { content: 'x'.repeat(3 * MIB) } }] }), json)
    const request = { streaming: false }
    expect((await failure(attempt({ maxAnswerBytes: MIB }, request))).code).to.equal('provider.answer_too_large')
    expect((await attempt({ maxAnswerBytes: 3 * MIB }, request)).text).to.have.length(3 * MIB)
  })

  it('is none where single letters come with hundreds of bytes around each (E101)', async () => {
    const letter = sse(chunk({ content: 'y' }, { padding: 'z'.repeat(350) }))
    answerWith(letter.repeat(50_000) + sse(STOP))
    expect((await attempt({ maxAnswerBytes: 50_000 })).text).to.have.length(50_000)
  })

  it('is none once its finish reason came, whatever is sent after it (E101)', async () => {
    server.answer = (response) => sendForever(response, sse(chunk({ content: 'Whole.' }), STOP), `: ${letters}\n\n`)
    expect((await attempt({ maxAnswerBytes: MIB })).text).to.equal('Whole.')
    await until(() => server.open === 0)
  })

  it('is no refusal either: of an endless one the beginning is read (E101)', async () => {
    server.answer = async (response) => {
      response.writeHead(500, { 'content-type': 'text/plain' }).write('The kitchen is on fire. ')
      const gone = once(response, 'close')
      while (!response.destroyed) if (!response.write(letters)) await Promise.race([once(response, 'drain'), gone])
    }
    const error = await failure(attempt())
    expect(error).to.include({ code: 'provider.server_error', status: 500 })
    expect(error.message).to.contain('The kitchen is on fire.')
    await until(() => server.open === 0)
  })

  it('of 50 MB, or without end, does not fill the memory of a small process (E100, E101)', async function () {
    this.timeout(60_000)
    const argument = callPiece({ index: 0, id: 'a', function: { name: 'f', arguments: 'x'.repeat(50_000_000) } })
    const whole = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(50_000_000) } }] })
    server.answer = (response, _, body) => {
      const wanted = (JSON.parse(body) as { model: string }).model
      if (wanted === '50 MB of arguments') return void response.writeHead(200, EVENT_STREAM).end(argument)
      if (wanted === '50 MB whole') return void response.writeHead(200).end(whole)
      const [begin, again] = endless[wanted] ?? ['', '']
      return sendForever(response, begin, again)
    }
    const names = [
      '50 MB of arguments',
      '50 MB whole',
      'text',
      'tool arguments',
      'comments',
      'one event',
      'one document',
    ]
    const app = join(import.meta.dirname, 'support/small-process.ts')
    const flags = ['--max-old-space-size=160', '--conditions=threadmill-source', '--import', 'tsx']
    const { stdout } = await execa(process.execPath, [...flags, app, server.baseURL, ...names])
    expect(JSON.parse(stdout)).to.deep.equal(names.map((name) => [name, 'provider.answer_too_large']))
  })
})
