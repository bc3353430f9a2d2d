import { expect } from 'chai'
import * as z from 'zod'
import { BadRequestError, defineAgent, defineTool } from '../../src/index.ts'
import { gate, httpError, rawSse, streamError, text } from '../../src/testing/index.ts'
import { chunk, sse } from '../providers/scripted-server.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { collector, eventsOf, ofType, rejectionOf } from './support/watching.ts'

const patient = defineAgent({ name: 'patient', retries: 2 })

onEachDatabase('Streaming to the caller', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })

  it('shows every chunk under the id of the row that the answer becomes (S84)', async () => {
    await bench.script([text('Oslo lies on a fjord.', { chunks: 7 })])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const { chunks, onChunk } = collector()
    const rowsMeanwhile: number[] = []
    const answer = await chat.ask('Where is Oslo?', {}, async (seen) => {
      onChunk(structuredClone(seen))
      rowsMeanwhile.push((await chat.messages()).length)
    })
    expect(answer?.content).to.equal('Oslo lies on a fjord.')
    expect(chunks).to.have.length(7)
    expect(chunks.map(({ index }) => index)).to.deep.equal([0, 1, 2, 3, 4, 5, 6])
    expect(new Set(chunks.map(({ messageId }) => messageId))).to.deep.equal(new Set([answer?.id]))
    expect(new Set(chunks.map(({ message }) => message.id))).to.deep.equal(new Set([answer?.id]))
    for (const [at, { message }] of chunks.entries()) {
      const shown = chunks.slice(0, at + 1).map((seen) => seen.text)
      expect(message.content).to.equal(shown.join(''))
    }
    expect(rowsMeanwhile, 'rows while it streams').to.deep.equal([1, 1, 1, 1, 1, 1, 1])
    const stored = await mill.models.Message.findByPk(answer?.id)
    expect(stored?.content).to.equal(chunks.map((seen) => seen.text).join(''))
  })

  it('shows thinking apart from the text and stores both (S84)', async () => {
    await bench.script([text('Yes.', { thinking: 'Let me see.' })])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const { chunks, onChunk } = collector()
    const answer = await chat.ask('Really?', {}, onChunk)
    expect(chunks.map((seen) => seen.thinking ?? '').join('')).to.equal('Let me see.')
    expect(chunks.map((seen) => seen.text).join('')).to.equal('Yes.')
    expect(chunks.map(({ index }) => index)).to.deep.equal(chunks.map((_, at) => at))
    expect([answer?.thinkingText, answer?.content]).to.deep.equal(['Let me see.', 'Yes.'])
  })

  it('gives each of two interleaved calls its own arguments, in the rows and when they run (S85, B11)', async () => {
    const piece = (index: number, rest: object) => chunk({ tool_calls: [{ index, ...rest }] })
    const open = (index: number, id: string) =>
      piece(index, { id, type: 'function', function: { name: 'look', arguments: '' } })
    const stream = sse(
      open(0, 'call_a'),
      open(1, 'call_b'),
      piece(1, { function: { arguments: '{"city":' } }),
      piece(0, { function: { arguments: '{"city"' } }),
      piece(1, { function: { arguments: '"Bergen"}' } }),
      piece(0, { function: { arguments: ':"Oslo"}' } }),
      chunk({}, { finish_reason: 'tool_calls' }),
      '[DONE]',
    )
    await bench.script([rawSse(stream, { pieces: 40 }), text('Both are wet.')])
    const ran: string[] = []
    const look = defineTool({
      name: 'look',
      description: 'Looks at the weather.',
      parameters: z.object({ city: z.string() }),
      execute: ({ city }) => {
        ran.push(city)
        return `rain in ${city}`
      },
    })
    const agent = defineAgent({ name: 'weather', tools: [look] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Oslo and Bergen?')
    const [, asking] = await chat.messages()
    expect(asking?.toolCalls.map((call) => call.arguments)).to.deep.equal([{ city: 'Oslo' }, { city: 'Bergen' }])
    expect(ran).to.deep.equal(['Oslo', 'Bergen'])
    const sent = bench.model.requests[1]?.messages.filter((message) => message.role === 'tool')
    expect(sent?.map((message) => message.content)).to.deep.equal(['rain in Oslo', 'rain in Bergen'])
  })

  it('retries in silence what fails before the first chunk (S86)', async () => {
    await bench.script([httpError(503, 'busy', { 'retry-after-ms': '1' }), text('Here I am.')])
    const mill = await bench.connect({ agents: [patient] })
    const chat = await mill.chats.create({ agent: patient })
    const { chunks, onChunk } = collector()
    const answer = await chat.ask('Hello?', {}, onChunk)
    const events = await eventsOf(chat)
    expect(bench.model.requests).to.have.length(2)
    expect(ofType(events, 'attempt.restarted')).to.deep.equal([])
    expect(ofType(events, 'run.failed')).to.deep.equal([])
    expect(chunks.map(({ index }) => index)).to.deep.equal([0, 1, 2])
    expect(new Set(chunks.map(({ messageId }) => messageId))).to.deep.equal(new Set([answer?.id]))
  })

  it('announces a retry after shown text and starts under a new id, from index 0 (S86, B17)', async () => {
    await bench.script([streamError('the machine is on fire', { after: 'Half an' }), text('A whole answer.')])
    const mill = await bench.connect({ agents: [patient] })
    const chat = await mill.chats.create({ agent: patient })
    const { chunks, onChunk } = collector()
    const answer = await chat.ask('Hello?', {}, onChunk)
    const [first, ...rest] = [...new Set(chunks.map(({ messageId }) => messageId))]
    expect(rest).to.deep.equal([answer?.id])
    expect(chunks.map(({ index }) => index)).to.deep.equal([0, 1, 0, 1, 2])
    const events = await eventsOf(chat)
    const restarts = ofType(events, 'attempt.restarted')
    expect(restarts.map(({ messageId, replaces }) => [messageId, replaces])).to.deep.equal([[answer?.id, first]])
    const at = (type: string) => events.findIndex((event) => event.type === type)
    const shown = events.flatMap((event) => (event.type === 'text.delta' ? [event.messageId] : []))
    expect(new Set(shown)).to.deep.equal(new Set([first, answer?.id]))
    expect(at('attempt.restarted')).to.be.lessThan(
      events.findIndex((event) => event.type === 'text.delta' && event.messageId === answer?.id),
    )
    const messages = await chat.messages()
    expect(messages.map((message) => [message.role, message.content])).to.deep.equal([
      ['user', 'Hello?'],
      ['assistant', 'A whole answer.'],
    ])
  })

  it('never retries a refusal of the request itself (S86)', async () => {
    await bench.script([httpError(400, 'there is no such parameter'), text('too late')])
    const mill = await bench.connect({ agents: [patient] })
    const chat = await mill.chats.create({ agent: patient })
    const error = await rejectionOf(chat.ask('Hello?'))
    expect(error).to.be.instanceOf(BadRequestError)
    expect(error).to.have.property('message').that.includes('there is no such parameter')
    expect(bench.model.requests).to.have.length(1)
    expect((await chat.failure())?.code).to.equal('provider.bad_request')
  })

  it('never calls the callback of a caller who finds the chat running elsewhere (S88)', async () => {
    const held = gate(text('One two three.'))
    await bench.script([held, text('Not asked for.')])
    const [first, second] = [await bench.connect(), await bench.connect()]
    const chat = await first.chats.create()
    await chat.askLater('Count.')
    const own = collector()
    const running = chat.complete(own.onChunk)
    await held.reached
    const foreign = collector()
    const latest = await (await second.chats.find(chat.id)).complete(foreign.onChunk)
    expect([latest?.role, latest?.content]).to.deep.equal(['user', 'Count.'])
    held.release()
    expect((await running)?.content).to.equal('One two three.')
    expect(own.chunks).to.have.length(3)
    expect(foreign.chunks).to.deep.equal([])
    expect(bench.model.requests).to.have.length(1)
  })
})
