import { Worker } from 'node:worker_threads'

/** When a process is to be ended, in ms. */
export interface WatchOptions {
  /** After its main thread has stood still for so long. */
  readonly blockedMs: number
  /** After whoever started it has been gone for so long. */
  readonly orphanedMs: number
}

const beatMs = 1_000

// A text, so that it is there from sources, compiled and bundled alike; it uses nothing of ours. A main thread that a tool blocks
// for ever hears neither a signal nor that its parent is gone.
const thread = `
const { workerData, parentPort } = require('node:worker_threads')
const { beats, parent, beatMs, blockedMs, orphanedMs } = workerData
let seen = -1
let blocked = 0
let orphaned = 0
const timer = setInterval(() => {
  const now = Atomics.load(beats, 0)
  blocked = now === seen ? blocked + beatMs : 0
  seen = now
  orphaned = process.ppid === parent ? 0 : orphaned + beatMs
  if (blocked > blockedMs || orphaned > orphanedMs) process.kill(process.pid, 'SIGKILL')
}, beatMs)
parentPort.once('message', () => clearInterval(timer))
`

/** Ends this process by SIGKILL when it stands still for too long, or outlives its parent. Until it is stopped. */
export function watchMainThread({ blockedMs, orphanedMs }: WatchOptions): { stop(): Promise<void> } {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  const beating = setInterval(() => Atomics.add(beats, 0, 1), beatMs / 2)
  const parent = process.ppid
  const worker = new Worker(thread, {
    eval: true,
    workerData: { beats, parent, beatMs, blockedMs, orphanedMs },
    execArgv: [],
  })
  worker.unref()
  beating.unref()
  return {
    async stop() {
      clearInterval(beating)
      await worker.terminate()
    },
  }
}
