import type { Telemetry } from 'bullmq'
import { embedded, type Services } from '../config/embedded/index.ts'
import { ownRedis } from '../config/own-redis.ts'
import { requireSequelize } from '../config/own-sequelize.ts'
import { queuePrefix } from '../config/queues.ts'
import { connectorOf, type RedisConnector, type RedisConnectorOptions, redisConnector } from '../config/redis.ts'
import type { RedisClient } from '../config/redis-clients.ts'
import type { Settings } from '../config/settings.ts'
import { readBacklog } from '../models/backlog.ts'
import { cancelledAmong } from '../models/claims.ts'
import { type Database, databaseOf } from '../models/database.ts'
import { defineModels, type Extensions, type Models, recordOf } from '../models/index.ts'
import { requireOwnColumns } from '../models/own-columns.ts'
import { Bells } from '../workers/bell.ts'
import { Chat } from './chat/chat.ts'
import type { ChatDependencies } from './chat/chat-handle.ts'
import { tellTurnEnd } from './chat/turn-ends.ts'
import { CancelWatch } from './claims/cancel-watch.ts'
import { claimLock } from './claims/claim-lock.ts'
import { Claims, databaseClaimRows } from './claims/claims.ts'
import { Renewer } from './claims/renewer.ts'
import { type LiveEvents, liveEvents } from './events/live-events.ts'
import { configure, defaultClients, type Equipment, toolsOf } from './loop/configure.ts'
import { type ContextFor, contexts } from './loop/contexts.ts'
import { databaseRows } from './loop/database-rows.ts'
import { realClock } from './loop/real-clock.ts'
import { realFiles } from './loop/real-files.ts'
import type { LoopPorts } from './loop/run-context.ts'
import { errorFacts } from './observability/error-facts.ts'
import { type Observability, type ObservabilityOptions, openObservability } from './observability/open.ts'
import { type OpenedDatabase, type OwnDatabase, openRows } from './open-rows.ts'
import { modelFacts } from './providers/catalogue.ts'
import type { Agent } from './tools/agent.ts'
import { defineAgent } from './tools/define-agent.ts'
import { agentRegistry, toolRegistry } from './tools/registry.ts'
import type { Tool } from './tools/tool.ts'

/** Told of what goes to the database and to Redis. Neither may throw. */
export interface Observers {
  /** Gets each SQL statement, BEGIN and COMMIT included, before it is sent. */
  readonly onStatement?: ((sql: string) => void) | undefined
  /** Gets the name of each Redis command before it is sent. */
  readonly onCommand?: ((name: string) => void) | undefined
}

/** What a connection is made of. */
export interface Parts {
  readonly settings: Settings
  readonly services: Pick<Services, 'stop'>
  readonly database: OpenedDatabase
  readonly redis: RedisConnector
  readonly db: Database
  readonly models: Models
  readonly bells: Bells
  readonly claims: Claims
  readonly renewer: Renewer
  readonly cancels: CancelWatch
  readonly events: LiveEvents
  readonly ports: LoopPorts
  readonly chats: ChatDependencies
  readonly equipment: Equipment
  readonly observability: Observability
  /** Traces rings and jobs, where somebody traces. */
  readonly telemetry: Telemetry | undefined
}

const cancelLookMs = 1_000
/** With a Redis of the application's there is nothing to embed but a file. */
const nothingStarted = { redisUrl: null, stop: async () => {} }
/** Above any time that a tool or a model call may block the main thread. */
const heartbeatLimitMs = 20 * 60_000

/** @throws {ConfigurationError} for names that clash. */
export function equip(
  agents: readonly Agent[],
  tools: readonly Tool[],
  contextFor: ContextFor | undefined,
): Omit<Equipment, 'model' | 'clientFor' | 'store'> {
  const registered = agentRegistry(agents, tools)
  for (const agent of registered.values()) toolRegistry(agent, tools)
  toolRegistry(null, tools)
  return { agents: registered, tools, defaultAgent: defineAgent({ name: 'default' }), contextFor: contexts(contextFor) }
}

/** What the application brings, and where its files are. */
export type Equipped = ReturnType<typeof equip> & Pick<ChatDependencies, 'files'>

/** What is opened by, beside the settings. */
export interface OpenOptions {
  readonly migrates: boolean
  readonly observability: ObservabilityOptions
  readonly observe: Observers | undefined
  readonly own: OwnConnections
  readonly extend: Extensions | undefined
}

/** What the application brings along ready-made. */
export interface OwnConnections extends OwnDatabase {
  readonly redis: RedisClient | undefined
}

/** Opens every part in turn; what has to be closed again is put into `opened`, in that order. */
export async function open(
  wanted: Settings,
  equipped: Equipped,
  { migrates, observability: wantedObservability, observe, own, extend }: OpenOptions,
  opened: (() => Promise<unknown>)[],
): Promise<Parts> {
  if (own.sequelize !== undefined) requireSequelize(own.sequelize)
  const source = own.redis === undefined ? null : ownRedis(own.redis)
  const observability = await openObservability(wantedObservability)
  const { instruments, metrics, tracer } = observability
  opened.push(async () => metrics?.close())
  const telemetry = tracer === null ? undefined : (await import('../workers/queue-telemetry.ts')).queueTelemetry(tracer)
  const notice = (message: string) => instruments.observe({ type: 'notice', message })
  const services = source === null ? await embedded(wanted, { onNotice: notice }) : nothingStarted
  opened.push(() => services.stop())
  // A URL of the environment need not be that of the application's own connections.
  const databaseUrl = own.sequelize === undefined || own.isUrlBeside ? wanted.databaseUrl : null
  const settings: Settings = { ...wanted, databaseUrl, redisUrl: services.redisUrl }

  const database = await openRows(settings, own, { migrates, onStatement: observe?.onStatement }, opened)
  const { sequelize } = database

  const watch: RedisConnectorOptions = {
    onWarning: notice,
    onTrouble: (error, servers) => {
      const doing = `staying connected to ${servers}`
      instruments.observe({ type: 'redis.trouble', doing, error: errorFacts(error) })
    },
    onCommand: observe?.onCommand,
  }
  const redis = source === null ? redisConnector(settings, watch) : connectorOf(source, watch)
  opened.push(() => redis.close())
  const [producer, locking] = await Promise.all([redis.producer(), redis.lock()])

  const db = databaseOf(sequelize, settings.tablePrefix, database.manner)
  const { claimTtlMs: ttlMs, claimRenewMs: renewMs, redisPrefix: prefix, tablePrefix } = settings
  const marginMs = Math.min(5_000, ttlMs / 5)
  const renewer = new Renewer(
    { database: database.renewal, tablePrefix, ttlMs, renewMs, marginMs, heartbeatLimitMs },
    instruments.observe,
  )
  const cancels = new CancelWatch((chatIds) => cancelledAmong(db, chatIds), cancelLookMs, instruments.observe)
  const claims = new Claims({
    rows: databaseClaimRows(db),
    lock: claimLock(locking, { prefix, ttlMs, db: redis.db, observe: instruments.observe }),
    renewer,
    cancels,
    ttlMs,
    marginMs,
    agents: () => [...equipped.agents.keys()],
  })
  const bells = new Bells(producer, queuePrefix(prefix, redis), {
    observe: instruments.observe,
    telemetry,
    connectSweeps: source === null ? undefined : () => redis.ownProducer(),
  })
  opened.push(() => bells.close())
  const events = liveEvents({
    prefix,
    redis: producer,
    connect: () => redis.openReader(),
    db,
    observe: instruments.observe,
    coalesceMs: settings.eventCoalesceMs,
  })
  const equipment: Equipment = {
    ...equipped,
    store: equipped.files.store,
    model: settings.model,
    clientFor: defaultClients(settings),
  }
  metrics?.read({
    claimsHeld: () => claims.size,
    backlog: () => readBacklog(db),
    queues: () => bells.depths(),
  })
  const models = defineModels(sequelize, tablePrefix, extend)
  await requireOwnColumns(db, models, extend)
  const ports: LoopPorts = {
    ...instruments,
    claims,
    rows: databaseRows(db, ttlMs),
    bell: bells,
    events: events.publisher,
    files: realFiles({ db, files: equipped.files, ports: instruments }),
    clock: realClock,
    configure: (chat, order) => configure(equipment, chat, order),
    agentNamed: (name) => equipment.agents.get(name) ?? null,
    requiresApproval: (chat, name) => toolsOf(equipment, chat).get(name)?.requiresApproval === true,
    chatOf: (row) => new Chat(row, chats),
    records: {
      message: (row) => recordOf(models.Message, row),
      queuedMessage: (row) => recordOf(models.QueuedMessage, row),
    },
    tellTurnEnd: (row, outcome) => {
      const agent = row.agent === null ? undefined : equipment.agents.get(row.agent)
      return tellTurnEnd(agent, row, outcome, { chatOf: (chat) => new Chat(chat, chats), observe: instruments.observe })
    },
  }
  const chats: ChatDependencies = {
    db,
    models,
    ports,
    // Token 0: from outside any run, so that no reader drops it.
    publish: (chatId, event) => events.publisher.publish(chatId, 0, event),
    readEvents: (chatId, options) => events.readers.read(chatId, options),
    agentOf: ({ agent }) => (agent === null ? equipment.defaultAgent : (equipment.agents.get(agent) ?? null)),
    files: equipped.files,
    nameModel: async ({ agent, provider: own }, modelId) => {
      const provider = own ?? (agent === null ? undefined : equipment.agents.get(agent)?.provider) ?? 'openai'
      return { provider, modelId, ...(await modelFacts(modelId, provider)) }
    },
    toolsOf: (chat) => toolsOf(equipment, chat),
    toolNames: (chat) => new Set(toolsOf(equipment, chat).keys()),
  }
  return {
    settings,
    services,
    database,
    redis,
    db,
    models,
    bells,
    claims,
    renewer,
    cancels,
    events,
    ports,
    chats,
    equipment,
    observability,
    telemetry,
  }
}
