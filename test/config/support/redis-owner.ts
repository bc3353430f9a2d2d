import { once } from 'node:events'
import { startRedis } from '../../../config/embedded/redis.ts'

const [dataDir = ''] = process.argv.slice(2)
const notices: string[] = []
const redis = await startRedis(dataDir, { onNotice: (message) => notices.push(message) })
process.stdout.write(`${JSON.stringify({ url: redis.url, kind: redis.kind, shared: redis.shared, notices })}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
await redis.stop()
