import { ConfigurationError, UnreachableError } from '../src/errors.ts'
import { describeTarget, openClient, type RedisClient, type RedisPurpose } from './redis-clients.ts'
import type { Settings } from './settings.ts'
import { SilenceWatch } from './silence.ts'
import { parseRedisUrl, type RedisTarget, UrlProblem } from './urls.ts'

/** What a connector reports, and how long it waits. */
export interface RedisConnectorOptions {
  /** Told of what an operator should know: a Redis that may evict keys. Default: nobody. */
  readonly onWarning?: ((message: string) => void) | undefined
  /** Told of connections that fail later on, and of the servers that they are to. Default: nobody. */
  readonly onTrouble?: ((error: Error, servers: string) => void) | undefined
  /** Told of the name of each command that is sent once a client is ready, in lower case. Default: nobody. */
  readonly onCommand?: ((name: string) => void) | undefined
  /** Most ms that a client may take to become ready. Default: 5000. */
  readonly readyWithinMs?: number | undefined
  /** Time between two looks for a connection that answers nothing, in ms. Default: 1000. */
  readonly lookEveryMs?: number | undefined
}

/** Clients of one Redis by purpose, one for each; a second call gets the same client. All reject with UnreachableError. */
export interface RedisConnector {
  /** For adding jobs and other commands of requests: fails at once while Redis is away. */
  producer(): Promise<RedisClient>
  /** Like `producer`, but never a client that the application brought along: one that is made anew when it falls silent. */
  ownProducer(): Promise<RedisClient>
  /** For Redlock alone: a command fails after 500 ms, and at once while Redis is away. */
  lock(): Promise<RedisClient>
  /** A new client for BullMQ's workers, connecting: it waits for Redis for as long as it takes. */
  openWorker(): RedisClient
  /** A new client for blocking reads, connecting; whoever opened it ends it. */
  openReader(): RedisClient
  /** The numbered database; Redlock has to be told. */
  readonly db: number
  /** Whether it is a cluster, where the keys of a queue have to be on one node. */
  readonly isCluster: boolean
  /** Whether Redis answers on a new connection, which is closed again. Never rejects. */
  answers(): Promise<boolean>
  /** Ends all clients, those that are still connecting too. Safe to call again; nothing can be opened afterwards. */
  close(): Promise<void>
}

const READY_WITHIN_MS = 5_000
/** How long a client, or a new connection, is waited for to find out which of them is at fault, in ms. */
const ANSWER_WITHIN_MS = 1_500

/** Where a connector gets its clients. */
export interface RedisSource {
  /** A new client, connecting. */
  open(purpose: RedisPurpose): RedisClient
  /** An application's own client, in place of one for `producer`: never ended here. */
  readonly shared?: RedisClient
  /** The servers, for messages. */
  readonly description: string
  /** Where a user looks when they can't be reached. */
  readonly advice: string
  readonly db: number
  readonly isCluster: boolean
}

/**
 * Connects to the Redis that the settings name. Nothing is opened before it is asked for. Throws ConfigurationError when
 * there is no usable `redisUrl`.
 */
export function redisConnector(
  settings: Pick<Settings, 'redisUrl'>,
  options: RedisConnectorOptions = {},
): RedisConnector {
  const target = targetOf(settings.redisUrl)
  const source: RedisSource = {
    open: (purpose) => openClient(target, purpose),
    description: describeTarget(target),
    advice: 'the host, port and password in REDIS_URL',
    db: target.db,
    isCluster: target.kind === 'cluster',
  }
  return connectorOf(source, options)
}

/** A connector for a source. */
export function connectorOf(
  source: RedisSource,
  {
    onWarning = () => {},
    onTrouble = () => {},
    onCommand,
    readyWithinMs = READY_WITHIN_MS,
    lookEveryMs,
  }: RedisConnectorOptions = {},
): RedisConnector {
  const opened = new Set<RedisClient>()
  const ready = new Map<RedisPurpose | 'shared', Promise<RedisClient>>()
  let policyChecked = false
  let closed = false
  const silence = new SilenceWatch({
    lookEveryMs,
    isAlone: async (client) => {
      const [itself, another] = await Promise.all([pings(client), answers()])
      return another && !itself
    },
    onSilent: () =>
      onTrouble(new UnreachableError('A connection answered nothing: it is made anew'), source.description),
  })

  async function answers(): Promise<boolean> {
    if (closed) return false
    const client = source.open('lock')
    opened.add(client)
    try {
      await untilReady(client, source, ANSWER_WITHIN_MS)
      return true
    } catch {
      return false
    } finally {
      opened.delete(client)
      client.disconnect()
    }
  }

  async function connect(key: RedisPurpose | 'shared'): Promise<RedisClient> {
    if (closed) throw new ConfigurationError('The connections to Redis are closed: connect again to get new ones')
    if (key === 'shared' && source.shared !== undefined) return untilAnswered(source.shared, source, readyWithinMs)
    const purpose = key === 'shared' ? 'producer' : key
    const client = source.open(purpose)
    opened.add(client)
    try {
      await untilReady(client, source, readyWithinMs)
    } catch (error) {
      opened.delete(client)
      client.disconnect()
      throw error
    }
    // Without a listener a lost connection would end the process; the client reconnects by itself.
    client.on('error', (error: Error) => onTrouble(error, source.description))
    if (!policyChecked && purpose !== 'reader') {
      policyChecked = true
      await checkEviction(client, onWarning)
    }
    if (onCommand) reportCommands(client, onCommand)
    silence.watch(client)
    return client
  }

  function client(key: RedisPurpose | 'shared'): Promise<RedisClient> {
    const known = ready.get(key)
    if (known) return known
    const connecting = connect(key)
    ready.set(key, connecting)
    // A failure is not kept: Redis may be there the next time.
    connecting.catch(() => ready.delete(key))
    return connecting
  }

  /** Not awaited: it becomes ready by itself, and waits for Redis in its own way. */
  function open(purpose: 'worker' | 'reader'): RedisClient {
    if (closed) throw new ConfigurationError('The connections to Redis are closed: connect again to get new ones')
    const client = source.open(purpose)
    client.on('error', (error: Error) => onTrouble(error, source.description))
    client.once('end', () => opened.delete(client))
    opened.add(client)
    if (onCommand) reportCommands(client, onCommand)
    if (purpose === 'worker') silence.watch(client)
    return client
  }

  return {
    producer: () => client(source.shared === undefined ? 'producer' : 'shared'),
    ownProducer: () => client('producer'),
    lock: () => client('lock'),
    openWorker: () => open('worker'),
    openReader: () => open('reader'),
    db: source.db,
    isCluster: source.isCluster,
    answers,
    async close() {
      closed = true
      silence.close()
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
function untilReady(client: RedisClient, source: RedisSource, limitMs: number): Promise<void> {
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
        new UnreachableError(`Redis at ${source.description} ${how}${why}: check that it runs, and ${source.advice}`, {
          cause: last,
        }),
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

/** Whether a client has an answer for a command now; false for an error that Redis did not send, too. */
async function pings(client: RedisClient): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ANSWER_WITHIN_MS, false)
  })
  const answered = client.ping().then(
    () => true,
    (error: Error) => error.name === 'ReplyError',
  )
  return Promise.race([answered, limit]).finally(() => clearTimeout(timer))
}

/** Resolves once a client that is somebody else's has answered; it is left as it is. */
async function untilAnswered(client: RedisClient, source: RedisSource, limitMs: number): Promise<RedisClient> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`did not answer within ${limitMs} ms`), limitMs)
  })
  const answered = client.ping().then(
    () => null,
    (error: Error) => `does not answer (${error.message})`,
  )
  const problem = await Promise.race([answered, limit]).finally(() => clearTimeout(timer))
  if (problem === null) return client
  throw new UnreachableError(`Redis at ${source.description} ${problem}: check that it runs, and ${source.advice}`)
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
