import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { ownRedis } from '../config/own-redis.ts'
import {
  ConfigurationError,
  type ConnectOptions,
  defineAgent,
  type Observation,
  UnreachableError,
} from '../src/index.ts'
import { text } from '../src/testing/index.ts'
import { rejectionOf } from './chat/support/watching.ts'
import { startProxy } from './events/proxy.ts'
import { sqlite } from './support/databases.ts'
import { useBench } from './support/mills.ts'
import { itOnRealRedis } from './support/real-redis.ts'
import { until } from './support/until.ts'

const helper = defineAgent({ name: 'helper' })

describe("The application's own Redis client", () => {
  const bench = useBench(sqlite)
  const clients: (Redis | Cluster)[] = []
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect()
  })
  function application(more: object = {}): Redis {
    const client = new Redis({ port: bench.redis.port, host: '127.0.0.1', ...more })
    // As every application has: without a listener ioredis complains on the console.
    client.on('error', () => {})
    clients.push(client)
    return client
  }
  const connect = (redis: Redis | Cluster, more: ConnectOptions = {}) =>
    bench.connect({ redisUrl: undefined, redis, agents: [helper], ...more })

  itOnRealRedis('carries a whole turn on its database, whatever its own limits, and stays open as it was', async () => {
    await bench.script([text('Yes.')])
    const client = application({ db: 3, commandTimeout: 700, maxRetriesPerRequest: 2, enableAutoPipelining: true })
    await client.set('mine', 'kept')
    // Those of other tests on the same server.
    const before = await application({ db: 0 }).keys('threadmill*')
    const listeners = client.listenerCount('error')
    const mill = await connect(client)
    const pool = mill.startWorkers({ complete: 1, runTools: 0 })
    await pool.ready()
    const chat = await mill.chats.create({ agent: helper })
    const events = chat.events()
    await events.ready
    await chat.askLater('Are you there?', { enqueue: true })
    const seen: string[] = []
    for await (const event of events) {
      seen.push(event.type)
      if (event.type === 'run.finished') break
    }
    expect(seen).to.include('run.finished')
    await until('the end of the run', async () => !(await chat.running()))
    expect((await chat.messages()).at(-1)?.content).to.equal('Yes.')
    const keys = await client.keys('threadmill*')
    expect(keys.some((key) => key.startsWith('threadmill:complete:'))).to.equal(true)
    expect(keys.some((key) => key.includes(chat.id))).to.equal(true)
    await pool.close()
    await mill.close()
    expect(client.status).to.equal('ready')
    expect(await client.get('mine')).to.equal('kept')
    expect(client.listenerCount('error')).to.equal(listeners)
    const first = application({ db: 0 })
    expect(await first.keys('threadmill*')).to.have.members(before)
    const lines = (await client.client('LIST')) as string
    expect(lines.trim().split('\n')).to.have.length(3)
  }).timeout(60_000)

  it('that falls silent holds up no worker: what they need is theirs, and is made anew (E131)', async () => {
    await bench.script(text('Yes.'))
    const proxy = await startProxy(bench.redis.port)
    try {
      const client = application({ port: Number(new URL(proxy.url).port) })
      const mill = await connect(client)
      proxy.muteOpenConnections()
      await mill.startWorkers({ complete: 1, runTools: 0, compact: 0 }).ready()
      const web = await bench.connect({ agents: [helper] })
      const chat = await web.chats.create({ agent: helper })
      await chat.askLater('Are you there?')
      // Wanted without a ring: only the sweeper can tell the worker.
      await web.models.Chat.update({ wantedAt: new Date(0) }, { where: { id: chat.id } })
      await until('it is answered', () => chat.isComplete(), 25_000)
      expect(client.status).to.equal('ready')
    } finally {
      await proxy.close()
    }
  }).timeout(60_000)

  itOnRealRedis('is warned of when it may evict keys, before workers start (E139)', async () => {
    const client = application()
    const seen: Observation[] = []
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    try {
      await connect(client, { onObservation: (one) => seen.push(one) })
    } finally {
      await client.config('SET', 'maxmemory-policy', 'noeviction')
    }
    const notices = seen.flatMap((one) => (one.type === 'notice' ? [one.message] : []))
    expect(notices.filter((message) => message.includes('maxmemory-policy is allkeys-lru'))).to.have.length(1)
  })

  it('is followed to the database that it selected', async () => {
    const client = application()
    await client.select(5)
    expect(ownRedis(client).db).to.equal(5)
    const copy = ownRedis(client).open('worker')
    clients.push(copy)
    expect(copy.options).to.include({ db: 5, maxRetriesPerRequest: null, host: '127.0.0.1' })
  })

  it('hands on sentinels, TLS and credentials to its duplicates, with what each purpose needs', () => {
    const client = new Redis({
      lazyConnect: true,
      sentinels: [{ host: 'one', port: 26379 }],
      name: 'mymaster',
      sentinelPassword: 'secret',
      username: 'app',
      password: 'hunter2',
      tls: { servername: 'redis' },
      retryStrategy: () => null,
      commandTimeout: 100,
    })
    const opened = (['lock', 'worker', 'reader'] as const).map((purpose) => ownRedis(client).open(purpose) as Redis)
    clients.push(client, ...opened)
    for (const copy of opened) {
      copy.on('error', () => {})
      expect(copy.options).to.deep.include({
        sentinels: [{ host: 'one', port: 26379 }],
        name: 'mymaster',
        sentinelPassword: 'secret',
        username: 'app',
        password: 'hunter2',
        tls: { servername: 'redis' },
      })
      expect(copy.options.retryStrategy?.(1)).to.equal(100)
    }
    const [lock, worker, reader] = opened
    expect(lock?.options).to.include({ maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: 500 })
    expect(worker?.options).to.include({ maxRetriesPerRequest: null, enableOfflineQueue: true })
    expect(worker?.options.commandTimeout).to.equal(undefined)
    expect(reader?.options.commandTimeout).to.equal(undefined)
  })

  it('may be a cluster', () => {
    const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], {
      lazyConnect: true,
      redisOptions: { password: 'hunter2', tls: {} },
    })
    const source = ownRedis(cluster)
    const copy = source.open('lock') as Cluster
    cluster.on('error', () => {})
    copy.on('error', () => {})
    clients.push(cluster, copy)
    expect(source.isCluster).to.equal(true)
    expect(copy.options.enableOfflineQueue).to.equal(false)
    expect(copy.options.redisOptions).to.deep.include({ password: 'hunter2', tls: {}, commandTimeout: 500 })
  })

  it('is refused with a keyPrefix, closed, as a subscriber, beside a URL, and when it is none', async () => {
    const subscriber = application()
    await subscriber.subscribe('news')
    const closed = application()
    closed.disconnect()
    await until('the end', () => closed.status === 'end')
    const wrong: [unknown, string][] = [
      [application({ keyPrefix: 'app:' }), 'keyPrefix'],
      [subscriber, 'subscriber'],
      [closed, 'closed'],
      [{ host: '127.0.0.1' }, 'ioredis'],
    ]
    for (const [client, part] of wrong) {
      const error = await rejectionOf(connect(client as Redis))
      expect(error).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes(part)
    }
    const both = await rejectionOf(bench.connect({ redis: application() }))
    expect(both).to.be.instanceOf(ConfigurationError).and.have.property('message').that.includes('redisUrl')
  })

  it('that does not answer is named without its password', async function () {
    this.timeout(30_000)
    const client = application({ port: 1, password: 'hunter2', maxRetriesPerRequest: 1 })
    const error = await rejectionOf(connect(client))
    expect(error).to.be.instanceOf(UnreachableError)
    expect(error).to.have.property('message').that.includes('127.0.0.1:1').and.not.includes('hunter2')
  })

  itOnRealRedis('that waits for a Redis that is away holds up nobody for long', async () => {
    const client = application({ maxRetriesPerRequest: null })
    const mill = await connect(client)
    const chat = await mill.chats.create({ agent: helper })
    await bench.redis.kill()
    await until('the loss', () => client.status !== 'ready')
    await mill.transaction((transaction) => chat.askLater('Are you there?', { transaction, enqueue: true }))
    expect(client.status).not.to.equal('ready')
    expect(await chat.messages()).to.have.length(1)
    await bench.redis.restart()
    await until('the ring that waited', async () => {
      if (client.status !== 'ready') return false
      return (await client.keys('threadmill:complete:*')).some((key) => key.includes(chat.id))
    })
  }).timeout(60_000)
})
