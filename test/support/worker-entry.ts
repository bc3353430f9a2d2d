import { pathToFileURL } from 'node:url'
import { type ConnectOptions, Threadmill, type WorkerCounts } from '../../src/index.ts'

// A worker process of a test: `worker-entry APP`, where the module APP exports `agents` and, if it
// likes, `tools`, `observe`, `extend`, and `connected`, which is given the connection. Options come as JSON in
// THREADMILL_TEST_OPTIONS; with `isolates`, chats that processes died over run in processes of their own, of APP's default
// export. Says READY on stdout, and CLOSING when it has begun to end cleanly, on SIGTERM.

const app = await import(pathToFileURL(process.argv[2] ?? '').href)
const { counts, isolates, ...options } = JSON.parse(process.env.THREADMILL_TEST_OPTIONS ?? '{}') as ConnectOptions & {
  counts?: WorkerCounts
  isolates?: boolean
}
const { agents, tools, observe, extend } = app
const mill = await Threadmill.connect({ ...options, agents, tools, observe, extend })
app.connected?.(mill)
const pool = mill.startWorkers({ ...counts, ...(isolates ? { isolate: { app: process.argv[2] ?? '' } } : {}) })
await pool.ready()
process.on('SIGTERM', () => {
  void mill.close().then(() => process.exit(0))
  process.stdout.write('CLOSING\n')
})
// The parent ends with the test; its worker must not outlive it.
process.stdin.resume().on('end', () => process.exit(1))
process.stdout.write('READY\n')
