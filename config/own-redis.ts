import { ConfigurationError } from '../src/errors.ts'
import type { RedisSource } from './redis.ts'
import { duplicateClient, type RedisClient } from './redis-clients.ts'

/**
 * An application's own ioredis client, or cluster, as the source of connections: itself for what may share one, and
 * duplicates of it for locks, workers and blocking reads.
 * @throws {ConfigurationError} for what is none, and for one that can't be used.
 */
export function ownRedis(client: RedisClient): RedisSource {
  const options = optionsOf(client)
  if (keyPrefixOf(options) !== '') {
    throw new ConfigurationError(
      'connect({ redis }) has a keyPrefix, which BullMQ can not work with: make a client without it, and set redisPrefix.',
    )
  }
  const mode: unknown = Reflect.get(client, 'mode') ?? 'normal'
  if (mode !== 'normal') {
    throw new ConfigurationError(
      `connect({ redis }) is in ${String(mode)} mode: give a client that takes all commands.`,
    )
  }
  if (client.status === 'end') {
    throw new ConfigurationError('connect({ redis }) is closed: give a client that is connected, or will be.')
  }
  const db = client.isCluster ? 0 : selectedDb(client, options)
  return {
    shared: client,
    open: (purpose) => duplicateClient(client, purpose, db),
    description: describe(client, options),
    advice: 'the options of the client given as connect({ redis })',
    db,
    isCluster: client.isCluster,
  }
}

type Options = Readonly<Record<string, unknown>>

function optionsOf(client: unknown): Options {
  const isOne =
    typeof client === 'object' &&
    client !== null &&
    typeof Reflect.get(client, 'duplicate') === 'function' &&
    typeof Reflect.get(client, 'sendCommand') === 'function' &&
    typeof Reflect.get(client, 'isCluster') === 'boolean'
  const options: unknown = isOne ? Reflect.get(client, 'options') : null
  if (typeof options === 'object' && options !== null) return { ...options }
  throw new ConfigurationError(
    'connect({ redis }) takes a client or cluster of ioredis 5, not its options or another client.',
  )
}

function keyPrefixOf(options: Options): string {
  const { redisOptions, keyPrefix } = options
  const inner = typeof redisOptions === 'object' && redisOptions !== null ? Reflect.get(redisOptions, 'keyPrefix') : ''
  return String(keyPrefix ?? '') + String(inner ?? '')
}

/** A client may have been told to SELECT another one than it was made with. */
function selectedDb(client: RedisClient, options: Options): number {
  const condition: unknown = Reflect.get(client, 'condition')
  const selected = typeof condition === 'object' && condition !== null ? Reflect.get(condition, 'select') : undefined
  return Number(selected ?? options.db ?? 0)
}

/** Without credentials. */
function describe(client: RedisClient, { host, port, path, name, sentinels }: Options): string {
  if (client.isCluster) return 'the cluster of connect({ redis })'
  if (Array.isArray(sentinels) && sentinels.length > 0) return `${String(name)} by its sentinels`
  return typeof path === 'string' ? path : `${String(host ?? 'localhost')}:${String(port ?? 6379)}`
}
