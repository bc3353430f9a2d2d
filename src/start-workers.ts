import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loaderFor, loading } from '../config/node-arguments.ts'
import { queuePrefix } from '../config/queues.ts'
import { environmentOf } from '../config/settings.ts'
import { liftPutOff } from '../models/sweep.ts'
import type { Apart } from '../workers/apart.ts'
import { type OnlyProgram, OwnProcesses } from '../workers/own-process.ts'
import { Pool, type PoolOptions } from '../workers/pool.ts'
import { Sweeper } from '../workers/sweep.ts'
import { ConfigurationError } from './errors.ts'
import { missingAgent } from './loop/ending.ts'
import type { Parts } from './open.ts'

/** How many chats, tool rounds and summaries of one process run at once; what is left out is as configured. 0 = none. */
export interface WorkerCounts {
  /** Chats run at once. Default: `completeConcurrency`, 50. */
  readonly complete?: number
  /** Tool rounds run at once for agents with `toolExecution: 'queue'`. Default: `runToolsConcurrency`, 20. */
  readonly runTools?: number
  /** Summaries made at once as jobs. Default: `compactConcurrency`, 5. */
  readonly compact?: number
}

/** What the workers of a process do. */
export interface WorkersOptions extends WorkerCounts {
  /**
   * Where processes of their own get the agents from, for chats that workers died over. Left out, such chats are run in this process, one
   * at a time. (E121, E122)
   */
  readonly isolate?: IsolateOptions
}

/** How a process is started that runs one chat and ends. */
export interface IsolateOptions {
  /** The file of the application, as `threadmill worker --app` takes it: its default export is `{ agents, tools, contextFor, attachments }`. */
  readonly app: string
  /** How much such a process logs on stdout. Default: `warn`. */
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** The database, where `connect` was given a Sequelize. Default: that of `connect`. */
  readonly databaseUrl?: string
  /** The Redis, where `connect` was given a client. Default: that of `connect`. */
  readonly redisUrl?: string
}

const ownPool = 3
/** How much longer than its own grace a process of one chat is given to end, in ms. */
const endMarginMs = 5_000

/**
 * Starts the workers of one process.
 * @throws {ConfigurationError} when processes of their own can't be started by these options.
 */
export function startPool(
  parts: Parts,
  { jobs, apart }: Pick<PoolOptions, 'jobs' | 'apart'>,
  { isolate, ...counts }: WorkersOptions,
): Pool {
  const { settings, redis, bells, claims, db, equipment, renewer, telemetry, ports } = parts
  const { observe } = ports
  const agents = [...equipment.agents.keys()]
  const own = isolate === undefined ? apart : ownProcesses(parts, isolate)
  // The first jobs would wait for its thread, and a job that waits is lost for a while if its process dies.
  void renewer.ready()
  return new Pool({
    redis,
    prefix: queuePrefix(settings.redisPrefix, redis),
    jobs,
    apart: own,
    concurrency: {
      complete: counts.complete ?? settings.completeConcurrency,
      runTools: counts.runTools ?? settings.runToolsConcurrency,
      compact: counts.compact ?? settings.compactConcurrency,
    },
    bells,
    claims,
    sweeper: new Sweeper({ db, bells, everyMs: settings.sweepEveryMs, agents, observe }),
    observe,
    telemetry,
    graceMs: settings.shutdownGraceMs,
    stuckAfterMs: settings.stuckAfterMs,
    begin: () => liftPutOff(db, agents, missingAgent),
  })
}

function ownProcesses(parts: Parts, isolate: IsolateOptions): Apart {
  const { db, bells, ports, settings } = parts
  return new OwnProcesses({
    program: onlyProgram(parts, isolate),
    db,
    ring: (chatId, queue) => bells.ring(chatId, queue),
    observe: ports.observe,
    endWithinMs: settings.shutdownGraceMs + endMarginMs,
  })
}

function onlyProgram({ settings, database }: Parts, isolate: IsolateOptions): OnlyProgram {
  const app = resolve(isolate.app)
  if (!existsSync(app)) throw new ConfigurationError(`startWorkers({ isolate: { app } }): there is no file ${app}.`)
  const databaseUrl = isolate.databaseUrl ?? settings.databaseUrl
  const redisUrl = isolate.redisUrl ?? settings.redisUrl
  // Without a URL it is the file of the data directory, which a process of its own finds too.
  const isFile = database.sequelize.getDialect() === 'sqlite'
  if (databaseUrl === null && !isFile) throw unreachable('databaseUrl', 'sequelize')
  if (redisUrl === null) throw unreachable('redisUrl', 'redis')
  const file = fileURLToPath(
    new URL(`./only-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
  )
  return {
    file,
    argv: ['worker', '--app', app, '--log-level', isolate.logLevel ?? 'warn'],
    execArgv: [...loaderFor(file), ...loading(process.execArgv)],
    // One chat needs few connections.
    env: environmentOf({ ...settings, databaseUrl, redisUrl, databasePool: Math.min(settings.databasePool, ownPool) }),
  }
}

function unreachable(url: 'databaseUrl' | 'redisUrl', given: 'sequelize' | 'redis'): ConfigurationError {
  return new ConfigurationError(
    `startWorkers({ isolate }): another process can't be given what connect({ ${given} }) was given: set isolate.${url}.`,
  )
}
