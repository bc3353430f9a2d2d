import { ConfigurationError, UnreachableError } from '../src/errors.ts'
import { describeTarget, openClient, type RedisClient, type RedisPurpose } from './redis-clients.ts'
import type { Settings } from './settings.ts'
import { parseRedisUrl, type RedisTarget, UrlProblem } from './urls.ts'

/** What a connector reports, and how long it waits. */
export interface RedisConnectorOptions {
  /** Told of what an operator should know: a Redis that may evict keys, connections that fail later on. Default: nobody. */
  readonly onWarning?: ((message: string) => void) | undefined
  /** Told of the name of each command that is sent once a client is ready, in lower case. Default: nobody. */
  readonly onCommand?: ((name: string) => void) | undefined
  /** Most ms that a client may take to become ready. Default: 5000. */
  readonly readyWithinMs?: number | undefined
}

/** Clients of one Redis by purpose, one for each; a second call gets the same client. All reject with UnreachableError. */
export interface RedisConnector {
  /** For adding jobs and other commands of requests: fails at once while Redis is away. */
  producer(): Promise<RedisClient>
  /** For Redlock alone: a command fails after 500 ms, and at once while Redis is away. */
  lock(): Promise<RedisClient>
  /** A new client for BullMQ's workers, connecting: it waits for Redis for as long as it takes. */
  openWorker(): RedisClient
  /** A new client for blocking reads, connecting; whoever opened it ends it. */
  openReader(): RedisClient
  /** The numbered database; Redlock has to be told. */
  readonly db: number
  /** Ends all clients, those that are still connecting too. Safe to call again; nothing can be opened afterwards. */
  close(): Promise<void>
}

const READY_WITHIN_MS = 5_000

/**
 * Connects to the Redis that the settings name. Nothing is opened before it is asked for. Throws ConfigurationError when
 * there is no usable `redisUrl`.
 */
export function redisConnector(
  settings: Pick<Settings, 'redisUrl'>,
  { onWarning = () => {}, onCommand, readyWithinMs = READY_WITHIN_MS }: RedisConnectorOptions = {},
): RedisConnector {
  const target = targetOf(settings.redisUrl)
  const opened = new Set<RedisClient>()
  const ready = new Map<RedisPurpose, Promise<RedisClient>>()
  let policyChecked = false
  let closed = false

  async function connect(purpose: RedisPurpose): Promise<RedisClient> {
    if (closed) throw new ConfigurationError('The connections to Redis are closed: connect again to get new ones')
    const client = openClient(target, purpose)
    opened.add(client)
    try {
      await untilReady(client, target, readyWithinMs)
    } catch (error) {
      opened.delete(client)
      client.disconnect()
      throw error
    }
    // Without a listener a lost connection would end the process; the client reconnects by itself.
    client.on('error', (error: Error) => onWarning(`Redis at ${describeTarget(target)}: ${error.message}`))
    if (!policyChecked && purpose !== 'reader') {
      policyChecked = true
      await checkEviction(client, onWarning)
    }
    if (onCommand) reportCommands(client, onCommand)
    return client
  }

  function client(purpose: RedisPurpose): Promise<RedisClient> {
    const known = ready.get(purpose)
    if (known) return known
    const connecting = connect(purpose)
    ready.set(purpose, connecting)
    // A failure is not kept: Redis may be there the next time.
    connecting.catch(() => ready.delete(purpose))
    return connecting
  }

  /** Not awaited: it becomes ready by itself, and waits for Redis in its own way. */
  function open(purpose: 'worker' | 'reader'): RedisClient {
    if (closed) throw new ConfigurationError('The connections to Redis are closed: connect again to get new ones')
    const client = openClient(target, purpose)
    client.on('error', (error: Error) => onWarning(`Redis at ${describeTarget(target)}: ${error.message}`))
    client.once('end', () => opened.delete(client))
    opened.add(client)
    if (onCommand) reportCommands(client, onCommand)
    return client
  }

  return {
    producer: () => client('producer'),
    lock: () => client('lock'),
    openWorker: () => open('worker'),
    openReader: () => open('reader'),
    db: target.db,
    async close() {
      closed = true
      for (const client of opened) client.disconnect()
      await Promise.allSettled(ready.values())
      opened.clear()
      ready.clear()
    },
  }
}

function targetOf(url: string | null): RedisTarget {
  if (url === null) throw new ConfigurationError('REDIS_URL is missing: set it, or start the embedded Redis first')
  const target = parseRedisUrl(url)
  if (target instanceof UrlProblem) throw new ConfigurationError(`REDIS_URL ${target.reason}`)
  return target
}

/** Resolves once commands can be sent; rejects with UnreachableError after the limit, or when the client is ended. */
function untilReady(client: RedisClient, target: RedisTarget, limitMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let last: Error | undefined
    const failed = (error: Error) => {
      last = error
      // No later attempt can end differently.
      if (/WRONGPASS|NOAUTH|NOPERM|invalid (?:username-)?password|invalid DB index/i.test(error.message))
        fail('refuses')
    }
    const fail = (how: string) => {
      settle()
      const why = last && last.message !== '' ? ` (${last.message})` : ''
      reject(
        new UnreachableError(
          `Redis at ${describeTarget(target)} ${how}${why}: check that it runs, and the host, port and password in REDIS_URL`,
          { cause: last },
        ),
      )
    }
    const ended = () => fail('was given up')
    const done = () => {
      settle()
      resolve()
    }
    const timer = setTimeout(() => fail(`was not ready within ${limitMs} ms`), limitMs)
    const settle = () => {
      clearTimeout(timer)
      client.off('ready', done)
      client.off('end', ended)
      client.off('error', failed)
      // What a client says while it is being dropped interests nobody, but has to be heard.
      client.on('error', () => {})
    }
    client.on('error', failed)
    client.once('end', ended)
    client.once('ready', done)
  })
}

/** Warns when Redis may throw keys away: jobs and locks would vanish. Says nothing where the policy can't be read. */
async function checkEviction(client: RedisClient, onWarning: (message: string) => void): Promise<void> {
  try {
    const policy = /^maxmemory_policy:(\S+)/m.exec(await client.info('memory'))?.[1]
    if (policy === undefined || policy === 'noeviction') return
    onWarning(
      `Redis evicts keys (maxmemory-policy is ${policy}), so jobs can vanish: set it to noeviction. No message is lost, but chats wait for the sweeper`,
    )
  } catch {
    // A server that doesn't tell is used all the same.
  }
}

function reportCommands(client: RedisClient, onCommand: (name: string) => void): void {
  const target = client as { sendCommand(...input: unknown[]): unknown }
  const send = target.sendCommand.bind(client)
  target.sendCommand = (...input) => {
    onCommand((input[0] as { name: string }).name.toLowerCase())
    return send(...input)
  }
}
