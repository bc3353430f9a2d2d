import { type ConnectOptions, Threadmill, ThreadmillError } from '../../index.ts'
import { demoAgent } from './agent.ts'

// A worker process of the demo. Its parent sends one message, the options to connect with, over the channel between them:
// unlike arguments, nobody else on the machine can read them there. It answers READY, or with why it could not start.

/** What a worker tells its parent, once. */
export type WorkerReply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }

let leaving = false
let mill: Threadmill | undefined

async function leave(): Promise<void> {
  if (leaving) return
  leaving = true
  await mill?.close().catch(() => {})
  process.exit(0)
}

async function start(options: ConnectOptions): Promise<void> {
  try {
    mill = await Threadmill.connect({ ...options, agents: [demoAgent] })
    if (leaving) return
    await mill.startWorkers({ complete: 4, runTools: 0 }).ready()
    tell({ kind: 'ready' })
  } catch (error) {
    const code = error instanceof ThreadmillError ? error.code : 'error'
    tell({ kind: 'failed', code, message: error instanceof Error ? error.message : String(error) })
  }
}

function tell(reply: WorkerReply): void {
  if (process.connected) process.send?.(reply, () => {})
}

// Ctrl-C in a terminal reaches every process of the group; the parent decides what it means.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => void leave())
// However the parent ended: a worker never outlives it.
process.on('disconnect', () => void leave())
process.once('message', (options) => void start(options as ConnectOptions))
