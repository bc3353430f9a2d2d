import { Threadmill } from 'threadmill'
import { benchAgent } from './agent.ts'
import { type Arena, ownCpuMs } from './contestant.ts'

// The worker process of the benchmark. Its parent sends what to connect to, then asks for its CPU time.

export type Order =
  | { readonly kind: 'start'; readonly arena: Arena; readonly streaming: boolean; readonly jobs: number }
  | { readonly kind: 'cpu' }
export type Word =
  | { readonly kind: 'ready' }
  | { readonly kind: 'cpu'; readonly ms: number }
  | { readonly kind: 'answered'; readonly chatId: string }

const say = (word: Word) => process.send?.(word)

process.on('message', async (order: Order) => {
  if (order.kind === 'cpu') {
    say({ kind: 'cpu', ms: ownCpuMs() })
    return
  }
  const { databaseUrl, redisUrl, modelUrl } = order.arena
  const mill = await Threadmill.connect({
    databaseUrl,
    redisUrl,
    openaiBaseUrl: modelUrl,
    agents: [benchAgent(order.streaming, (chatId) => say({ kind: 'answered', chatId }))],
  })
  await mill.startWorkers({ complete: order.jobs, runTools: 0 }).ready()
  say({ kind: 'ready' })
  process.on('disconnect', () => void mill.close().finally(() => process.exit(0)))
})
