import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { Queue, Worker } from 'bullmq'
import { expect } from 'chai'
import { createRedisMock } from 'js-redis-server'
import { ask } from '../../config/embedded/address.ts'
import { type EmbeddedRedis, startRedis } from '../../config/embedded/redis.ts'
import { queueNames, queuePrefix } from '../../config/queues.ts'
import { type RedisConnector, type RedisConnectorOptions, redisConnector } from '../../config/redis.ts'
import { ConfigurationError, UnreachableError } from '../../src/errors.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { rejection, removeDirectory, temporaryDirectory, thrown, until } from './support/helpers.ts'

describe('connections to Redis', function () {
  this.timeout(30_000)
  let directory: string
  let redis: EmbeddedRedis
  const connectors: RedisConnector[] = []

  const connect = (redisUrl: string, options?: RedisConnectorOptions) => {
    const connector = redisConnector({ redisUrl }, options)
    connectors.push(connector)
    return connector
  }
  const portOf = (url: string) => Number(new URL(url).port)
  const listening = async (server: Server) => {
    server.listen(0, '127.0.0.1')
    await until('it listens', () => server.listening)
    const address = server.address()
    return typeof address === 'object' && address ? address.port : 0
  }

  before(async () => {
    directory = await temporaryDirectory()
    redis = await startRedis(directory, { onNotice: () => {} })
  })
  afterEach(() => Promise.all(connectors.splice(0).map((connector) => connector.close())))
  after(async () => {
    await redis.stop()
    await removeDirectory(directory)
  })

  it('are one for each purpose, ready when they are given, in the numbered database of the URL', async () => {
    const connector = connect(redis.url.replace(/0$/, '3'))
    const clients = await Promise.all([
      connector.producer(),
      connector.openWorker(),
      connector.lock(),
      connector.openReader(),
    ])
    expect(new Set(clients).size).to.equal(4)
    expect(await connector.lock()).to.equal(clients[2])
    expect([clients[0].status, clients[2].status]).to.deep.equal(['ready', 'ready'])
    for (const client of clients) expect(await client.ping()).to.equal('PONG')
    expect(connector.db).to.equal(3)
    await clients[0].set('where', 'three')
    expect(await clients[2].get('where')).to.equal('three')
    const elsewhere = await connect(redis.url).producer()
    expect(await elsewhere.get('where')).to.equal(null)
  })

  it('report each command by name, those of a pipeline too', async () => {
    const names: string[] = []
    const client = await connect(redis.url, { onCommand: (name) => names.push(name) }).producer()
    await client.set('a', '1')
    await client.pipeline().get('a').del('a').exec()
    expect(names).to.deep.equal(['set', 'get', 'del'])
  })

  it('serve BullMQ, its worker included', async () => {
    const connector = connect(redis.url)
    const prefix = queuePrefix('mill', { isCluster: false })
    const queue = new Queue(queueNames.complete, { connection: await connector.producer(), prefix })
    const done: string[] = []
    const worker = new Worker(queueNames.complete, async (job) => done.push(job.name), {
      connection: connector.openWorker(),
      prefix,
    })
    await queue.add('bell', {})
    await until('the job was done', () => done.length === 1)
    expect(await (await connector.producer()).keys('mill:complete:*')).not.to.have.length(0)
    await worker.close()
    await queue.close()
  })

  it('fail at once for producers and locks while Redis is away, and come back by themselves', async () => {
    const other = await temporaryDirectory()
    const server = await startRedis(other, { onNotice: () => {} })
    const troubles: string[] = []
    const connector = connect(server.url, { onTrouble: (_error, servers) => troubles.push(servers) })
    const [producer, lock, worker] = await Promise.all([connector.producer(), connector.lock(), connector.openWorker()])
    await server.stop()
    await until('they noticed', () => [producer, lock, worker].every((client) => client.status !== 'ready'))
    const began = performance.now()
    await rejection(producer.set('a', '1'))
    await rejection(lock.set('a', '1'))
    expect(performance.now() - began).to.be.lessThan(500)
    const waiting = worker.set('a', 'waited')
    await until('someone was told', () => troubles.some((servers) => servers.includes(String(portOf(server.url)))))
    const back = spawn('redis-server', ['--port', String(portOf(server.url)), '--save', ''], { stdio: 'ignore' })
    back.once('error', () => {})
    if (back.pid !== undefined) {
      expect(await waiting).to.equal('OK')
      await until('the producer is back', () => producer.status === 'ready')
      expect(await producer.get('a')).to.equal('waited')
      back.kill()
      await until('the server ended', () => back.exitCode !== null || back.signalCode !== null)
    } else waiting.catch(() => {})
    await removeDirectory(other)
  })

  itOnRealRedis('give up on a lock command after 500 ms when Redis hangs', async () => {
    const lock = await connect(redis.url).lock()
    const blocker = await connect(redis.url).producer()
    // A server that is paused answers nobody.
    await blocker.call('CLIENT', 'PAUSE', '1500', 'ALL')
    const began = performance.now()
    const error = await rejection(lock.get('a'))
    expect(error.message).to.include('timed out')
    expect(performance.now() - began).to.be.within(400, 1_200)
    await until('it is over', async () => (await ask(portOf(redis.url), 'PING')).startsWith('+PONG'))
  })

  itOnRealRedis('warn once of a Redis that may evict keys', async () => {
    const warnings: string[] = []
    const onWarning = (message: string) => warnings.push(message)
    const client = await connect(redis.url, { onWarning }).producer()
    expect(warnings).to.deep.equal([])
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    const connector = connect(redis.url, { onWarning })
    await connector.producer()
    await connector.lock()
    await client.config('SET', 'maxmemory-policy', 'noeviction')
    expect(warnings).to.have.length(1)
    expect(warnings[0]).to.include('allkeys-lru').and.to.include('noeviction')
  })

  it('say within the limit which host and port cannot be reached, without the password', async () => {
    for (const url of [
      'redis://me:hunter2@127.0.0.1:1',
      'redis+sentinel://:hunter2@127.0.0.1:1/m',
      'redis+cluster://:hunter2@127.0.0.1:1',
    ]) {
      const began = performance.now()
      const error = await rejection(connect(url, { readyWithinMs: 700 }).producer())
      expect(error, url).to.be.instanceOf(UnreachableError)
      expect(error.message).to.include('127.0.0.1:1').and.not.to.include('hunter2')
      expect(performance.now() - began).to.be.lessThan(1_500)
    }
  })

  it('give up within 5 s on a server that accepts and stays silent, and can be closed meanwhile', async () => {
    const silent = createServer((socket) => socket.resume().on('error', () => {}))
    const port = await listening(silent)
    const began = performance.now()
    const error = await rejection(connect(`redis://127.0.0.1:${port}`).lock())
    expect(error).to.be.instanceOf(UnreachableError)
    expect(performance.now() - began).to.be.lessThan(5_500)
    const connector = connect(`redis://127.0.0.1:${port}`)
    const waiting = rejection(connector.lock())
    await connector.close()
    expect(await waiting).to.be.instanceOf(UnreachableError)
    expect(await rejection(connector.lock())).to.be.instanceOf(ConfigurationError)
    expect(thrown(() => connector.openWorker())).to.be.instanceOf(ConfigurationError)
    silent.close()
  })

  itOnRealRedis('say at once that a password is wrong', async () => {
    const client = await connect(redis.url).producer()
    await client.config('SET', 'requirepass', 'right')
    const began = performance.now()
    const error = await rejection(connect(redis.url.replace('//', '//:hunter2@')).producer())
    await client.config('SET', 'requirepass', '')
    expect(error).to.be.instanceOf(UnreachableError)
    expect(error.message).to.include('WRONGPASS').and.not.to.include('hunter2')
    expect(performance.now() - began).to.be.lessThan(2_000)
  })

  it('ask for TLS when the URL does', async () => {
    let first = -1
    const server = createServer((socket) => {
      socket.once('data', (data) => {
        first = data[0] ?? -1
        socket.destroy()
      })
      socket.on('error', () => {})
    })
    const port = await listening(server)
    await rejection(connect(`rediss://127.0.0.1:${port}`, { readyWithinMs: 300 }).producer())
    // A TLS conversation begins with a handshake record.
    expect(first).to.equal(22)
    server.close()
  })

  it('reach a cluster by its seeds', async () => {
    const cluster = await createRedisMock({ cluster: { masters: 3 } })
    const seeds = cluster
      .addresses()
      .map(({ host, port }) => `${host}:${port}`)
      .join(',')
    const connector = connect(`redis+cluster://${seeds}`)
    const [producer, lock] = await Promise.all([connector.producer(), connector.lock()])
    for (const key of ['a', 'b', 'c', 'd']) await producer.set(key, key)
    expect(await Promise.all(['a', 'b', 'c', 'd'].map((key) => lock.get(key)))).to.deep.equal(['a', 'b', 'c', 'd'])
    await connector.close()
    await cluster.close()
  })

  itOnRealRedis('reach the master that sentinels know', async () => {
    const probe = createServer()
    const port = await listening(probe)
    await new Promise((done) => probe.close(done))
    const file = join(directory, 'sentinel.conf')
    const monitor = `sentinel monitor mymaster 127.0.0.1 ${portOf(redis.url)} 1`
    await writeFile(file, `port ${port}\nbind 127.0.0.1\ndir ${directory}\n${monitor}\n`)
    const sentinel = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' })
    await until('the sentinel answers', async () => (await ask(port, 'PING')).startsWith('+PONG'))
    const client = await connect(`redis+sentinel://127.0.0.1:${port}/mymaster?db=2`).producer()
    expect(await client.set('by', 'sentinel')).to.equal('OK')
    expect(await (await connect(redis.url.replace(/0$/, '2')).producer()).get('by')).to.equal('sentinel')
    sentinel.kill()
    await until('the sentinel ended', () => sentinel.exitCode !== null || sentinel.signalCode !== null)
  })

  it('need a URL', () => {
    expect(thrown(() => redisConnector({ redisUrl: null }))).to.be.instanceOf(ConfigurationError)
    expect(thrown(() => redisConnector({ redisUrl: 'http://:hunter2@h' })).message)
      .to.include('REDIS_URL')
      .and.not.to.include('hunter2')
  })
})
