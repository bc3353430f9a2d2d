import { type Sequelize, Transaction } from 'sequelize'
import { queuePrefix } from '../config/queues.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import { resolveSettings, type ConnectOptions as SettingsOptions } from '../config/settings.ts'
import type { AttachmentValue } from '../models/attachment-value.ts'
import { purgeUnheld } from '../models/blobs.ts'
import type { Extensions, Models } from '../models/index.ts'
import { requireMigrated } from '../models/migrator.ts'
import type { Bell } from '../models/rows.ts'
import { type Apart, OneAtATime } from '../workers/apart.ts'
import { CompactJob } from '../workers/compact.ts'
import { CompleteJob } from '../workers/complete.ts'
import { performOnly } from '../workers/only.ts'
import type { OnlyReport } from '../workers/own-process.ts'
import type { Pool } from '../workers/pool.ts'
import { closeQueues, type OpenedQueue, openQueues } from '../workers/queues.ts'
import { RunToolsJob } from '../workers/run-tools.ts'
import { type Attachment, openAttachment } from './attachments/attachment.ts'
import { type AttachmentsOptions, filesOf } from './attachments/options.ts'
import { Approvals } from './chat/approvals.ts'
import { Chats } from './chat/chats.ts'
import { Usages } from './chat/usages.ts'
import { requireOptions } from './chat/verb-options.ts'
import { requireConnectOptions } from './connect-options.ts'
import { ArgumentError, ConfigurationError } from './errors.ts'
import type { ContextFor } from './loop/contexts.ts'
import { probeSource } from './observability/health.ts'
import type { ObservabilityOptions } from './observability/open.ts'
import { openProbe, type Probe, type ProbeOptions } from './observability/probe.ts'
import { equip, type Observers, open, type Parts } from './open.ts'
import type { BoardHandler, BoardOptions } from './server/board.ts'
import { startPool, type WorkersOptions } from './start-workers.ts'
import type { Agent } from './tools/agent.ts'
import type { Tool } from './tools/tool.ts'

/** What an application connects with; what it leaves out comes from the environment, then from embedded services. */
export interface ConnectOptions extends SettingsOptions, ObservabilityOptions {
  /** The agents that this process can run chats of. */
  readonly agents?: readonly Agent[] | undefined
  /** Tools that chats can be given by name, beside those of their agents. */
  readonly tools?: readonly Tool[] | undefined
  /**
   * Says what a chat asks its models with and no row may hold: a tenant's own key, endpoint, headers or client. Called at the begin of
   * each run in this process; null = as configured.
   */
  readonly contextFor?: ContextFor | undefined
  /** Where the files of messages are kept, and which may be attached. */
  readonly attachments?: AttachmentsOptions | undefined
  /** Bring the tables up to date before anything else. Default false: tables that are not are refused. */
  readonly migrate?: boolean | undefined
  /**
   * The application's own Sequelize 6 for MySQL or MariaDB, in place of `databaseUrl`; it stays open. It must count matched
   * rows (`dialectOptions: { flags: ['FOUND_ROWS'] }`) and be in UTC; `connect` checks what it needs. Claims are renewed
   * over connections of their own, made by its options, or by `databaseUrl` where that is given beside it.
   */
  readonly sequelize?: Sequelize | undefined
  /**
   * The application's own ioredis client, or cluster, in place of `redisUrl`; it stays open. Rings and events go through it,
   * everything else through duplicates of it. It must have no `keyPrefix`.
   */
  readonly redis?: RedisClient | undefined
  /** The application's own columns, scopes and associations of `mill.models`. */
  readonly extend?: Extensions | undefined
  /**
   * Told of every SQL statement and Redis command of ours, for counting. Not reported are claim renewals, which run in a
   * thread of their own, and what goes through a client given as `redis`.
   */
  readonly observe?: Observers | undefined
}

/** The application's connection to its conversations. */
export class Threadmill {
  /** Makes chats and finds them. */
  readonly chats: Chats
  /** Calls of all chats that wait for a decision. */
  readonly approvals: Approvals
  /** What was spent on models, over all chats. */
  readonly usage: Usages
  /** Asks for chats to be run, or summarised, by workers of this process or another. */
  readonly jobs: {
    /** Runs a turn to its answer, or to where it has to wait. */
    readonly complete: CompleteJob
    /** Runs the open tool calls of a turn, and gives it back to `complete`. */
    readonly runTools: RunToolsJob
    /** Makes a summary of a chat's history. */
    readonly compact: CompactJob
  }
  /** The tables as Sequelize models, for queries of your own. */
  readonly models: Models
  /** The Sequelize that everything goes through, for transactions and for models of your own beside ours. */
  readonly sequelize: Sequelize
  readonly #parts: Parts
  readonly #apart: Apart
  readonly #pools = new Set<Pool>()
  readonly #probes = new Set<Probe>()
  readonly #boardQueues: OpenedQueue[] = []
  #closed: Promise<void> | null = null

  private constructor(parts: Parts) {
    this.#parts = parts
    this.models = parts.models
    this.sequelize = parts.database.sequelize
    const { db, bells, ports } = parts
    this.#apart = new OneAtATime({ ring: (chatId, queue) => bells.ring(chatId, queue), observe: ports.observe })
    const dependencies = { db, bells, ports, apart: this.#apart }
    this.jobs = {
      complete: new CompleteJob(dependencies),
      runTools: new RunToolsJob(dependencies),
      compact: new CompactJob(dependencies),
    }
    this.chats = new Chats(parts.chats)
    this.usage = new Usages(parts.db)
    this.approvals = new Approvals(parts.db, parts.models)
  }

  /**
   * Connects to the database and to Redis, starting embedded ones where none are named, and checks both.
   * @throws {ConfigurationError} for options that there are not, wrong settings, clashing names of agents or tools, or a database that can't be used.
   * @throws {NotMigratedError} when tables are missing and `migrate` is not set.
   * @throws {UnreachableError} when the database or Redis does not answer.
   */
  static async connect(options: ConnectOptions = {}): Promise<Threadmill> {
    requireConnectOptions(options)
    const {
      agents,
      tools,
      contextFor,
      attachments,
      migrate: migrates,
      observe,
      sequelize,
      redis,
      extend,
      ...rest
    } = options
    const { logger, onObservation, metrics, tracing, observeContent, ...settings } = rest
    const observability = { logger, onObservation, metrics, tracing, observeContent }
    const equipped = equip(agents ?? [], tools ?? [], contextFor)
    const provided = { database: sequelize !== undefined, redis: redis !== undefined }
    const own = { sequelize, redis, isUrlBeside: settings.databaseUrl !== undefined }
    if (redis !== undefined && settings.redisUrl !== undefined) {
      throw new ConfigurationError('connect() was given both redis and redisUrl: give one of them')
    }
    const resolved = resolveSettings(settings, undefined, provided)
    const opened: (() => Promise<unknown>)[] = []
    try {
      return new Threadmill(
        await open(
          resolved,
          { ...equipped, files: filesOf(attachments, resolved.dataDir) },
          { migrates: migrates ?? false, observability, observe, own, extend },
          opened,
        ),
      )
    } catch (error) {
      for (const close of opened.reverse()) await close().catch(() => {})
      throw error
    }
  }

  /**
   * Starts this process's workers, which run until `close` of the pool, or of this object, and a sweeper that rings for due
   * chats. Returns at once, before they are connected: `ready()` of the pool waits for that. (R23, R24)
   * @param options what is left out is as configured; with 0 for all of them only the sweeper runs.
   * @throws {ArgumentError} for what is no number of workers, or no option. {ConfigurationError} for an `isolate` that can't be used.
   */
  startWorkers(options: WorkersOptions = {}): Pool {
    requireOptions('startWorkers', options)
    const pool = startPool(this.#parts, { jobs: this.jobs, apart: this.#apart }, options)
    // A closed one is part of what a probe tells only until it has a successor.
    for (const before of this.#pools) if (before.state === 'closed') this.#pools.delete(before)
    this.#pools.add(pool)
    return pool
  }

  /** @internal Does one job here and now, in a process that was started for it. `stopping`: the process is to end. */
  performOnly(chatId: string, queue: Bell, stopping: AbortSignal): Promise<OnlyReport['only']> {
    const { claims, settings } = this.#parts
    return performOnly(this.jobs[queue], chatId, { claims, stopping, graceMs: settings.shutdownGraceMs })
  }

  /**
   * A file of a record's `attachments`, so that its bytes can be read; those of `chat.messages()` are such already. (E65)
   * @throws {AttachmentError} for what no row holds.
   */
  attachment(value: AttachmentValue): Attachment {
    return openAttachment(value, this.#parts.chats.files.store)
  }

  /**
   * Deletes what is in the store for messages that were never stored, or could not be removed with its last message: leftovers of crashes,
   * and of a store that was away. Call it now and then, in one process. Returns how many files it deleted. (E62)
   * @param options.unusedForMs how long nobody must have held a file, in ms; default one hour. A file that is being attached is not lost by a shorter time.
   * @throws {ArgumentError} for a time that is none.
   * @throws what the store throws; what was deleted until then stays deleted.
   */
  async purgeAttachments(options: { readonly unusedForMs?: number } = {}): Promise<number> {
    const { db, files } = this.#parts.chats
    requireOptions('purgeAttachments', options)
    const { unusedForMs = 3_600_000 } = options
    if (!Number.isSafeInteger(unusedForMs) || unusedForMs < 0) {
      throw new ArgumentError('purgeAttachments({ unusedForMs }) must be a whole number of ms, 0 or more.')
    }
    return purgeUnheld(db, (digest) => files.store.delete(digest), unusedForMs)
  }

  /**
   * Bull Board on all queues, for an application's own server: `app.use('/board', await mill.board())`. It asks for no
   * password: put the application's own check before it. Read-only unless `writable` is set; it makes no request to
   * other hosts. Works until `close`.
   * @throws {UnreachableError} when Redis does not answer. {ArgumentError} for options that there are not.
   */
  async board(options: BoardOptions = {}): Promise<BoardHandler> {
    requireOptions('board', options)
    const { redis, settings } = this.#parts
    const { boardHandler } = await import('./server/board.ts')
    const producer = await redis.producer()
    const queues = this.#boardQueues
    // Opened once, however often a board is made: they are closed with this object only.
    if (queues.length === 0) queues.push(...openQueues(producer, queuePrefix(settings.redisPrefix, redis)))
    return boardHandler(queues, options)
  }

  /**
   * Runs `work` in a transaction that Threadmill's acts can join (`{ transaction }`): committed when it resolves, rolled
   * back when it throws. Nothing is tried again. Resolves to what `work` resolved to.
   * @throws {ArgumentError} for what is no function.
   */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    if (typeof work !== 'function')
      throw new ArgumentError('transaction() takes a function that is given the transaction.')
    const { sequelize } = this
    // SQLite's transactions are serial by themselves.
    const isolationLevel = Transaction.ISOLATION_LEVELS.READ_COMMITTED
    return sequelize.transaction(sequelize.getDialect() === 'sqlite' ? {} : { isolationLevel }, work)
  }

  /**
   * The metrics of this process in the text format of Prometheus; what can't be read at the moment is left out.
   * @throws {ConfigurationError} unless connected with `metrics`.
   */
  async metrics(): Promise<string> {
    const { metrics } = this.#parts.observability
    if (metrics === null)
      throw new ConfigurationError('No metrics are kept: connect with metrics: true, or a registry.')
    return metrics.text()
  }

  /**
   * Serves `/live`, `/ready` and `/metrics` over HTTP, for an orchestrator and for Prometheus, until this object is closed:
   * while it closes, `/ready` says so. Start the workers first, so that they are part of being ready.
   * @throws {ConfigurationError} when the address can't be listened on. {ArgumentError} for what is no address.
   */
  async serveProbe(options: ProbeOptions): Promise<Probe> {
    requireOptions('serveProbe', options)
    const { sequelize } = this
    const { renewer, settings, redis, observability } = this.#parts
    const probe = await openProbe(
      options,
      probeSource({
        isRenewing: () => renewer.alive,
        isClosing: () => this.#closed !== null,
        pools: () => [...this.#pools].map((pool) => pool.state),
        database: () => requireMigrated(sequelize, settings.tablePrefix),
        redis: async () => (await redis.producer()).ping(),
        metrics: observability.metrics,
      }),
      () => this.#probes.delete(probe),
    )
    this.#probes.add(probe)
    if (this.#closed !== null) await probe.close()
    return probe
  }

  /**
   * Closes the workers as `pool.close` does, then every connection that was made here, and ends embedded services. Safe to
   * call again.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  /** @internal Closes since something threw that nobody caught. */
  async fail(): Promise<void> {
    await Promise.all([...this.#pools].map((pool) => pool.fail()))
    await this.close()
  }

  async #close(): Promise<void> {
    const { bells, renewer, cancels, events, redis, database, services, observability } = this.#parts
    await Promise.all([...this.#pools].map((pool) => pool.close()))
    cancels.close()
    await Promise.all([events.publisher.close(), renewer.close(), bells.close(), closeQueues(this.#boardQueues)])
    // Last, so that readers of this process see how its runs ended.
    events.stopReading()
    await redis.close()
    await database.close()
    await services.stop()
    observability.metrics?.close()
    await Promise.all([...this.#probes].map((probe) => probe.close()))
  }
}
