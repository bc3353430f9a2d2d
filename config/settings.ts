import { resolve } from 'node:path'
import { ConfigurationError } from '../src/errors.ts'
import { type SettingName, type SettingSpec, type SettingValues, settingsTable } from './settings-table.ts'

/**
 * What code can set when it connects; whatever is left out comes from the environment variable in brackets, then from
 * the default. The table in `settings-table.ts` holds the checks.
 */
export interface ConnectOptions {
  /** The database's URL [DATABASE_URL]. Default: a SQLite file in the data directory. */
  databaseUrl?: string | undefined
  /** The Redis' URL [REDIS_URL]. Default: a private server is started. */
  redisUrl?: string | undefined
  /** The key for the model [OPENAI_API_KEY]. Default: none. */
  openaiApiKey?: string | undefined
  /** Where requests to the model go [OPENAI_BASE_URL]. Default: the provider's address. */
  openaiBaseUrl?: string | undefined
  /** The model of chats and agents that name none [THREADMILL_MODEL]. Default: none. */
  model?: string | undefined
  /** The password of `threadmill board`, for any user name [THREADMILL_BOARD_PASSWORD]. Default: none. */
  boardPassword?: string | undefined
  /** What table names begin with [THREADMILL_TABLE_PREFIX]. Default: `threadmill_`. */
  tablePrefix?: string | undefined
  /** What keys in Redis begin with [THREADMILL_REDIS_PREFIX]. Default: the table prefix without `_` at its end, so `threadmill`. */
  redisPrefix?: string | undefined
  /** Life of a claim in ms, 1000 to 60000 [THREADMILL_CLAIM_TTL_MS]. Default: 45000. */
  claimTtlMs?: number | undefined
  /** Time between renewals in ms, at most a third of the ttl [THREADMILL_CLAIM_RENEW_MS]. Default: min(10000, ttl / 4). */
  claimRenewMs?: number | undefined
  /** Time between sweeps in ms [THREADMILL_SWEEP_EVERY_MS]. Default: 1000. */
  sweepEveryMs?: number | undefined
  /** What a shutdown waits for running moves in ms [THREADMILL_SHUTDOWN_GRACE_MS]. Default: 25000. */
  shutdownGraceMs?: number | undefined
  /** Most ms that a worker with a free slot may fetch nothing from a Redis that answers [THREADMILL_STUCK_AFTER_MS]. Default: 10000. */
  stuckAfterMs?: number | undefined
  /** How long text of an answer is gathered before viewers get it, in ms [THREADMILL_EVENT_COALESCE_MS]. Default: 40. */
  eventCoalesceMs?: number | undefined
  /** Chats run at once by one process [THREADMILL_COMPLETE_CONCURRENCY]. Default: 50. */
  completeConcurrency?: number | undefined
  /** Tool jobs run at once by one process [THREADMILL_RUN_TOOLS_CONCURRENCY]. Default: 20. */
  runToolsConcurrency?: number | undefined
  /** Compact jobs run at once by one process [THREADMILL_COMPACT_CONCURRENCY]. Default: 5. */
  compactConcurrency?: number | undefined
  /** Directory of embedded services [THREADMILL_DATA_DIR]. Default: `.threadmill`. */
  dataDir?: string | undefined
  /** Whether missing services may be embedded ones [THREADMILL_EMBEDDED]. Default: not under NODE_ENV=production. */
  embedded?: boolean | undefined
  /** Most connections to MySQL or MariaDB of one process [THREADMILL_DATABASE_POOL]. Default: 10. */
  databasePool?: number | undefined
}

type Nullable = 'databaseUrl' | 'redisUrl' | 'openaiApiKey' | 'openaiBaseUrl' | 'model' | 'boardPassword'

/**
 * All settings, checked and complete; frozen. Members, units and defaults are those of {@link ConnectOptions};
 * `databaseUrl` and `redisUrl` are null where an embedded service is to be used, `openaiApiKey`, `openaiBaseUrl`,
 * `model` and `boardPassword` are null where nothing is set, and `dataDir` is absolute. It holds secrets: never log it.
 */
export type Settings = Readonly<
  { [Name in Exclude<SettingName, Nullable>]: SettingValues[Name] } & {
    [Name in Nullable]: SettingValues[Name] | null
  }
>

/** What the environment says: the settings that it holds, and whether this is production. */
export interface Environment {
  readonly values: Readonly<Partial<SettingValues>>
  /** NODE_ENV is `production`. */
  readonly production: boolean
}

/** Connections that code brings along ready-made, so that no URL is needed for them. */
export interface Provided {
  readonly database?: boolean
  readonly redis?: boolean
}

type Variables = Readonly<Record<string, string | undefined>>
type Draft = Partial<Record<SettingName, unknown>>

const names = Object.keys(settingsTable) as SettingName[]
const specOf = (name: SettingName): SettingSpec => settingsTable[name]

/**
 * Reads every variable that Threadmill knows; nothing else in it looks at the environment. A blank variable counts as
 * missing. Throws one ConfigurationError that lists all that is wrong.
 */
export function readEnvironment(env: Variables = process.env): Environment {
  const problems: string[] = []
  const environment = inspectEnvironment(env, problems)
  throwProblems(problems)
  return environment
}

/**
 * Settles every setting: options first, then the environment, then defaults. Throws one ConfigurationError that lists
 * all that is wrong, and refuses embedded services under NODE_ENV=production unless THREADMILL_EMBEDDED is true.
 */
export function resolveSettings(options: ConnectOptions = {}, env?: Variables, provided: Provided = {}): Settings {
  const problems: string[] = []
  const environment = inspectEnvironment(env ?? process.env, problems)
  const values: Partial<SettingValues> = { ...environment.values, ...inspectOptions(options, problems) }
  const embedded = values.embedded ?? !environment.production
  if (!embedded) refuseEmbedded(values, environment, provided, problems)
  const tablePrefix = values.tablePrefix ?? settingsTable.tablePrefix.default
  const claimTtlMs = values.claimTtlMs ?? settingsTable.claimTtlMs.default
  const claimRenewMs = values.claimRenewMs ?? Math.min(10_000, Math.floor(claimTtlMs / 4))
  if (claimRenewMs > claimTtlMs / 3) {
    problems.push(
      `${label('claimRenewMs', options)} is ${claimRenewMs} with a claim ttl of ${claimTtlMs} ms: it must be at most ${Math.floor(claimTtlMs / 3)}, a third of it, so that a claim outlives two failed renewals`,
    )
  }
  throwProblems(problems)
  return Object.freeze({
    databaseUrl: values.databaseUrl ?? null,
    redisUrl: values.redisUrl ?? null,
    openaiApiKey: values.openaiApiKey ?? null,
    openaiBaseUrl: values.openaiBaseUrl ?? null,
    model: values.model ?? null,
    boardPassword: values.boardPassword ?? null,
    tablePrefix,
    redisPrefix: values.redisPrefix ?? tablePrefix.replace(/_+$/, ''),
    claimTtlMs,
    claimRenewMs,
    sweepEveryMs: values.sweepEveryMs ?? settingsTable.sweepEveryMs.default,
    shutdownGraceMs: values.shutdownGraceMs ?? settingsTable.shutdownGraceMs.default,
    stuckAfterMs: values.stuckAfterMs ?? settingsTable.stuckAfterMs.default,
    eventCoalesceMs: values.eventCoalesceMs ?? settingsTable.eventCoalesceMs.default,
    completeConcurrency: values.completeConcurrency ?? settingsTable.completeConcurrency.default,
    runToolsConcurrency: values.runToolsConcurrency ?? settingsTable.runToolsConcurrency.default,
    compactConcurrency: values.compactConcurrency ?? settingsTable.compactConcurrency.default,
    dataDir: resolve(values.dataDir ?? settingsTable.dataDir.default),
    embedded,
    databasePool: values.databasePool ?? settingsTable.databasePool.default,
  })
}

const isBlank = (value: unknown) => typeof value === 'string' && value.trim() === ''

function label(name: SettingName, options: ConnectOptions): string {
  return options[name] === undefined || isBlank(options[name]) ? specOf(name).env : `The option ${name}`
}

function inspectEnvironment(env: Variables, problems: string[]): Environment {
  const draft: Draft = {}
  for (const name of names) {
    const text = env[specOf(name).env]
    if (text === undefined || isBlank(text)) continue
    draft[name] = fromText(specOf(name).kind, text.trim())
  }
  const values = check(draft, (name) => specOf(name).env, problems)
  return { values, production: env.NODE_ENV?.trim() === 'production' }
}

function inspectOptions(options: ConnectOptions, problems: string[]): Partial<SettingValues> {
  const draft: Draft = {}
  for (const name of names) {
    const value: unknown = options[name]
    if (value === undefined || isBlank(value)) continue
    draft[name] = value
  }
  return check(draft, (name) => `The option ${name}`, problems)
}

/** Text that is no number or boolean stays text, so that the schema refuses it and the message can show it. */
function fromText(kind: SettingSpec['kind'], text: string): unknown {
  if (kind === 'integer' && /^[+-]?\d+$/.test(text)) return Number(text)
  if (kind === 'boolean' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  return text
}

function check(draft: Draft, nameOf: (name: SettingName) => string, problems: string[]): Partial<SettingValues> {
  const good: Draft = {}
  for (const name of names) {
    if (!(name in draft)) continue
    const { schema, secret, right } = specOf(name)
    const value = draft[name]
    const result = schema.safeParse(value)
    if (result.success) {
      good[name] = result.data
      continue
    }
    // Only our own checks word their findings; they never quote the value.
    const reason = result.error.issues.find((issue) => issue.code === 'custom')?.message
    if (reason) problems.push(`${nameOf(name)} ${reason}`)
    else problems.push(`${nameOf(name)} is ${secret ? 'not usable' : shown(value)}: it must be ${right}`)
  }
  return good as Partial<SettingValues>
}

function shown(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

function refuseEmbedded(
  values: Partial<SettingValues>,
  environment: Environment,
  provided: Provided,
  problems: string[],
): void {
  const why =
    environment.production && values.embedded === undefined
      ? 'NODE_ENV is production, where embedded services are off: set it, or set THREADMILL_EMBEDDED=true'
      : 'embedded services are switched off: set it, or set THREADMILL_EMBEDDED=true'
  // One that is set but wrong is reported as that, not as missing.
  const isWrong = (name: SettingName) =>
    problems.some((text) => text.startsWith(`${specOf(name).env} `) || text.startsWith(`The option ${name} `))
  const isMissing = (name: 'databaseUrl' | 'redisUrl') => values[name] === undefined && !isWrong(name)
  if (!provided.database && isMissing('databaseUrl')) problems.push(`DATABASE_URL is missing and ${why}`)
  if (!provided.redis && isMissing('redisUrl')) problems.push(`REDIS_URL is missing and ${why}`)
}

function throwProblems(problems: readonly string[]): void {
  if (problems.length === 0) return
  const heading =
    problems.length === 1 ? 'The configuration has a problem' : `The configuration has ${problems.length} problems`
  throw new ConfigurationError(`${heading}:\n${problems.map((text) => `- ${text}`).join('\n')}`)
}

/** The variables that say the same as settled settings; blank ones keep those of this process away. It holds secrets. */
export function environmentOf(settings: Settings): Record<string, string> {
  return Object.fromEntries(names.map((name) => [specOf(name).env, String(settings[name] ?? '')]))
}

/** This process's environment with more variables, for a child process. */
export function childEnvironment(more: Variables): Variables {
  return { ...process.env, ...more }
}
