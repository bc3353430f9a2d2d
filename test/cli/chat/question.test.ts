import { expect } from 'chai'
import { howToAnswer, type Question, questionLines, readAnswer, takesText } from '../../../src/cli/chat/question.ts'

const question = (fields: Question['fields'], key = 'ask-1'): Question => ({
  toolCallId: 'c1',
  name: 'ship',
  key,
  message: 'Where to?\nBe exact.',
  fields,
})
const address = question([
  { name: 'street', title: 'Street and number', description: 'No  post box' },
  { name: 'size', choices: ['S', 'M'], default: 'M' },
  { name: 'count', type: 'integer' },
  { name: 'express', type: 'boolean', required: false },
])
const size = question([{ name: 'size', choices: ['S', 'M'] }], 'size')

describe('A question in threadmill chat', () => {
  it('is shown with the type, the choices and the need of each field (E66)', () => {
    expect(questionLines(address)).to.deep.equal([
      'Where to?',
      'Be exact.',
      '  street (string, required): Street and number. No post box',
      '  size (string, one of "S", "M", default "M")',
      '  count (integer, required)',
      '  express (boolean, optional)',
      'question ask-1 of call c1',
    ])
  })

  it('says how it is answered (E66)', () => {
    expect(howToAnswer(address)).to.equal(
      '/answer {"street":"…","size":"M","count":1,"express":true} answers, /decline declines',
    )
    expect(howToAnswer(size)).to.equal('the text alone or /answer {"size":"S"} answers, /decline declines')
  })

  it('takes a text where one string is all that it asks (E66)', () => {
    expect([address, size, question([{ name: 'n', type: 'number' }])].map(takesText)).to.deep.equal([
      false,
      true,
      false,
    ])
  })

  for (const [what, text, questions, expected] of [
    ['the fields of the oldest', '{"street":"Elm"}', [address, size], { question: address, values: { street: 'Elm' } }],
    ['a text for the oldest', 'M it is', [size, address], { question: size, values: { size: 'M it is' } }],
    ['a key and a text', 'size M', [address, size], { question: size, values: { size: 'M' } }],
    ['a key and fields', 'size  {"size":"S"}', [address, size], { question: size, values: { size: 'S' } }],
    ['a text that is a key only', 'size', [size], { question: size, values: { size: 'size' } }],
  ] as const) {
    it(`is answered by ${what} (E66)`, () => expect(readAnswer(text, questions)).to.deep.equal(expected))
  }

  it('gets the choice that a text spells, whatever its type (E66)', () => {
    const digits = question([{ name: 'digit', choices: [1, 2] }])
    expect(readAnswer('2', [digits])).to.deep.equal({ question: digits, values: { digit: 2 } })
  })

  for (const [what, text, questions, problem] of [
    ['nothing is asked', 'Elm', [], /no question waits/],
    ['it is broken JSON', '{"street":', [address], /that is no JSON: /],
    ['a text does not say it all', 'Elm', [address, size], /ship asks for more than a text: \/answer \{"street"/],
  ] as const) {
    it(`is not answered where ${what} (E66)`, () => {
      const read = readAnswer(text, questions)
      expect('problem' in read ? read.problem : '').to.match(problem)
    })
  }
})
