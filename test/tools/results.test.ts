import { expect } from 'chai'
import fc from 'fast-check'
import {
  deniedCall,
  errorText,
  interruptedCall,
  invalidArguments,
  malformedArguments,
  messageOf,
  notStartedCall,
  resultOf,
  timedOutCall,
  unknownTool,
} from '../../src/tools/results.ts'

const succeeded = (content: string) => ({ outcome: 'succeeded', content })

function errorIn(content: string): string {
  const parsed: Record<string, unknown> = JSON.parse(content)
  expect(Object.keys(parsed)).to.deep.equal(['error'])
  return String(parsed.error)
}

describe('the result of a tool', () => {
  it('is text as it is, JSON of objects and lists, and text of anything else', () => {
    expect(resultOf('{"a": 1}')).to.deep.include(succeeded('{"a": 1}'))
    expect(resultOf({ a: [1, null] })).to.deep.include(succeeded('{"a":[1,null]}'))
    expect(resultOf(['x'])).to.deep.include(succeeded('["x"]'))
    expect(resultOf(1.5)).to.deep.include(succeeded('1.5'))
    expect(resultOf(false)).to.deep.include(succeeded('false'))
    expect(resultOf(10n ** 20n)).to.deep.include(succeeded('100000000000000000000'))
    expect(resultOf(undefined)).to.deep.include(succeeded(''))
    expect(resultOf(null)).to.deep.include(succeeded(''))
  })

  it('says whether it is text or JSON, so that "42" and 42 stay apart (M24)', () => {
    const encodings = ['42', 42, true, null, { a: 1 }, [1], Number.NaN, { error: 'x' }].map(
      (value) => resultOf(value).encoding,
    )
    expect(encodings).to.deep.equal(['text', 'json', 'json', 'text', 'json', 'json', 'text', 'json'])
  })

  it('is a failure when it is an object with an error and nothing else', () => {
    expect(resultOf({ error: 'quota' })).to.deep.include({ outcome: 'failed', content: '{"error":"quota"}' })
    expect(resultOf({ error: { code: 1 } })).to.deep.include({ outcome: 'failed', content: '{"error":{"code":1}}' })
    expect(resultOf({ error: new Error('boom') })).to.deep.include({ outcome: 'failed', content: '{"error":"boom"}' })
    expect(resultOf(new Error('boom'))).to.deep.include({ outcome: 'failed', content: '{"error":"boom"}' })
    expect(resultOf({ error: null }).outcome).to.equal('succeeded')
    expect(resultOf({ error: 'quota', rows: [] }).outcome).to.equal('succeeded')
    expect(resultOf('{"error":"in a text"}').outcome).to.equal('succeeded')
  })

  it('is a failure that says so when it can not be written', () => {
    const circle: Record<string, unknown> = {}
    circle.self = circle
    const throwing = {
      toJSON() {
        throw new Error('no')
      },
    }
    for (const value of [circle, { big: 1n }, () => 1, Symbol('s'), throwing]) {
      const result = resultOf(value)
      expect(result.outcome).to.equal('failed')
      expect(errorIn(result.content)).to.contain('The tool ran, but its result can not be written')
    }
  })

  it('never holds half a surrogate pair and never throws', () => {
    expect(resultOf('a\ud800b\udc00 😀').content).to.equal('a\ufffdb\ufffd 😀')
    fc.assert(
      fc.property(fc.oneof(fc.anything({ withBigInt: true }), fc.string({ unit: 'binary' })), (value) => {
        const { content } = resultOf(value)
        expect(/\p{Surrogate}/u.test(content)).to.equal(false)
      }),
    )
  })
})

describe('the standard results', () => {
  it('tell of a refusal in the fixed words', () => {
    expect(deniedCall('delete_file')).to.equal('{"error":"The user denied the delete_file tool call."}')
  })

  it('name the tools that there are when one is unknown', () => {
    expect(errorIn(unknownTool('fly', ['walk', 'swim']))).to.match(/fly.*walk, swim/)
    expect(errorIn(unknownTool('fly', []))).to.contain('No tools are available')
  })

  it('tell cut arguments from malformed ones', () => {
    for (const reason of ['length', 'max_tokens', 'MAX_TOKENS', 'max_output_tokens']) {
      expect(errorIn(malformedArguments('temp', reason))).to.contain('output limit')
    }
    for (const reason of ['tool_calls', 'stop', null]) {
      expect(errorIn(malformedArguments('temp', reason)))
        .to.contain('not one JSON object')
        .and.not.contain('limit')
    }
  })

  it('name the tool and the reason', () => {
    expect(errorIn(invalidArguments('temp', 'city is missing.'))).to.match(/temp.*city is missing\./)
    expect(errorIn(interruptedCall('temp', 'The disk is full.'))).to.match(/temp.*The disk is full\. /)
    expect(errorIn(notStartedCall('temp', 'the turn was stopped'))).to.match(/temp.*did not run.*stopped\.$/)
    expect(errorIn(timedOutCall('temp', 600_000))).to.match(/temp.*600 s/)
    expect(errorIn(timedOutCall('temp', 20))).to.contain('20 ms')
  })

  it('are well-formed whatever the model called the tool', () => {
    expect(errorIn(unknownTool('a"\ud800', []))).to.contain('a"\ufffd')
    expect(errorIn(errorText('x\udc00'))).to.equal('x\ufffd')
  })

  it('read what was thrown, whatever it was', () => {
    expect(messageOf(new Error('boom'))).to.equal('boom')
    expect(messageOf(new TypeError(''))).to.equal('TypeError')
    expect(messageOf('text')).to.equal('text')
    expect(messageOf({ code: 5 })).to.equal('{"code":5}')
    expect(messageOf('')).to.equal('unknown error')
    const circle: Record<string, unknown> = {}
    circle.self = circle
    expect(messageOf(circle)).to.equal('unknown error')
  })
})
