import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { eventHub } from '../../src/events/hub.ts'
import { eventPublisher } from '../../src/events/publisher.ts'
import { eventReaders } from '../../src/events/reader.ts'
import { eventStream } from '../../src/events/stream.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { startRedisServer } from '../support/redis-server.ts'
import { running } from './rows.ts'
import { begun, finished, prefix, readUntil, started, text, textOf, until } from './support.ts'

describe('live events in a cluster', () => {
  itOnRealRedis('are read of chats in different slots, without a connection that blocks', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'threadmill-cluster-'))
    const server = await startRedisServer([
      '--cluster-enabled',
      'yes',
      '--cluster-announce-ip',
      '127.0.0.1',
      '--dir',
      folder,
    ])
    const admin = new Redis(server.url)
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await until(async () => /cluster_state:ok/.test(String(await admin.call('CLUSTER', 'INFO'))))
    const cluster = new Cluster([{ host: '127.0.0.1', port: server.port }], { enableOfflineQueue: true })
    const onError = (error: Error) => {
      throw error
    }
    const publisher = eventPublisher(cluster, { prefix, onError })
    const stream = eventStream(cluster, prefix)
    const look = async () => running().look
    const hub = eventHub({
      prefix,
      redis: cluster,
      connect: null,
      look,
      holds: stream.holds,
      silenceMs: 60_000,
      onError,
    })
    const readers = eventReaders({ hub, stream, rows: { read: async () => running() }, onError })
    try {
      const chats = ['a', 'b', 'c', 'd']
      const reading = chats.map((id) => readUntil(readers.read(id), ({ type }) => type === 'message.finished'))
      for (const id of chats) {
        for (const event of [started(1), begun(), text(`Hello `), text(id), finished(`Hello ${id}`)]) {
          publisher.publish(id, 1, event)
        }
      }
      expect((await Promise.all(reading)).map(textOf)).to.deep.equal(chats.map((id) => `Hello ${id}`))
    } finally {
      readers.close()
      hub.close()
      await publisher.close()
      cluster.disconnect()
      admin.disconnect()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    }
  })
})
