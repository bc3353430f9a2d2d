import { expect } from 'chai'
import { readOptions } from '../../../src/cli/demo/options.ts'

/** What the command line comes to, and what was written. */
function read(...argv: string[]) {
  let out = ''
  let err = ''
  const result = readOptions(argv, {
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
  })
  return { result, out, err }
}

describe("The demo's command line", () => {
  it('holds a conversation by default', () => {
    expect(read().result).to.deep.equal({ once: null, chat: null, approve: false })
  })

  it('takes a question, a chat and approval', () => {
    expect(read('--once', 'Hi', '--approve').result).to.deep.equal({ once: 'Hi', chat: null, approve: true })
    expect(read('--chat', 'c1', '--approve').result).to.deep.equal({ once: null, chat: 'c1', approve: true })
  })

  it('shows help, with the exit codes, and ends with 0', () => {
    const { result, out, err } = read('--help')
    expect(result).to.equal(0)
    expect(out).to.include('--once <text>').and.to.include('3 a call waits for approval')
    expect(err).to.equal('')
  })

  for (const [argv, why] of [
    [['--bogus'], "unknown option '--bogus'"],
    [['--once'], 'argument missing'],
    [['--once', ' '], 'must not be empty'],
    [['--approve'], '--approve needs --once TEXT or --chat ID'],
    [['Hello'], 'too many arguments'],
  ] as const) {
    it(`refuses "${argv.join(' ')}" with 2: ${why}`, () => {
      const { result, out, err } = read(...argv)
      expect(result).to.equal(2)
      expect(err).to.include(why).and.to.include('--help')
      expect(out).to.equal('')
    })
  }
})
