import { expect } from 'chai'
import { parseArguments } from '../../src/providers/arguments.ts'

describe('The text of a tool call’s arguments', () => {
  for (const text of ['', '  \n', 'null', ' null ', '{}', '```json\n{}\n```', '```\n```']) {
    it(`means no arguments when it is ${JSON.stringify(text)}`, () => {
      expect(parseArguments(text)).to.deep.equal({})
    })
  }

  for (const text of ['{"a":[1,{"b":null}]}', ' {"a":[1,{"b":null}]}\n', '```json\n{"a":[1,{"b":null}]}\n```']) {
    it(`is read from ${JSON.stringify(text)}`, () => {
      expect(parseArguments(text)).to.deep.equal({ a: [1, { b: null }] })
    })
  }

  const malformed = [
    '{"ci',
    '{"city":"Rome"}{"city":"Lima"}',
    '[]',
    '[{"a":1}]',
    '"x"',
    '3',
    'true',
    'city: Rome',
    '{"a":1} ok',
  ]
  for (const text of malformed) {
    it(`means nothing when it is ${JSON.stringify(text)}`, () => {
      expect(parseArguments(text)).to.equal(null)
    })
  }
})
