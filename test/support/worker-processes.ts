import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ConnectOptions, WorkerCounts } from '../../src/index.ts'
import { bundle } from './bundle.ts'

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

/** Starts worker processes and ends those that are left after each test. */
export function useWorkerProcesses(): {
  /**
   * Starts one and resolves when it takes jobs.
   * @param app the file of the module that exports the agents, in a folder `apps`.
   */
  start(
    app: string,
    options: ConnectOptions & { readonly counts?: WorkerCounts; readonly isolates?: boolean },
    env?: Readonly<Record<string, string>>,
  ): Promise<WorkerProcess>
} {
  let children: ChildProcess[] = []
  before(async function () {
    this.timeout(60_000)
    await bundle()
  })
  afterEach(async () => {
    await Promise.all(children.map((child) => end(child)))
    children = []
  })
  return {
    async start(app, options, env = {}) {
      const child = spawn(process.execPath, (await bundle()).worker(app), {
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
