import { Writable } from 'node:stream'
import { expect } from 'chai'
import { Screen } from '../../../src/cli/terminal/screen.ts'
import type { ChatEvent, LiveEvent } from '../../../src/index.ts'

let written = ''

function screenOf(terminal = false): Screen {
  written = ''
  const output = new Writable({
    write(chunk, _encoding, done) {
      written += String(chunk)
      done()
    },
  })
  return new Screen(Object.assign(output, { isTTY: terminal, hasColors: () => true }))
}

const event = (live: LiveEvent): ChatEvent => ({ ...live, id: '1-1', chatId: 'c', claimToken: 1 })
const delta = (text: string, messageId = 'm1') => event({ type: 'text.delta', messageId, text })
const finished = (text: string, messageId = 'm1') =>
  event({ type: 'message.finished', messageId, text, finishReason: 'stop' })

describe('The screen of a conversation', () => {
  it('writes an answer as it comes, and a line of its own for everything else', () => {
    const screen = screenOf()
    for (const one of [delta('Hel'), delta('lo'), finished('Hello'), event({ type: 'run.cancelled' })]) screen.show(one)
    expect(written).to.equal('Hello\n· stopped\n')
  })

  it('adds what the live text lacks, and writes it anew where the two differ', () => {
    const screen = screenOf()
    screen.show(delta('Hel'))
    screen.show(finished('Hello'))
    screen.show(delta('Wrld', 'm2'))
    screen.show(finished('World', 'm2'))
    screen.show(finished('World', 'm2'))
    expect(written).to.equal('Hello\nWrld\nWorld\n')
  })

  it('says that an answer starts anew', () => {
    const screen = screenOf()
    screen.show(delta('Hel'))
    screen.show(event({ type: 'attempt.restarted', messageId: 'm2', replaces: 'm1' }))
    screen.show(delta('Hi', 'm2'))
    screen.show(finished('Hi', 'm2'))
    expect(written).to.equal('Hel\n· the answer broke off and starts anew\nHi\n')
  })

  it('names the files of a result behind it, without a terminal command in their names (E83)', () => {
    const screen = screenOf()
    const attachments = [{ id: 'f', filename: 'a\u001b[2J.png', contentType: 'image/png', byteSize: 7 }]
    const result = { toolCallId: 'c', name: 'draw', outcome: 'succeeded', content: 'drawn', attachments } as const
    screen.show(event({ type: 'tool.result', ...result }))
    screen.show(event({ type: 'tool.result', ...result, attachments: [] }))
    expect(written).to.equal('· succeeded draw: drawn [a[2J.png, 7 bytes]\n· succeeded draw: drawn\n')
  })

  it('lets no terminal command of a model or a file through', () => {
    const screen = screenOf(true)
    screen.show(delta('a\u001b[2Jb\u0007c\u001b]0;title\u0007d\n'))
    expect(written).to.equal('a[2Jbc]0;titled\n')
  })

  it('dims lines in a terminal, and nowhere else', () => {
    screenOf(true).line('x')
    expect(written).to.equal('\u001b[2m· x\u001b[22m\n')
    screenOf(false).line('x')
    expect(written).to.equal('· x\n')
  })

  it('draws a card with the arguments of a call', () => {
    screenOf().card({ toolCallId: 'call_1', name: 'refund_order', arguments: { order: '42' } })
    expect(written).to.equal('┌─ waits for your approval\n│ refund_order\n│   order: 42\n│ call call_1\n└─\n')
  })
})
