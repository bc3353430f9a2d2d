import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { ConnectOptions } from '../../src/index.ts'

/** A worker in a process of its own. */
export interface WorkerProcess {
  readonly pid: number
  /** What it wrote to stdout and stderr so far. */
  output(): string
  /** Sends a signal: SIGKILL, SIGSTOP, SIGCONT, SIGTERM. */
  signal(name: NodeJS.Signals): void
  /** Resolves with its exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>
}

const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
const entry = fileURLToPath(new URL('./worker-entry.ts', import.meta.url))

const fromSources = (app: string): string[] => ['--import', loader, entry, app]

/**
 * Starts worker processes and ends those that are left after each test.
 * @param command the arguments for `node` that start a worker with an app; by default from sources.
 */
export function useWorkerProcesses(command: (app: string) => string[] = fromSources): {
  /**
   * Starts one and resolves when it takes jobs.
   * @param app the file of the module that exports the agents, or what `command` makes of it.
   */
  start(
    app: string,
    options: ConnectOptions & { readonly counts?: { readonly complete?: number; readonly runTools?: number } },
    env?: Readonly<Record<string, string>>,
  ): Promise<WorkerProcess>
} {
  let children: ChildProcess[] = []
  afterEach(async () => {
    await Promise.all(children.map((child) => end(child)))
    children = []
  })
  return {
    async start(app, options, env = {}) {
      const child = spawn(process.execPath, command(app), {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: { ...process.env, THREADMILL_TEST_OPTIONS: JSON.stringify(options), ...env },
      })
      children.push(child)
      let output = ''
      const ended = once(child, 'exit').then(([code]) => code as number | null)
      await new Promise<void>((resolve, reject) => {
        const hear = (chunk: Buffer) => {
          output += chunk.toString()
          if (output.includes('READY')) resolve()
        }
        child.stdout.on('data', hear)
        child.stderr.on('data', hear)
        void ended.then((code) => reject(new Error(`The worker ended with ${code} before it was ready: ${output}`)))
      })
      return { pid: child.pid ?? 0, output: () => output, signal: (name) => void child.kill(name), ended }
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
