import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ConfigurationError } from '../errors.ts'
import type { DemoModelOptions } from './demo-model.ts'

/** A demo model in a process of its own. */
export interface DemoModelProcess {
  /** The base URL for a client, ending in `/v1`. */
  readonly url: string
  /** Ends the process and resolves once it is gone. Can be called again. */
  stop(): Promise<void>
}

const startLimitMs = 15_000
const stopLimitMs = 2_000

/**
 * Starts the demo model in a child process. The child ends with this process, however that ends, and does not keep it
 * alive.
 * @throws {ConfigurationError} when the child ends or says nothing for 15 s.
 */
export async function startDemoModel(options: DemoModelOptions = {}): Promise<DemoModelProcess> {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const entry = fileURLToPath(new URL(`./demo-server${extension}`, import.meta.url))
  const loader = extension === '.ts' ? ['--import', import.meta.resolve('tsx')] : []
  const pace = options.chunkDelayMs === undefined ? [] : ['--chunk-delay', String(options.chunkDelayMs)]
  const child = spawn(process.execPath, [...loader, entry, ...pace], { stdio: ['pipe', 'pipe', 'pipe'] })
  const url = await readyUrl(child)
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref()
  let stopped: Promise<void> | undefined
  return {
    url,
    stop() {
      stopped ??= stop(child)
      return stopped
    },
  }
}

/** Waits for the child's `READY` line. */
async function readyUrl(child: ChildProcess): Promise<string> {
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    complaint = (complaint + part).slice(-2_000)
  })
  const { stdout } = child
  if (stdout === null) throw new ConfigurationError('The demo model has no output to read its address from')
  return new Promise<string>((resolve, reject) => {
    const fail = (why: string): void => {
      clearTimeout(timer)
      child.kill('SIGKILL')
      const said = complaint.trim() === '' ? '' : `\n${complaint.trim()}`
      reject(new ConfigurationError(`The demo model did not start: ${why}. Set an API key to use a real model.${said}`))
    }
    const timer = setTimeout(() => fail(`it was not ready within ${startLimitMs / 1000} s`), startLimitMs)
    child.once('error', (error) => fail(error.message))
    child.once('close', (code, signal) => fail(`its process ended (${signal ?? `exit code ${code}`})`))
    createInterface({ input: stdout }).on('line', (line) => {
      const url = /^READY (\S+)$/.exec(line)?.[1]
      if (url === undefined) return
      clearTimeout(timer)
      child.removeAllListeners('close')
      resolve(url)
    })
  })
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.ref()
  const gone = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopLimitMs)
  child.stdin?.end()
  await gone
  clearTimeout(timer)
}
