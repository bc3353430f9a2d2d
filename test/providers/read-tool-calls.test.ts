import { expect } from 'chai'
import { AnswerReader, readAnswer } from '../../src/providers/chat-completions/read.ts'
import { chunk } from './scripted-server.ts'

type Piece = Record<string, unknown>

/** A piece of a call, as streams send it; undefined fields are left out. */
function piece(index: number | undefined, id: string | undefined, name: string | undefined, args: unknown): Piece {
  const call = { index, id, type: 'function', function: { name, arguments: args } }
  return JSON.parse(JSON.stringify(call)) as Piece
}

/** The calls of a stream that sends these pieces, each list in a chunk of its own, as [id, name, arguments]. */
function callsOf(...chunks: Piece[][]) {
  const reader = new AnswerReader()
  for (const pieces of chunks) reader.push(chunk({ tool_calls: pieces }))
  reader.push(chunk({}, { finish_reason: 'tool_calls' }))
  return reader.finish().toolCalls.map((call) => [call.providerCallId, call.name, call.arguments])
}

describe('Tool calls of a streamed answer', () => {
  it('are one call when the same id comes twice with the same name and arguments', () => {
    expect(callsOf([piece(0, 'call_r7', 'clock', '{}')], [piece(1, 'call_r7', 'clock', '{}')])).to.deep.equal([
      ['call_r7', 'clock', {}],
    ])
  })

  it('are one call when a whole call is repeated without an index, or under the same one', () => {
    for (const index of [undefined, 0]) {
      const again = piece(index, 'call_r7', 'pay', '{"eur":5}')
      expect(callsOf([again], [again])).to.deep.equal([['call_r7', 'pay', { eur: 5 }]])
    }
  })

  it('are both kept when the same id comes with other arguments or another name', () => {
    const calls = callsOf(
      [piece(0, 'same', 'pay', '{"eur":5}')],
      [piece(1, 'same', 'pay', '{"eur":6}')],
      [piece(2, 'same', 'refund', '{"eur":5}')],
    )
    expect(calls).to.deep.equal([
      ['same', 'pay', { eur: 5 }],
      ['same', 'pay', { eur: 6 }],
      ['same', 'refund', { eur: 5 }],
    ])
  })

  it('keep apart two equal calls under two ids', () => {
    expect(callsOf([piece(0, 'a', 'roll', '{}'), piece(1, 'b', 'roll', '{}')])).to.have.length(2)
  })

  it('are joined by index when the pieces of two calls are interleaved', () => {
    const calls = callsOf(
      [piece(0, 'call_m1', 'add', '')],
      [piece(1, 'call_m2', 'mul', '')],
      [piece(0, undefined, undefined, '{"a":1,')],
      [piece(1, undefined, undefined, '{"a":3,')],
      [piece(1, undefined, undefined, '"b":4}'), piece(0, undefined, undefined, '"b":2}')],
    )
    expect(calls).to.deep.equal([
      ['call_m1', 'add', { a: 1, b: 2 }],
      ['call_m2', 'mul', { a: 3, b: 4 }],
    ])
  })

  it('come in the order of their indexes, not of their arrival', () => {
    expect(callsOf([piece(1, 'b', 'second', '{}')], [piece(0, 'a', 'first', '{}')]).map(([id]) => id)).to.deep.equal([
      'a',
      'b',
    ])
  })

  it('are opened by their ids when the server leaves the index out (B12)', () => {
    const calls = callsOf(
      [piece(undefined, 'call_n1', 'population', '{"iso":')],
      [piece(undefined, undefined, undefined, '"NO"}')],
      [piece(undefined, 'call_n2', 'area', '{"iso":"FI"}')],
    )
    expect(calls).to.deep.equal([
      ['call_n1', 'population', { iso: 'NO' }],
      ['call_n2', 'area', { iso: 'FI' }],
    ])
  })

  it('go on when every piece repeats the id, with and without an index, even if the name is empty (B14)', () => {
    for (const index of [0, undefined]) {
      const calls = callsOf(
        [piece(index, 'call_q1', 'stock', '{"s')],
        [piece(index, 'call_q1', undefined, 'ku":')],
        [piece(index, 'call_q1', '', '"K-7"}')],
      )
      expect(calls).to.deep.equal([['call_q1', 'stock', { sku: 'K-7' }]])
    }
  })

  it('are apart when a server sends every call under index 0', () => {
    const calls = callsOf([piece(0, 'a', 'area', '{"iso":"FI"}')], [piece(0, 'b', 'area', '{"iso":"NO"}')])
    expect(calls).to.deep.equal([
      ['a', 'area', { iso: 'FI' }],
      ['b', 'area', { iso: 'NO' }],
    ])
  })

  it('are apart when they have neither index nor id', () => {
    const calls = callsOf([
      piece(undefined, undefined, 'area', '{"iso":"FI"}'),
      piece(undefined, undefined, 'area', '{}'),
    ])
    expect(calls).to.deep.equal([
      [null, 'area', { iso: 'FI' }],
      [null, 'area', {}],
    ])
  })

  it('leave out pieces of a call that never began', () => {
    expect(callsOf([piece(3, undefined, undefined, '{"a":1}')])).to.deep.equal([])
  })

  it('read no arguments text as no arguments, and arguments sent as an object as that object', () => {
    expect(callsOf([piece(0, 'a', 'ping', '')])).to.deep.equal([['a', 'ping', {}]])
    expect(callsOf([piece(0, 'a', 'ping', undefined)])).to.deep.equal([['a', 'ping', {}]])
    expect(callsOf([piece(0, 'a', 'ping', { to: 'x' })])).to.deep.equal([['a', 'ping', { to: 'x' }]])
  })

  it('keep the exact text of arguments that were cut or doubled, and give them no meaning', () => {
    for (const text of ['{"ci', '{"city":"Rome"}{"city":"Lima"}']) {
      const reader = new AnswerReader()
      reader.push(chunk({ tool_calls: [piece(0, 'a', 'temp', text)] }, { finish_reason: 'length' }))
      const [call] = reader.finish().toolCalls
      expect(call).to.include({ argumentsText: text, arguments: null })
    }
  })

  it('are read from the chunk that has the finish reason, beside text', () => {
    const reader = new AnswerReader()
    const call = piece(0, 'a', 'ping', '{}')
    expect(reader.push(chunk({ content: 'Wait.', tool_calls: [call] }, { finish_reason: 'stop' }))).to.deep.equal([
      { type: 'text', text: 'Wait.' },
    ])
    const answer = reader.finish()
    expect(answer.text).to.equal('Wait.')
    expect(answer.toolCalls).to.have.length(1)
    expect(answer.finishReason).to.equal('stop')
  })

  it('adopt a thought signature that comes late', () => {
    const reader = new AnswerReader()
    reader.push(chunk({ tool_calls: [piece(0, 'a', 'ping', '{}')] }))
    const late = { index: 0, extra_content: { google: { thought_signature: 'sig' } } }
    reader.push(chunk({ tool_calls: [late] }, { finish_reason: 'tool_calls' }))
    expect(reader.finish().toolCalls[0]?.thoughtSignature).to.equal('sig')
  })
})

describe('Tool calls of a JSON answer', () => {
  const callsIn = (calls: unknown) =>
    readAnswer({ id: 'x', choices: [{ message: { content: null, tool_calls: calls }, finish_reason: 'tool_calls' }] })
      .toolCalls

  it('are each a call of its own, whatever their index says', () => {
    const calls = callsIn([piece(0, 'a', 'roll', '{"n":1}'), piece(0, 'b', 'roll', '{"n":2}')])
    expect(calls.map((call) => call.arguments)).to.deep.equal([{ n: 1 }, { n: 2 }])
  })

  it('are one call when the same id comes twice with the same name and arguments', () => {
    expect(
      callsIn([piece(undefined, 'a', 'f', '{"x":1,"y":2}'), piece(undefined, 'a', 'f', '{"y":2, "x":1}')]),
    ).to.have.length(1)
  })

  it('do not fall over entries of the wrong type', () => {
    expect(callsIn([null, 7, { id: 5, function: { name: 'f' } }]).map((call) => call.providerCallId)).to.deep.equal([
      '5',
    ])
    expect(callsIn('none')).to.deep.equal([])
  })
})
