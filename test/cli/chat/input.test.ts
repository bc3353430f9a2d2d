import { expect } from 'chai'
import { commandsHelp, readDecision, readInput } from '../../../src/cli/chat/input.ts'

describe('A line of threadmill chat', () => {
  for (const [line, input] of [
    ['  hello there ', { kind: 'text', text: 'hello there' }],
    ['   ', { kind: 'nothing' }],
    ['//etc is a folder', { kind: 'text', text: '/etc is a folder' }],
    ['/later and then  this', { kind: 'later', text: 'and then  this' }],
    ['/steer stop that', { kind: 'steer', text: 'stop that' }],
    ['/unqueue 2', { kind: 'unqueue', which: '2' }],
    ['/unqueue', { kind: 'unqueue', which: '' }],
    ['/answer {"street": "Elm"}', { kind: 'answer', text: '{"street": "Elm"}' }],
    ['/answer', { kind: 'wrong', problem: '/answer needs a text' }],
    ['/decline', { kind: 'decline', which: '' }],
    ['/decline size', { kind: 'decline', which: 'size' }],
    ['/quit', { kind: 'quit' }],
    ['/later', { kind: 'wrong', problem: '/later needs a text' }],
    ['/status now', { kind: 'wrong', problem: '/status takes nothing behind it' }],
    ['/dance', { kind: 'wrong', problem: 'there is no command /dance: /help lists them' }],
  ] as const) {
    it(`is read: ${JSON.stringify(line)}`, () => expect(readInput(line)).to.deep.equal(input))
  }

  it('can be every command that the help lists', () => {
    for (const help of commandsHelp) {
      const line = help.slice(0, 14).replace('TEXT', 'x').replace(' N', ' 1')
      expect(readInput(line).kind, line).not.to.equal('wrong')
    }
  })

  it('decides by the beginning of yes, no or always', () => {
    expect(['y', 'Yes', 'n', 'a', 'always', 'maybe', ' '].map(readDecision)).to.deep.equal([
      'yes',
      'yes',
      'no',
      'always',
      'always',
      null,
      null,
    ])
  })
})
