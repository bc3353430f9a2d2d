import { PassThrough } from 'node:stream'
import type { Chat, Threadmill } from '../../../src/index.ts'
import type { Bench } from '../../support/mills.ts'
import { until } from '../../support/until.ts'
import { environmentOf, type RunningCli, startCli } from '../run-cli.ts'

const limitMs = 60_000

/** Somebody, or a pipe, who takes part in a chat. */
export interface Typist extends RunningCli {
  type(line: string): void
  /** Ctrl-D, or the end of a pipe. */
  end(): void
  says(what: string | RegExp, times?: number): Promise<unknown>
}

/** Starts `threadmill chat` on a bench; each is over at the end of its test. */
export function useTypists(bench: Bench): (argv: readonly string[], options?: { readonly tty?: boolean }) => Typist {
  let typists: Typist[] = []
  afterEach(async () => {
    for (const typist of typists) {
      typist.process.emit('SIGTERM')
      await typist.ended
    }
    typists = []
  })
  return (argv, { tty = false } = {}) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: tty })
    const cli = startCli(['chat', ...argv], { env: environmentOf(bench.options()), stdin, tty })
    const typist: Typist = {
      ...cli,
      type: (line) => void stdin.write(`${line}\n`),
      end: () => void stdin.end(),
      says: (what, times = 1) =>
        until(
          `it says ${what}, of ${cli.out()}`,
          () => (typeof what === 'string' ? cli.out().split(what).length > times : what.test(cli.out())),
          limitMs,
        ),
    }
    typists.push(typist)
    return typist
  }
}

/** The chat that somebody takes part in, as another process has it. */
export function chatIn(mill: Threadmill, typist: Pick<Typist, 'out'>): Promise<Chat> {
  return mill.chats.find(/chat ([\w-]{36})/.exec(typist.out())?.[1] ?? '')
}
