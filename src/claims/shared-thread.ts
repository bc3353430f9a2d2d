import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { RenewalSetup } from './renewal-messages.ts'

/** What the thread is sent: a connection to renew claims for, and the port that speaks for it. */
export interface OpenRenewal {
  readonly setup: RenewalSetup
  readonly port: MessagePort
}

/** How long the thread outlives its last user, in ms: starting it costs far more than keeping it. */
const lingerMs = 30_000

let thread: Worker | null = null
let users = 0
let linger: NodeJS.Timeout | null = null

/**
 * A port to the thread that renews the claims of this process; one thread serves all its connections. The port closes when
 * it was asked to, or when the thread died. Neither keeps the process alive.
 */
export function openRenewal(setup: RenewalSetup): MessagePort {
  if (linger !== null) clearTimeout(linger)
  const worker = thread ?? start()
  thread = worker
  const { port1, port2 } = new MessageChannel()
  users++
  port1.once('close', () => {
    users--
    if (users > 0 || thread !== worker) return
    linger = setTimeout(() => {
      if (users === 0 && thread === worker) thread = null
      if (thread === null) void worker.terminate()
    }, lingerMs).unref()
  })
  worker.postMessage({ setup, port: port2 } satisfies OpenRenewal, [port2])
  return port1
}

function start(): Worker {
  const worker = new Worker(threadEntry(), { name: 'threadmill-renewal' })
  const forget = () => {
    if (thread === worker) thread = null
  }
  // Its ports close with it, and those that use them start another.
  worker.on('error', forget)
  worker.on('exit', forget)
  worker.unref()
  return worker
}

/** The built thread, or, where the process runs from sources, a step that loads it by the loader that its parent has. */
function threadEntry(): URL {
  if (!import.meta.url.endsWith('.ts')) return new URL('./renewal-thread.js', import.meta.url)
  const source = new URL('./renewal-thread.ts', import.meta.url).href
  // Required, it resolves to its CommonJS half, which does not find its own hooks when it is imported.
  const loader = new URL('./index.mjs', pathToFileURL(createRequire(import.meta.url).resolve('tsx/esm/api'))).href
  const code = `import { register } from ${JSON.stringify(loader)}; register(); await import(${JSON.stringify(source)})`
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`)
}
