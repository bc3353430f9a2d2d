import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { ConnectOptions } from '../../src/index.ts'
import { startRedisServer } from '../support/redis-server.ts'
import type { DatabaseVictim, RedisVictim } from './inject.ts'
import type { Janitor } from './janitor.ts'
import { startMariaDb } from './mariadb.ts'
import { meddlerOf } from './meddler.ts'
import type { DatabaseName } from './plan.ts'
import { startProxy } from './proxy.ts'

/** The servers of one part of a chaos run: started for it, and behind proxies. */
export interface Scene {
  /** By way of the proxies, as workers and people connect. */
  readonly options: ConnectOptions
  /** Past them, for whoever watches. */
  readonly direct: ConnectOptions
  readonly redis: RedisVictim
  /** Null: a file. */
  readonly database: DatabaseVictim | null
  close(): Promise<void>
}

const schema = 'chaos'

export async function openScene(database: DatabaseName, folder: string, janitor: Janitor): Promise<Scene> {
  await mkdir(folder, { recursive: true })
  const closing: (() => Promise<unknown>)[] = []
  try {
    const redis = await openRedis(closing)
    const rows = database === 'mysql' ? await openMysql(folder, janitor, closing) : sqliteIn(folder)
    return {
      options: { redisUrl: redis.url, databaseUrl: rows.url },
      direct: { redisUrl: redis.directUrl, databaseUrl: rows.directUrl },
      redis: redis.victim,
      database: rows.victim,
      close: () => closeAll(closing),
    }
  } catch (error) {
    await closeAll(closing)
    throw error
  }
}

async function closeAll(closing: (() => Promise<unknown>)[]): Promise<void> {
  for (const close of closing.reverse()) await close()
}

function sqliteIn(folder: string) {
  const url = `sqlite:${join(folder, 'chaos.sqlite')}`
  return { url, directUrl: url, victim: null }
}

async function openRedis(closing: (() => Promise<unknown>)[]) {
  const server = await startRedisServer()
  closing.push(() => server.stop())
  const proxy = await startProxy(server.port)
  closing.push(() => proxy.close())
  const victim: RedisVictim = {
    proxy,
    kill: () => server.kill(),
    start: () => server.restart(),
    async command(name, ...values) {
      const client = new Redis(server.url, { maxRetriesPerRequest: 1, retryStrategy: () => null, lazyConnect: true })
      client.on('error', () => {})
      try {
        await client.connect()
        return await client.call(name, ...values)
      } finally {
        client.disconnect()
      }
    },
  }
  return { url: `redis://127.0.0.1:${proxy.port}/0`, directUrl: server.url, victim }
}

async function openMysql(folder: string, janitor: Janitor, closing: (() => Promise<unknown>)[]) {
  const server = await startMariaDb(folder, schema, janitor)
  closing.push(() => server.kill())
  const proxy = await startProxy(server.port)
  closing.push(() => proxy.close())
  const urlOf = (port: number) => `mysql://root@127.0.0.1:${port}/${schema}`
  const meddler = meddlerOf({ port: server.port, schema })
  const victim: DatabaseVictim = { proxy, kill: server.kill, start: server.start, ...meddler }
  return { url: urlOf(proxy.port), directUrl: urlOf(server.port), victim }
}
