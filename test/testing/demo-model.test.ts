import { expect } from 'chai'
import type OpenAI from 'openai'
import { demoIntroduction, demoModel, demoModelName } from '../../src/testing/index.ts'
import { clientOf, closeServers, readStream, serverWith, user } from './support.ts'

const offer = (name: string, properties: object): OpenAI.ChatCompletionFunctionTool => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties } },
})
const tools = [
  offer('clock', { city: { type: 'string' } }),
  offer('calculator', { expression: { type: 'string' } }),
  offer('read_file', { path: { type: 'string' } }),
  offer('refund_order', { order: { type: 'number' } }),
]

const clock = (city: string) => `clock ${JSON.stringify({ city })}`
const sum = (expression: string) => `calculator ${JSON.stringify({ expression })}`
const read = (path: string) => `read_file ${JSON.stringify({ path })}`
const refund = (order: number | string) => `refund_order ${JSON.stringify({ order })}`

/** What the demo model answers: its calls as short texts, and its text. */
async function ask(
  messages: OpenAI.ChatCompletionMessageParam[],
  more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = { tools },
) {
  const server = await serverWith(demoModel({ chunkDelayMs: 0 }))
  const answer = await clientOf(server).chat.completions.create({ model: 'any', messages, ...more })
  const message = answer.choices[0]?.message
  const calls = (message?.tool_calls ?? []).flatMap((call) =>
    call.type === 'function' ? [`${call.function.name} ${call.function.arguments}`] : [],
  )
  return { answer, calls, text: message?.content ?? '' }
}

const phrasings: readonly (readonly [string, readonly string[]])[] = [
  ['What time is it in Tokyo?', [clock('Tokyo')]],
  ['time in Paris', [clock('Paris')]],
  ['time in paris please', [clock('Paris')]],
  ["what's the time in new york right now?", [clock('New York')]],
  ['Do you know what time it is in São Paulo?', [clock('São Paulo')]],
  ['What is the current time for Berlin', [clock('Berlin')]],
  ['In Rio de Janeiro, what time is it?', [clock('Rio de Janeiro')]],
  ["What's Madrid time?", [clock('Madrid')]],
  ['What time is it in Tokyo, Paris and in london?', [clock('Tokyo'), clock('Paris'), clock('London')]],
  ['time in Tokyo and say hello', [clock('Tokyo')]],
  ['What is 12 * 7?', [sum('12 * 7')]],
  ['12*7', [sum('12 * 7')]],
  ['3.5 + 4', [sum('3.5 + 4')]],
  ['10 / 4', [sum('10 / 4')]],
  ['2 ^ 8', [sum('2 ^ 8')]],
  ['2**8 =', [sum('2 ^ 8')]],
  ['how much is 6 x 7', [sum('6 * 7')]],
  ['6x7', [sum('6 * 7')]],
  ['What is 5 times 8?', [sum('5 * 8')]],
  ['Add 1 plus 2 plus 3', [sum('1 + 2 + 3')]],
  ['seven times eight', [sum('7 * 8')]],
  ['100 divided by 8, please', [sum('100 / 8')]],
  ['(2 + 3) * 4', [sum('(2 + 3) * 4')]],
  ['-3 + 5', [sum('-3 + 5')]],
  ['9 - 4', [sum('9 - 4')]],
  ['1,000 + 5', [sum('1000 + 5')]],
  ['2 to the power of 10', [sum('2 ^ 10')]],
  ['Refund order 42', [refund(42)]],
  ['please refund my order #42', [refund(42)]],
  ["I'd like a refund for order number 7.", [refund(7)]],
  ['Can order 1001 be refunded?', [refund(1001)]],
  ['refund orders 41 and 42', [refund(41), refund(42)]],
  ['refund #9', [refund(9)]],
  ['read README.md', [read('README.md')]],
  ['what is in notes.txt', [read('notes.txt')]],
  ["What's in docs/notes-2024-05.txt?", [read('docs/notes-2024-05.txt')]],
  ['Please read `my notes.md` and ./b.json.', [read('my notes.md'), read('./b.json')]],
  ['What time is it in Tokyo and what is 12 * 7?', [clock('Tokyo'), sum('12 * 7')]],
  ['Refund order 42, read notes.txt and tell me 1 + 1', [refund(42), read('notes.txt'), sum('1 + 1')]],
]

const plainTalk = [
  'Hello',
  "Don't refund order 42",
  'My order 42 has come',
  'The meeting is on 2024-05-01 at 10:30',
  'I will be there in time in the morning',
  'It costs 5 - more or less',
  'version 1.2.3 is out',
  'I read https://example.com/page.html yesterday',
]

describe('The demo model', () => {
  afterEach(closeServers)

  for (const [message, calls] of phrasings) {
    it(`calls ${calls.join(' and ')} for: ${message}`, async () => {
      const said = await ask([user(message)])
      expect(said.calls).to.deep.equal(calls)
      expect(said.answer.choices[0]?.finish_reason).to.equal('tool_calls')
    })
  }

  for (const message of plainTalk) {
    it(`echoes: ${message}`, async () => {
      const { calls, text } = await ask([user(message)])
      expect(calls).to.deep.equal([])
      expect(text).to.match(/^You said: /)
      expect(text).to.contain(`You said: ${message}\n`)
      expect(text).to.contain('demo model')
    })
  }

  it('says what it is', async () => {
    const { answer, text } = await ask([user('Who are you?')])
    expect(text).to.equal(demoIntroduction)
    expect(answer.model).to.equal(demoModelName)
    expect(demoIntroduction).to.contain('threadmill-demo')
  })

  it('never calls a tool that is not offered', async () => {
    const message = user('What time is it in Tokyo, and what is 1 + 1?')
    expect((await ask([message], { tools: tools.slice(1) })).calls).to.deep.equal([sum('1 + 1')])
    expect((await ask([message], {})).text).to.contain('You said: What time is it in Tokyo')
    expect((await ask([message], { tools, tool_choice: 'none' })).calls).to.deep.equal([])
  })

  it('gives the order the type that the schema of the tool wants', async () => {
    const textual = offer('refund_order', { order: { type: 'string' } })
    expect((await ask([user('refund order 42')], { tools: [textual] })).calls).to.deep.equal([refund('42')])
  })

  it('reads the last user message only, parts of it included', async () => {
    const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }
    const said = await ask([
      user('What is 1 + 1?'),
      { role: 'assistant', content: '2' },
      { role: 'user', content: [{ type: 'text', text: 'Look at this' }, image] },
    ])
    expect(said.calls).to.deep.equal([])
    expect(said.text).to.contain('You said: Look at this (with 1 attachment)')
  })

  it('takes files that a tool attached for a part of its result, and what a user says behind it for more (E82)', async () => {
    const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }
    const call = { id: 'c', type: 'function' as const, function: { name: 'draw', arguments: '{}' } }
    const round = [
      user('Draw'),
      { role: 'assistant' as const, tool_calls: [call] },
      { role: 'tool' as const, tool_call_id: 'c', content: 'drawn' },
    ]
    const attached = { type: 'text' as const, text: 'Attached by draw (call c): a.png' }
    expect((await ask([...round, { role: 'user', content: [attached, image] }])).text).to.equal('draw says: drawn.')
    expect((await ask([...round, user('Once more')])).text).to.contain('You said: Once more')
  })

  it('puts the results of tools into sentences, failures politely', async () => {
    const wanted = [
      ['clock', { city: 'Tokyo' }, '{"time":"12:00"}'],
      ['calculator', { expression: '12 * 7' }, '84'],
      ['read_file', { path: 'notes.txt' }, 'Buy milk'],
      ['refund_order', { order: 42 }, '{"error":"The user denied this call"}'],
      ['weather', {}, 'Error: no station'],
      ['clock', { city: 'Rome' }, ''],
    ] as const
    const said = await ask([
      user('Do all that'),
      {
        role: 'assistant',
        content: null,
        tool_calls: wanted.map(([name, args], at) => ({
          id: `c${at}`,
          type: 'function',
          function: { name, arguments: JSON.stringify(args) },
        })),
      },
      ...wanted.map(([, , content], at) => ({ role: 'tool' as const, tool_call_id: `c${at}`, content })),
    ])
    expect(said.calls).to.deep.equal([])
    expect(said.text.split('\n')).to.deep.equal([
      'In Tokyo, the clock says: {"time":"12:00"}',
      '12 * 7 = 84.',
      'Here is what notes.txt says:',
      '',
      'Buy milk',
      'I am sorry, refunding order 42 did not work out: The user denied this call.',
      'I am sorry, calling weather did not work out: Error: no station.',
      'Asking the clock for Rome is done; it returned nothing.',
    ])
  })

  it('turns to a message that came after the results', async () => {
    const call = { id: 'c1', type: 'function' as const, function: { name: 'clock', arguments: '{"city":"Rome"}' } }
    const said = await ask([
      user('time in Rome'),
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: 'noon' },
      user('And 2 + 2?'),
    ])
    expect(said.calls).to.deep.equal([sum('2 + 2')])
  })

  it('streams word by word, 15 ms apart by default', async () => {
    const server = await serverWith(demoModel())
    const from = performance.now()
    const stream = await readStream(clientOf(server), { model: 'any', messages: [user('Hello')], stream: true })
    expect(stream.pieces.slice(0, 3)).to.deep.equal(['You', ' said:', ' Hello'])
    expect(performance.now() - from).to.be.at.least(stream.pieces.length * 14)
  })
})
