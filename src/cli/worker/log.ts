import { type Logger, pino, stdTimeFunctions } from 'pino'
import type { Cli, CommonOptions } from '../cli.ts'
import { complaintOf, stackOf } from '../complain.ts'
import type { Output } from '../io.ts'

/** A worker's log on stdout: JSON lines, or on a terminal lines for people. Errors are logged without what they hold beside their message. */
export function workerLog(cli: Cli, level: string, { json, verbose }: CommonOptions): Logger {
  const { stdout } = cli.io
  return pino(
    {
      level,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error: unknown) => loggable(error, verbose === true) },
    },
    stdout.isTTY === true && json !== true ? forPeople(cli, stdout) : stdout,
  )
}

/** What else an error holds can be a whole request, keys included. */
function loggable(error: unknown, verbose: boolean): object {
  const complaint = complaintOf(error)
  return verbose ? { ...complaint, stack: stackOf(error) } : complaint
}

function forPeople(cli: Cli, stdout: Output): { write(line: string): void } {
  return {
    write(line) {
      const { level, time, msg, pid, hostname, err, ...facts } = JSON.parse(line) as Record<string, unknown>
      const label = String(level).toUpperCase().padEnd(5)
      const about = Object.entries(facts).map(([name, value]) => `${name}=${shown(value)}`)
      if (typeof err === 'object' && err !== null) about.push(...Object.values(err).map(String))
      const style = level === 'error' || level === 'fatal' ? 'red' : level === 'warn' ? 'yellow' : 'green'
      const words = [
        String(time).slice(11, 23),
        cli.paint(style, label, stdout),
        msg,
        cli.paint('gray', about.join(' '), stdout),
      ]
      stdout.write(`${words.join(' ').trimEnd()}\n`)
    },
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
