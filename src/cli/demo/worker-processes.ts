import { type ChildProcess, fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ConfigurationError, type ConnectOptions } from '../../index.ts'
import type { WorkerReply } from './worker.ts'

/** A worker in a process of its own. */
export interface WorkerProcess {
  readonly pid: number
  /** Resolves when the process is gone, with how it ended. */
  readonly ended: Promise<string>
  /**
   * Connects it, and resolves when it takes jobs.
   * @throws {ConfigurationError} when it ends, or is not ready in time.
   */
  start(options: ConnectOptions): Promise<void>
  /** Lets it finish its moves, then ends it; kills it when it is still there after the limit. Safe to call again. */
  stop(limitMs: number): Promise<void>
}

const startLimitMs = 60_000
const keptOutput = 4_000

/** Makes a worker process. It loads its code while the services that it will be connected to are still being started. */
export function makeWorkerProcess(): WorkerProcess {
  const script = new URL(`./worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
  const child = fork(fileURLToPath(script), [], {
    execArgv: loader(script),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    complaint = (complaint + part).slice(-keptOutput)
  })
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(String(signal ?? `exit code ${code}`)))
  })
  return {
    pid: child.pid ?? 0,
    ended,
    async start(options) {
      const problem = await problemOf(child, ended, options)
      if (problem === null) return
      throw new ConfigurationError(`A worker process did not start: ${problem}\n${complaint}`.trim())
    },
    stop: (limitMs) => stop(child, ended, limitMs),
  }
}

function loader(script: URL): string[] {
  if (!script.pathname.endsWith('.ts')) return []
  return ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]
}

/** What keeps it from taking jobs, null once it takes them. */
function problemOf(child: ChildProcess, ended: Promise<string>, options: ConnectOptions): Promise<string | null> {
  return new Promise((resolve) => {
    const settle = (problem: string | null): void => {
      clearTimeout(timer)
      resolve(problem)
    }
    const timer = setTimeout(() => settle(`it was not ready within ${startLimitMs / 1000} s`), startLimitMs)
    void ended.then((how) => settle(`it ended (${how})`))
    child.once('message', (reply: WorkerReply) => {
      settle(reply.kind === 'ready' ? null : `${reply.message} (${reply.code})`)
    })
    child.send(options, () => {})
  })
}

async function stop(child: ChildProcess, ended: Promise<string>, limitMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
  await ended
  clearTimeout(timer)
}
