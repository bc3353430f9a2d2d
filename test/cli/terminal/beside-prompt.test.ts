import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { BesidePrompt } from '../../../src/cli/terminal/beside-prompt.ts'
import { Lines } from '../../../src/cli/terminal/lines.ts'
import { until } from '../../support/until.ts'

/** What a terminal shows, without its commands. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
const plain = (text: string) => text.replace(/\u001b\[\d*[A-Z]/g, '').replaceAll('\r', '')

describe('An output beside a prompt', () => {
  let lines: Lines | undefined
  afterEach(() => lines?.close())

  function terminal() {
    const input = Object.assign(new PassThrough(), { isTTY: true })
    const output = Object.assign(new PassThrough(), { isTTY: true })
    let shown = ''
    output.on('data', (part: Buffer) => {
      shown += part.toString()
    })
    const made = new Lines({ input, output, onInterrupt: () => {} })
    lines = made
    return { input, lines: made, beside: new BesidePrompt(output, made), shown: () => shown }
  }

  it('takes the prompt away for what is written, and shows it again behind it', async () => {
    const { beside, shown } = terminal()
    beside.setPrompt('> ')
    beside.write('half')
    beside.write(' a line\n')
    await until('the prompt is back', () => plain(shown()).endsWith('half a line\n> '))
    expect(shown()).to.include('\r\u001b[Khalf')
  })

  it('holds back what is written while a line is begun, until the line is sent', async () => {
    const { beside, input, lines, shown } = terminal()
    beside.setPrompt('> ')
    const asked = lines.ask(beside.prompt)
    input.write('hel')
    await until('it is typed', () => lines.typing)
    beside.write('news\n')
    input.write('lo\n')
    expect(await asked).to.deep.equal({ text: 'hello' })
    expect(plain(shown())).not.to.include('news')
    expect(beside.sent()).to.equal(true)
    expect(beside.sent()).to.equal(false)
    await until('it is written', () => plain(shown()).includes('hello\nnews\n'))
  })
})
