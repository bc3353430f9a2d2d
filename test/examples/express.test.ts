import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { support } from '../../examples/express/agents.ts'
import { createApp } from '../../examples/express/app.ts'
import type { ChatEvent, Threadmill } from '../../src/index.ts'
import { type Gate, gate, text, toolCalls } from '../../src/testing/index.ts'
import { environmentOf, type RunningCli, startCli } from '../cli/run-cli.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const workerFile = join(import.meta.dirname, '../../examples/express/worker.ts')
const refund = { name: 'refund_order', arguments: { order: '42' } }

onEachDatabase('The Express example', (kind) => {
  const bench = useBench(kind)
  let mill: Threadmill
  let server: Server
  let worker: RunningCli | undefined
  const open = new Set<AbortController>()

  beforeEach(async () => {
    mill = await bench.connect({ agents: [support] })
    server = (await createApp(mill)).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(async () => {
    for (const reader of open) reader.abort()
    open.clear()
    worker?.process.emit('SIGTERM')
    await worker?.ended
    worker = undefined
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })

  /** `threadmill worker --app worker.ts`, as in the README. */
  async function startWorker(): Promise<void> {
    const started = startCli(['worker', '--app', workerFile], { env: environmentOf(bench.options()) })
    worker = started
    const ended = started.ended.then(({ code, err }) => `it ended with ${code}: ${err}`)
    const ready = until('the worker is ready', () => started.out().includes('ready'), 60_000).then(() => 'ready')
    expect(await Promise.race([ready, ended])).to.equal('ready')
  }

  const url = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  async function post(path: string, body: object = {}, user = 'anna'): Promise<{ status: number; body: string }> {
    const headers = { 'content-type': 'application/json', ...(user === '' ? {} : { 'x-user': user }) }
    const response = await fetch(url(path), { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: await response.text() }
  }
  async function makeChat(): Promise<string> {
    const { status, body } = await post('/chats')
    expect(status).to.equal(201)
    return (JSON.parse(body) as { id: string }).id
  }
  const look = (path: string, headers: Record<string, string> = {}, signal: AbortSignal | null = null) =>
    fetch(url(path), { headers: { 'x-user': 'anna', ...headers }, signal })

  /** Reads events as a browser does, until one of this type is there; leaves the connection open or closes it then. */
  async function read(id: string, last: (event: ChatEvent) => boolean, lastEventId?: string) {
    const leaving = new AbortController()
    open.add(leaving)
    const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const response = await look(`/chats/${id}/events`, headers, leaving.signal)
    expect(response.headers.get('content-type')).to.match(/^text\/event-stream/)
    const frames = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    const events: ChatEvent[] = []
    const done = (async () => {
      for await (const frame of frames ?? []) {
        const event = JSON.parse(frame.data) as ChatEvent
        expect(frame.id).to.equal(event.id)
        events.push(event)
        if (last(event)) break
      }
      leaving.abort()
      return events
    })()
    return { events, done }
  }
  async function notesOf(chatId: string) {
    const notes = await mill.sequelize.model('OrderNote').findAll({ where: { chatId } })
    return notes.map((note) => note.get('text'))
  }
  const ends = (event: ChatEvent) => event.type === 'run.finished' || event.type === 'run.cancelled'
  const textOf = (events: readonly ChatEvent[]) =>
    events.map((event) => (event.type === 'text.delta' ? event.text : '')).join('')

  it('shows the answer to a message, and keeps the note that was posted with it', async () => {
    await bench.script([text('It is on its way.')])
    await startWorker()
    const id = await makeChat()
    const { done } = await read(id, ends)
    expect((await post(`/chats/${id}/messages`, { text: 'Where is it?', order: '42' })).status).to.equal(202)
    expect(textOf(await done)).to.equal('It is on its way.')
    expect(await notesOf(id)).to.deep.equal(['Where is it?'])
  }).timeout(120_000)

  it('goes on in the middle of an answer where a reader left off, without gap or double', async () => {
    const words = 'one two three four five six seven eight'
    const held: Gate = gate(text(words))
    await bench.script([held])
    await startWorker()
    const id = await makeChat()
    const first = await read(id, (event) => event.type === 'text.delta')
    await post(`/chats/${id}/messages`, { text: 'Count' })
    await held.reached
    for (let chunk = 0; chunk < 4; chunk++) await held.step()
    const seen = await first.done
    expect(textOf(seen)).not.to.equal('')
    for (let chunk = 0; chunk < 2; chunk++) await held.step()
    const second = await read(id, ends, seen.at(-1)?.id)
    held.release()
    const rest = await second.done
    expect(textOf(seen) + textOf(rest)).to.equal(words)
    const ids = [...seen, ...rest].map((event) => event.id)
    expect(new Set(ids).size).to.equal(ids.length)
    expect(rest.map(({ type }) => type)).not.to.include('resync')
  }).timeout(120_000)

  it('runs a refund once somebody has approved it, and not when it is denied', async () => {
    await bench.script([toolCalls([refund]), text('Refunded.'), toolCalls([refund]), text('Not refunded.')])
    await startWorker()
    const id = await makeChat()
    let after: string | undefined
    for (const [approve, content, answer] of [
      [true, 'Order 42 is refunded.', 'Refunded.'],
      [false, /denied|refused/i, 'Not refunded.'],
    ] as const) {
      const waiting = await read(id, (event) => event.type === 'run.waiting', after)
      await post(`/chats/${id}/messages`, { text: 'Refund order 42' })
      const asked = (await waiting.done).at(-1)
      const callId = asked?.type === 'run.waiting' ? asked.toolCalls[0]?.toolCallId : ''
      const answered = await read(id, ends, asked?.id)
      const decided = await post(`/chats/${id}/approvals/${callId}`, { approve })
      expect(decided).to.deep.equal({ status: 204, body: '' })
      expect((await post(`/chats/${id}/approvals/${callId}`, { approve: !approve })).status).to.equal(409)
      const events = await answered.done
      const result = events.find((event) => event.type === 'tool.result')
      if (typeof content === 'string') expect(result?.content).to.equal(content)
      else expect(result?.content).to.match(content)
      expect(textOf(events)).to.equal(answer)
      after = events.at(-1)?.id
    }
  }).timeout(120_000)

  it('stores neither note nor message while a call waits for a decision', async () => {
    await bench.script([toolCalls([refund])])
    await startWorker()
    const id = await makeChat()
    const waiting = await read(id, (event) => event.type === 'run.waiting')
    await post(`/chats/${id}/messages`, { text: 'Refund order 42', order: '42' })
    await waiting.done
    await until('the worker has left it', async () => !(await (await mill.chats.find(id)).running()))
    const refused = await post(`/chats/${id}/messages`, { text: 'And?', order: '43' })
    expect(refused.status).to.equal(409)
    expect(JSON.parse(refused.body)).to.have.property('error')
    expect(await notesOf(id)).to.deep.equal(['Refund order 42'])
  }).timeout(120_000)

  it('cancels', async () => {
    const held = gate(text('never seen'))
    await bench.script([held])
    await startWorker()
    const id = await makeChat()
    const { done } = await read(id, ends)
    await post(`/chats/${id}/messages`, { text: 'Count' })
    await held.reached
    expect((await post(`/chats/${id}/cancel`)).status).to.equal(204)
    expect((await done).at(-1)?.type).to.equal('run.cancelled')
  }).timeout(120_000)

  it('refuses strangers, other owners, and what is not there', async () => {
    const id = await makeChat()
    for (const path of ['messages', 'approvals/x', 'cancel']) {
      expect((await post(`/chats/${id}/${path}`, { text: 'hi', approve: true }, 'bert')).status).to.equal(403)
    }
    expect((await look(`/chats/${id}/events`, { 'x-user': 'bert' })).status).to.equal(403)
    expect(await (await mill.chats.find(id)).messages()).to.deep.equal([])
    expect((await post('/chats', {}, '')).status).to.equal(401)
    expect((await post('/chats/nothing/cancel')).status).to.equal(404)
    expect((await post(`/chats/${id}/approvals/nothing`, { approve: true })).status).to.equal(400)
    expect((await post(`/chats/${id}/messages`, { words: 'hi' })).status).to.equal(400)
    expect((await look(`/chats/${id}/events`, { 'last-event-id': 'yesterday' })).status).to.equal(400)
  }).timeout(120_000)
})
