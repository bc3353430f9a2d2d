import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** A fresh directory under the system's temporary one. */
export function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'threadmill-'))
}

export function removeDirectory(directory: string): Promise<void> {
  return rm(directory, { recursive: true, force: true, maxRetries: 3 })
}

/** Resolves once the condition holds; rejects, naming it, when it doesn't within the limit. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${limitMs} ms in vain until ${what}`)
    await wait(20)
  }
}

/** The error that a promise rejects with; throws if it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('it should have been rejected')
}

/** The error that a function throws; throws if it returns. */
export function thrown(work: () => unknown): Error {
  try {
    work()
  } catch (error) {
    return error as Error
  }
  throw new Error('it should have thrown')
}

/** A process that runs one of the scripts beside this file; lines of its output are read by `line()`. */
export class Script {
  readonly process: ChildProcess
  #output = ''

  /** A name without a path is that of a script in TypeScript here; anything else is run by plain Node. */
  constructor(name: string, parameters: readonly string[], env: Record<string, string | undefined> = {}) {
    const command = name.includes('/')
      ? [name]
      : ['--import', 'tsx', fileURLToPath(new URL(`./${name}.ts`, import.meta.url))]
    this.process = spawn(process.execPath, [...command, ...parameters], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    })
    this.process.stdout?.on('data', (data: Buffer) => {
      this.#output += data.toString()
    })
  }

  /** The value of the first line of JSON that it wrote. */
  async answer<Answer>(): Promise<Answer> {
    await until('the script wrote a line', () => this.#output.includes('\n'), 30_000)
    return JSON.parse(this.#output.slice(0, this.#output.indexOf('\n'))) as Answer
  }

  get ended(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null
  }

  async end(signal?: NodeJS.Signals): Promise<void> {
    if (signal) this.process.kill(signal)
    else this.process.stdin?.end()
    await until('the script ended', () => this.ended)
  }
}
