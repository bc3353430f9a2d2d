import { main } from './program.ts'

/** What is left open after everything was closed keeps the process no longer than this. */
const lingerMs = 2_000

/** Runs the command that this process was started with, and ends the process with its exit code. */
export function startProgram(): void {
  // Whoever read the output is gone, as in `threadmill status | head -1`: what was asked for is done all the same.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  const ended = main(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    // Looked at only by commands that read it: opening it would keep the process waiting for more.
    get stdin() {
      return process.stdin
    },
    process,
    exit: (code) => process.exit(code),
  })
  void ended.then((code) => {
    process.exitCode = code
    setTimeout(() => process.exit(), lingerMs).unref()
  })
}
