/** The BullMQ queues, by what their jobs do. The names are fixed: every process must agree on them. */
export const queueNames = { complete: 'complete', runTools: 'runTools', compact: 'compact' } as const

/**
 * The `prefix` that BullMQ's queues and workers get. On a cluster it is a hash tag, `{threadmill}`, because BullMQ's
 * scripts need all keys of a queue on one node.
 */
export function queuePrefix(redisPrefix: string, redis: { readonly isCluster: boolean }): string {
  return redis.isCluster ? `{${redisPrefix}}` : redisPrefix
}
