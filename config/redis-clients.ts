import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { RedisTarget } from './urls.ts'

/** What a client is for; each purpose fails, or waits, in its own way when Redis is away. */
export type RedisPurpose = 'producer' | 'worker' | 'lock' | 'reader'

/** A connection to one server, found directly or through sentinels, or to a cluster. */
export type RedisClient = Redis | Cluster

interface Behaviour {
  readonly maxRetriesPerRequest: number | null
  readonly enableOfflineQueue: boolean
  /** Most ms that a command may take, 0 = any. */
  readonly commandTimeout: number
}

const behaviours: Record<RedisPurpose, Behaviour> = {
  // A request that enqueues must fail fast: the wish is a row already, and the sweeper rings later.
  producer: { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: 0 },
  // BullMQ demands null of workers: they wait for Redis for ever.
  worker: { maxRetriesPerRequest: null, enableOfflineQueue: true, commandTimeout: 0 },
  // The holder of a lock must learn within its ttl that Redis is gone or frozen.
  lock: { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: 500 },
  // Blocking reads take as long as they take.
  reader: { maxRetriesPerRequest: null, enableOfflineQueue: true, commandTimeout: 0 },
}

const CONNECT_MS = 4_000
const LONGEST_PAUSE_MS = 1_000

/** Reconnects for ever, after 100 ms at first and 1 s at last: what waits for Redis goes on soon after its return. */
const retryStrategy = (times: number) => Math.min(times * 100, LONGEST_PAUSE_MS)

/** Opens a client for a purpose. It is connecting, not ready, when it is returned. */
export function openClient(target: RedisTarget, purpose: RedisPurpose): RedisClient {
  const { commandTimeout, ...behaviour } = behaviours[purpose]
  const common: RedisOptions = {
    connectTimeout: CONNECT_MS,
    maxRetriesPerRequest: behaviour.maxRetriesPerRequest,
    ...(commandTimeout > 0 ? { commandTimeout } : {}),
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
  }
  // An empty object asks for TLS with the machine's own trust store.
  const tls = target.tls ? { tls: {} } : {}
  if (target.kind === 'cluster') {
    return new Cluster([...target.nodes], {
      enableOfflineQueue: behaviour.enableOfflineQueue,
      clusterRetryStrategy: retryStrategy,
      redisOptions: { ...common, ...tls },
    })
  }
  const single: RedisOptions = {
    ...common,
    enableOfflineQueue: behaviour.enableOfflineQueue,
    db: target.db,
    retryStrategy,
  }
  if (target.kind === 'single') return new Redis({ ...single, ...tls, ...target.nodes[0] })
  return new Redis({
    ...single,
    ...tls,
    sentinels: [...target.nodes],
    name: target.master ?? '',
    sentinelRetryStrategy: retryStrategy,
    ...(target.tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
    ...(target.sentinelUsername === undefined ? {} : { sentinelUsername: target.sentinelUsername }),
    ...(target.sentinelPassword === undefined ? {} : { sentinelPassword: target.sentinelPassword }),
  })
}

/**
 * Another connection to where an application's own client leads, by its own options but for those that the purpose
 * decides. It is connecting, not ready, when it is returned.
 */
export function duplicateClient(client: RedisClient, purpose: RedisPurpose, db: number): RedisClient {
  const { commandTimeout, maxRetriesPerRequest, enableOfflineQueue } = behaviours[purpose]
  // Written out where it means "none": what the application chose for quick commands would break off blocking ones.
  const common = {
    maxRetriesPerRequest,
    commandTimeout: commandTimeout > 0 ? commandTimeout : undefined,
    socketTimeout: undefined,
    stringNumbers: false,
    enableReadyCheck: true,
  } as RedisOptions
  const shared = { enableOfflineQueue, enableAutoPipelining: false, lazyConnect: false }
  if (client.isCluster) {
    const cluster = client as Cluster
    const redisOptions = { ...cluster.options.redisOptions, ...common }
    return cluster.duplicate([], { ...shared, clusterRetryStrategy: retryStrategy, redisOptions })
  }
  const sentinels = { sentinelRetryStrategy: retryStrategy }
  return (client as Redis).duplicate({ ...common, ...shared, ...sentinels, db, retryStrategy })
}

/** The servers of a target for messages, without credentials. */
export function describeTarget(target: RedisTarget): string {
  const nodes = target.nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (target.kind === 'single') return nodes
  return target.kind === 'sentinel' ? `${target.master} by the sentinels ${nodes}` : `the cluster ${nodes}`
}
