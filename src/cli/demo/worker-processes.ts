import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ConfigurationError, type ConnectOptions } from '../../index.ts'
import type { WorkerReply } from './worker.ts'

/** A worker in a process of its own. */
export interface WorkerProcess {
  readonly pid: number
  /** Resolves when the process is gone, with how it ended. */
  readonly ended: Promise<string>
  /** Lets it finish its moves, then ends it; kills it when it is still there after the limit. Safe to call again. */
  stop(limitMs: number): Promise<void>
}

const startLimitMs = 30_000
const keptOutput = 4_000

/**
 * Starts a worker process and waits until it takes jobs.
 * @throws {ConfigurationError} when it ends, or is not ready in time.
 */
export async function startWorkerProcess(options: ConnectOptions): Promise<WorkerProcess> {
  const script = new URL(`./worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
  const child = fork(fileURLToPath(script), [], {
    execArgv: loader(script),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const ended = once(child, 'exit').then(([code, signal]) => String(signal ?? `exit code ${code}`))
  try {
    await ready(child, options)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return { pid: child.pid ?? 0, ended, stop: (limitMs) => stop(child, ended, limitMs) }
}

function loader(script: URL): string[] {
  if (!script.pathname.endsWith('.ts')) return []
  return ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]
}

function ready(child: ChildProcess, options: ConnectOptions): Promise<void> {
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    complaint = (complaint + part).slice(-keptOutput)
  })
  return new Promise((resolve, reject) => {
    const settle = (problem: string | null): void => {
      clearTimeout(timer)
      if (problem === null) resolve()
      else reject(new ConfigurationError(`A worker process did not start: ${problem}\n${complaint}`.trim()))
    }
    const timer = setTimeout(() => settle(`it was not ready within ${startLimitMs / 1000} s`), startLimitMs)
    child.once('error', (error) => settle(error.message))
    child.once('exit', (code, signal) => settle(`it ended (${signal ?? `exit code ${code}`})`))
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
