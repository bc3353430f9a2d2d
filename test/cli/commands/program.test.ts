import { expect } from 'chai'
import { Cli } from '../../../src/cli/cli.ts'
import { exitCodesHelp } from '../../../src/cli/exit-codes.ts'
import { makeProgram } from '../../../src/cli/program.ts'
import { jsonLines, runCli, streamsOf } from '../run-cli.ts'

const secret = 'mysql://someone:s3cret@127.0.0.1:1/nothing'

describe('The threadmill program', function () {
  // The first command loads the whole library.
  this.timeout(60_000)

  it('shows its version, and help for itself', async () => {
    expect(await runCli(['--version'])).to.deep.equal({ code: 0, out: '0.1.0\n', err: '' })
    const help = await runCli(['--help'])
    expect(help).to.include({ code: 0, err: '' })
    expect(help.out)
      .to.include(exitCodesHelp)
      .and.to.match(/^ {2}worker .*^ {2}migrate .*^ {2}completions /ms)
  })

  it('shows an example in the help of every command', async () => {
    const program = makeProgram(new Cli(streamsOf(false).io))
    const names = program.commands.map((command) => command.name()).filter((name) => name !== 'complete')
    expect(names).to.include.members(['worker', 'migrate', 'enqueue', 'status', 'retry', 'completions'])
    for (const name of names) {
      const { code, out } = await runCli([name, '--help'])
      expect(code, name).to.equal(0)
      expect(out, name).to.match(new RegExp(`^Examples:\\n.*threadmill ${name}`, 'm'))
    }
  })

  for (const [what, argv] of [
    ['no command', []],
    ['an unknown command', ['dance']],
    ['an unknown option', ['status', '--loud']],
    ['a missing option', ['worker']],
    ['a value that an option does not take', ['enqueue', 'x', '--queue', 'slow']],
    ['a delay that is no time', ['enqueue', 'x', '--delay', '-1']],
    ['options that contradict each other', ['migrate', '--status', '--dry-run']],
    ['a queue for no chat alone', ['worker', '--app', 'app.ts', '--queue', 'compact']],
    ['a chat alone beside others', ['worker', '--app', 'app.ts', '--only', 'x', '--complete', '2']],
    ['no chats', ['enqueue']],
    ['chats and all that failed', ['retry', 'x', '--all-failed']],
    ['a code without all that failed', ['retry', 'x', '--code', 'y']],
    ['the exit code of all chats', ['status', '--exit-code']],
    ['a time without a unit', ['health', '--timeout', '10']],
    ['no time at all', ['health', '--timeout', '0s']],
    ['a queue that there is not', ['health', '--queue', 'slow']],
  ] as const) {
    it(`exits with 2 and says why for ${what}`, async () => {
      const { code, out, err } = await runCli(argv)
      expect({ code, out }).to.deep.equal({ code: 2, out: '' })
      expect(err).to.match(/error: |Usage: /)
    })
  }

  it('refuses embedded services in production, naming every variable that is missing', async () => {
    const { code, err } = await runCli(['status'], { env: { NODE_ENV: 'production' } })
    expect(code).to.equal(2)
    expect(err).to.include('DATABASE_URL is missing').and.to.include('REDIS_URL is missing')
  })

  it('takes a setting from its option before its variable', async () => {
    const argv = ['status', '--table-prefix', 'Not Good', '--redis-url', 'redis://127.0.0.1:1']
    const { code, err } = await runCli(argv, { env: { THREADMILL_TABLE_PREFIX: 'good_' } })
    expect(code).to.equal(2)
    expect(err).to.include('tablePrefix is "Not Good"').and.to.include('(configuration)')
  })

  it('exits with 1 when the database does not answer, and shows no password', async () => {
    const { code, out, err } = await runCli(['migrate', '--verbose'], { env: { DATABASE_URL: secret } })
    expect({ code, out }).to.deep.equal({ code: 1, out: '' })
    expect(err)
      .to.include('(configuration.unreachable)')
      .and.to.match(/^ +at /m)
    expect(err).not.to.include('s3cret')
  })

  it('shows no password of what it does not understand', async () => {
    const { code, err } = await runCli(['migrate', `--database=${secret}`])
    expect(code).to.equal(2)
    expect(err).not.to.include('s3cret')
  })

  it('writes an error as JSON to stderr with --json, and a stack only with --verbose', async () => {
    const { code, out, err } = await runCli(['migrate', '--json'], { env: { DATABASE_URL: secret } })
    expect({ code, out }).to.deep.equal({ code: 1, out: '' })
    const [problem, ...more] = jsonLines(err) as { error: { code: string; message: string } }[]
    expect(more).to.deep.equal([])
    expect(problem?.error.code).to.equal('configuration.unreachable')
    expect(problem?.error.message).to.include('127.0.0.1:1/nothing does not answer')
  })

  it('colours errors on a terminal only, and not there with NO_COLOR', async () => {
    const env = { DATABASE_URL: secret }
    expect((await runCli(['migrate'], { env })).err).not.to.include('\u001b')
    expect((await runCli(['migrate'], { env, tty: true })).err).to.include('\u001b[31merror:')
    expect((await runCli(['migrate'], { env: { ...env, NO_COLOR: '1' }, tty: true })).err).not.to.include('\u001b')
  })
})
