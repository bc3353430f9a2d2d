import { styleText } from 'node:util'
import type { Command } from 'commander'
import { type Provided, resolveSettings, type Settings } from '../../config/settings.ts'
import type { SettingName } from '../../config/settings-table.ts'
import { complaintOf, exitCodeOf, stackOf } from './complain.ts'
import { exitCodes } from './exit-codes.ts'
import type { Io, Output } from './io.ts'
import { addSettingOptions, settingsAmong } from './setting-options.ts'

/** A command registers itself on the program; its file loads what it works with when it runs, since help and completion must be quick. */
export type Registration = (program: Command, cli: Cli) => void

/** Options that every command has. */
export interface CommonOptions {
  readonly json?: boolean
  readonly verbose?: boolean
}

/** One use of the program: what its commands say, and what they come to. */
export class Cli {
  readonly io: Io
  exitCode: number = exitCodes.ok

  constructor(io: Io) {
    this.io = io
  }

  /** Gives a command the options that all have, and an example for its help. */
  common(command: Command, settings: readonly SettingName[], examples: readonly string[]): Command {
    command
      .option('--json', 'write JSON to stdout, for programs')
      .option('--verbose', 'show where an error came from')
      .addHelpText('after', `\nExamples:\n${examples.map((line) => `  ${line}`).join('\n')}`)
    return addSettingOptions(command, settings)
  }

  /** The settings of a command: its options, then the environment, then defaults. */
  settings(options: CommonOptions, provided: Provided = {}): Settings {
    return resolveSettings(settingsAmong({ ...options }), this.io.env, provided)
  }

  /** Writes one JSON value, on a line of its own. */
  json(value: unknown): void {
    this.io.stdout.write(`${JSON.stringify(value)}\n`)
  }

  /** Writes a line of what was asked for. */
  line(text: string): void {
    this.io.stdout.write(`${text}\n`)
  }

  /** Writes a line beside what was asked for. */
  note(text: string): void {
    this.io.stderr.write(`${text}\n`)
  }

  /** Colours a text for a stream; leaves it alone where the stream is no terminal, or NO_COLOR is set. */
  paint(style: Parameters<typeof styleText>[0], text: string, stream: Output = this.io.stdout): string {
    return stream.isTTY === true ? styleText(style, text, { stream }) : text
  }

  /** Reports what ended a command, and sets the exit code. */
  fail(error: unknown, { json, verbose }: CommonOptions): void {
    this.exitCode = exitCodeOf(error)
    const complaint = complaintOf(error)
    if (json) {
      this.note(JSON.stringify({ error: complaint }))
    } else {
      const { stderr } = this.io
      this.note(`${this.paint('red', 'error:', stderr)} ${complaint.message} (${complaint.code})`)
    }
    if (verbose) this.note(stackOf(error))
  }
}
