import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { loaderFor, loading } from '../../../config/node-arguments.ts'
import { childEnvironment } from '../../../config/settings.ts'
import { ConfigurationError } from '../../errors.ts'
import type { Answer, Order } from './messages.ts'

/** How worker processes are started. */
export interface WorkerProgram {
  /** The file that node is given. */
  readonly file: string
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** A worker process. It ends with this process, however that ends. */
export interface WorkerProcess {
  readonly pid: number
  readonly isAlive: boolean
  /** Resolves when it is gone. */
  readonly gone: Promise<void>
  /**
   * Gives an order, and resolves with its answer.
   * @throws {ConfigurationError} when it can't be obeyed, or the process ends before it answers.
   */
  order<Kind extends Answer['kind']>(order: Order, answer: Kind): Promise<Extract<Answer, { kind: Kind }>>
  /** Ends it by SIGKILL, and resolves when it is gone. Safe to call again. */
  kill(): Promise<void>
}

const keptOutput = 4_000

/** The program of worker processes: what this file stands beside, from sources or compiled. */
export function workerProgram(options: {
  readonly execArgv?: readonly string[] | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
}): WorkerProgram {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const file = fileURLToPath(new URL(`./crash-worker${extension}`, import.meta.url))
  return {
    file,
    execArgv: [...loaderFor(file), ...(options.execArgv ?? loading(process.execArgv))],
    env: options.env ?? {},
  }
}

/** Starts one; it waits for its first order. */
export function startWorkerProcess(program: WorkerProgram): WorkerProcess {
  const child = fork(program.file, [], {
    execArgv: [...program.execArgv],
    env: childEnvironment(program.env),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    complaint = (complaint + part).slice(-keptOutput)
  })
  const gone = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  })
  const isAlive = () => child.exitCode === null && child.signalCode === null && child.pid !== undefined
  return {
    pid: child.pid ?? 0,
    get isAlive() {
      return isAlive()
    },
    gone,
    async order(order, kind) {
      const answer = await answerTo(child, order, gone)
      if (answer?.kind === kind) return answer as Extract<Answer, { kind: typeof kind }>
      const why = answer?.kind === 'failed' ? `${answer.message} (${answer.code})` : 'it ended'
      throw new ConfigurationError(
        `A worker process of killAtEveryWrite() did not ${order.kind}: ${why}\n${complaint}`.trim(),
      )
    },
    async kill() {
      if (!isAlive()) return
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** Null: it ended before it answered. */
async function answerTo(child: ChildProcess, order: Order, gone: Promise<void>): Promise<Answer | null> {
  const stop = new AbortController()
  const heard = once(child, 'message', { signal: stop.signal }).then(([answer]) => answer as Answer)
  heard.catch(() => {})
  child.send(order, () => {})
  try {
    return await Promise.race([heard, gone.then(() => null)])
  } finally {
    stop.abort()
  }
}
