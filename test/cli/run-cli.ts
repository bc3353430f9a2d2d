import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import type { Io } from '../../src/cli/io.ts'
import type { ConnectOptions } from '../../src/index.ts'

/** Commands import what they work with when they run. Loaded in the same way, the program shares their classes. */
const program = import('../../src/cli/program.ts')

/** What a command came to. */
export interface CliResult {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** A command that runs in this process. */
export interface RunningCli {
  readonly ended: Promise<CliResult>
  out(): string
  /** What the process would hear: signals, errors that nobody caught. */
  readonly process: EventEmitter
  /** Codes with which the process would have been ended at once. */
  readonly exits: readonly number[]
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>
  /** What the command reads; a stream stays open. */
  readonly stdin?: string | Readable
  readonly tty?: boolean
}

class Sink extends Writable {
  text = ''
  readonly isTTY: boolean
  readonly #env: Readonly<Record<string, string>>

  constructor(isTTY: boolean, env: Readonly<Record<string, string>>) {
    super({ decodeStrings: false })
    this.isTTY = isTTY
    this.#env = env
  }

  /** What a terminal says that is started with these variables. */
  getColorDepth(): number {
    return WriteStream.prototype.getColorDepth({ TERM: 'xterm', ...this.#env })
  }

  override _write(chunk: string | Buffer, _: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

/** A world for a command that holds what it is given and keeps what it is told. */
export function streamsOf(tty: boolean, { env = {}, stdin = '' }: Omit<CliOptions, 'tty'> = {}) {
  const stdout = new Sink(tty, env)
  const stderr = new Sink(tty, env)
  const exits: number[] = []
  const io: Io = {
    stdout,
    stderr,
    stdin: typeof stdin === 'string' ? Readable.from(stdin === '' ? [] : [stdin]) : stdin,
    env,
    process: new EventEmitter(),
    exit: (code) => void exits.push(code),
  }
  return { io, stdout, stderr, exits }
}

/** Starts a command as the program would, in this process, with nothing of its environment. */
export function startCli(argv: readonly string[], { tty = false, ...given }: CliOptions = {}): RunningCli {
  const { io, stdout, stderr, exits } = streamsOf(tty, given)
  return {
    ended: program.then(({ main }) => main(argv, io)).then((code) => ({ code, out: stdout.text, err: stderr.text })),
    out: () => stdout.text,
    process: io.process,
    exits,
  }
}

/** Runs one to its end. */
export function runCli(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return startCli(argv, options).ended
}

/** The variables that say what a bench's connections are told by options. */
export function environmentOf(options: ConnectOptions): Record<string, string> {
  const variables: Record<string, string | number | undefined> = {
    DATABASE_URL: options.databaseUrl,
    REDIS_URL: options.redisUrl,
    OPENAI_API_KEY: options.openaiApiKey,
    OPENAI_BASE_URL: options.openaiBaseUrl,
    THREADMILL_MODEL: options.model,
    THREADMILL_CLAIM_TTL_MS: options.claimTtlMs,
    THREADMILL_SWEEP_EVERY_MS: options.sweepEveryMs,
  }
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )
}

/** The JSON values that a command wrote, one a line. */
export function jsonLines(text: string): unknown[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)
}
