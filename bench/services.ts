import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createConnection } from 'mysql2/promise'
import { startRedisServer } from '../test/support/redis-server.ts'
import type { DatabaseCounters } from './measure.ts'

/** What the benchmark runs on, all of it its own but for the database server. */
export interface Services {
  readonly databaseUrl: string
  readonly redisUrl: string
  modelUrl(latencyMs: number, chunks: number): string
  readonly counters: DatabaseCounters
  close(): Promise<void>
}

/** Starts a model server and a Redis, and makes a database: on the server that the URL names, else a SQLite file. */
export async function startServices(serverUrl: string | undefined): Promise<Services> {
  const model = fork(fileURLToPath(new URL('./model-server.ts', import.meta.url)))
  const [port] = (await once(model, 'message')) as [number]
  const redis = await startRedisServer()
  const database = serverUrl === undefined ? await sqliteFile() : await ownDatabase(serverUrl)
  return {
    databaseUrl: database.url,
    redisUrl: redis.url,
    modelUrl: (latencyMs, chunks) => `http://127.0.0.1:${port}/${latencyMs}/${chunks}`,
    counters: database.counters,
    async close() {
      model.disconnect()
      await redis.stop()
      await database.drop()
    },
  }
}

interface OwnDatabase {
  readonly url: string
  readonly counters: DatabaseCounters
  drop(): Promise<void>
}

async function sqliteFile(): Promise<OwnDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'threadmill-bench-'))
  const drop = () => rm(folder, { recursive: true, force: true })
  return { url: `sqlite:${join(folder, 'bench.sqlite')}`, counters: async () => null, drop }
}

async function ownDatabase(serverUrl: string): Promise<OwnDatabase> {
  const name = `threadmill_bench_${process.pid}`
  const connection = await createConnection(serverUrl)
  await connection.query(`CREATE DATABASE ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    async counters() {
      const [rows] = await connection.query(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Bytes_received', 'Rows_read')",
      )
      const status = new Map(
        (rows as { Variable_name: string; Value: string }[]).map((row) => [row.Variable_name, Number(row.Value)]),
      )
      return {
        statements: status.get('Questions') ?? 0,
        bytesReceived: status.get('Bytes_received') ?? 0,
        rowsRead: status.get('Rows_read') ?? 0,
      }
    },
    async drop() {
      await connection.query(`DROP DATABASE ${name}`)
      await connection.end()
    },
  }
}
