import { Queue } from 'bullmq'
import { queueNames } from '../config/queues.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Bell } from '../models/rows.ts'
import type { RingData } from './bell.ts'

/** A queue for whoever looks at it. */
export type OpenedQueue = readonly [Bell, Queue<RingData>]

/** Opens every queue to be looked at; whoever opened them closes them. */
export function openQueues(connection: RedisClient, prefix: string): readonly OpenedQueue[] {
  return (Object.keys(queueNames) as Bell[]).map((name) => {
    const queue = new Queue<RingData>(queueNames[name], { connection, prefix, skipVersionCheck: true })
    // Whoever reads gets the error; without a listener it would end the process, too.
    queue.on('error', () => {})
    return [name, queue]
  })
}

export async function closeQueues(queues: readonly OpenedQueue[]): Promise<void> {
  await Promise.all(queues.map(([, queue]) => queue.close()))
}
