import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { startRedisServer } from '../support/redis-server.ts'
const redis = await startRedisServer()
for (const wait of [0, 300, 1500]) for (const how of ['none', 'disconnect', 'both'] as const) {
  await redis.restart()
  const connection = new Redis(redis.url, { maxRetriesPerRequest: null })
  connection.on('error', () => {})
  const worker = new Worker('q', async () => 'done', { connection, skipVersionCheck: true })
  worker.on('error', () => {})
  await worker.waitUntilReady()
  await new Promise((d) => setTimeout(d, 200))
  await redis.kill()
  await new Promise((d) => setTimeout(d, wait))
  const t = performance.now()
  const closing = worker.close()
  if (how !== 'none') setTimeout(() => { if (how === 'both') connection.disconnect(); void worker.disconnect().then(() => {}, (e) => console.log('dis error', e)) }, 1000)
  const r = await Promise.race([closing.then(() => 'closed', (e) => 'error ' + e), new Promise((d) => setTimeout(() => d('HANGS'), 4000))])
  console.log(wait, how, r, Math.round(performance.now() - t), (worker as any).mainLoopRunning, (worker as any).backend?.connection?.status, (worker as any).backend?.blockingConnection?._client?.status)
  if (r === 'HANGS') { connection.disconnect(); (worker as any).backend?.blockingConnection?._client.disconnect() }
}
await redis.stop()
setTimeout(() => { console.log('handles', process.getActiveResourcesInfo()); process.exit(0) }, 1000)
