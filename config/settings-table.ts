import { z } from 'zod'
import { parseDatabaseUrl, parseRedisUrl, UrlProblem } from './urls.ts'

/** One setting: its variable, what it means, and how a value is checked. */
export interface SettingSpec {
  /** The environment variable. */
  readonly env: string
  /** How the variable's text becomes a value. */
  readonly kind: 'text' | 'integer' | 'boolean'
  /** What one step of a number means. */
  readonly unit?: 'ms' | 'connections' | 'jobs'
  /** True when the value may hold a password or a key: it is then never shown. */
  readonly secret: boolean
  readonly description: string
  /** What is used when neither code nor environment says anything, in words where it is worked out. */
  readonly default: string | number | null
  /** Completes "must be ...". */
  readonly right: string
  readonly schema: z.ZodType
}

function url(parse: (text: string) => unknown) {
  return z.string().superRefine((text, context) => {
    const parsed = parse(text)
    if (parsed instanceof UrlProblem) context.addIssue({ code: 'custom', message: parsed.reason })
  })
}

const spec = <const Entry extends SettingSpec>(entry: Entry) => entry

function count(env: string, fallback: number, unit: 'connections' | 'jobs', max: number, description: string) {
  const right = `a whole number from 1 to ${max}`
  return spec({
    env,
    kind: 'integer',
    unit,
    secret: false,
    description,
    default: fallback,
    right,
    schema: z.int().min(1).max(max),
  })
}

function duration<Fallback extends number | string>(
  env: string,
  fallback: Fallback,
  min: number,
  max: number,
  description: string,
) {
  const right = `a whole number of milliseconds from ${min} to ${max}`
  return spec({
    env,
    kind: 'integer',
    unit: 'ms',
    secret: false,
    description,
    default: fallback,
    right,
    schema: z.int().min(min).max(max),
  })
}

/**
 * Every setting of Threadmill, once: options of code, variables of the environment, checks, defaults and the
 * documentation are all read from here. The keys are the names that code uses.
 */
export const settingsTable = {
  databaseUrl: spec({
    env: 'DATABASE_URL',
    kind: 'text',
    secret: true,
    description: 'The database: mysql://, mariadb:// or sqlite:path. Missing: a SQLite file in the data directory.',
    default: null,
    right: 'a URL such as mysql://user:password@host:3306/name or sqlite:path',
    schema: url(parseDatabaseUrl),
  }),
  redisUrl: spec({
    env: 'REDIS_URL',
    kind: 'text',
    secret: true,
    description:
      'The Redis: redis://, rediss://, redis+sentinel://user:pass@host1:26379,host2:26379/mymaster?db=0 or redis+cluster://host1:6379,host2:6379. Missing: a private server is started.',
    default: null,
    right: 'a URL such as redis://user:password@host:6379/0',
    schema: url(parseRedisUrl),
  }),
  openaiApiKey: spec({
    env: 'OPENAI_API_KEY',
    kind: 'text',
    secret: true,
    description: 'The key that requests to the model carry. Missing: requests that need one fail.',
    default: null,
    right: 'a key without blanks or line breaks',
    schema: z.string().regex(/^\S+$/),
  }),
  openaiBaseUrl: spec({
    env: 'OPENAI_BASE_URL',
    kind: 'text',
    // A proxy's URL may carry a user name and a password.
    secret: true,
    description: "Where OpenAI-compatible requests go. Missing: the provider's own address.",
    default: null,
    right: 'an http:// or https:// URL',
    schema: z.url({ protocol: /^https?$/ }),
  }),
  model: spec({
    env: 'THREADMILL_MODEL',
    kind: 'text',
    secret: false,
    description: 'The model of chats and agents that name none.',
    default: null,
    right: 'the name of a model, at most 255 characters',
    schema: z.string().min(1).max(255),
  }),
  boardPassword: spec({
    env: 'THREADMILL_BOARD_PASSWORD',
    kind: 'text',
    secret: true,
    description: 'The password of `threadmill board`, for any user name. Missing: it is served to this machine only.',
    default: null,
    right: 'a password of 8 to 255 characters',
    schema: z.string().min(8).max(255),
  }),
  tablePrefix: spec({
    env: 'THREADMILL_TABLE_PREFIX',
    kind: 'text',
    secret: false,
    description: "What the names of Threadmill's tables begin with.",
    default: 'threadmill_',
    right: 'a lower-case letter and up to 30 lower-case letters, digits or underscores',
    schema: z.string().regex(/^[a-z][a-z0-9_]{0,30}$/),
  }),
  redisPrefix: spec({
    env: 'THREADMILL_REDIS_PREFIX',
    kind: 'text',
    secret: false,
    description: "What Threadmill's keys in Redis begin with, queues included: one for each set of tables.",
    default: 'the table prefix without _ at its end: threadmill',
    right: 'up to 64 letters, digits, dots, dashes or underscores; a colon would blur where the prefix ends',
    schema: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/),
  }),
  claimTtlMs: duration(
    'THREADMILL_CLAIM_TTL_MS',
    45_000,
    1_000,
    60_000,
    'How long a claim lives without renewal: a chat whose process died is taken over after at most this time.',
  ),
  claimRenewMs: duration(
    'THREADMILL_CLAIM_RENEW_MS',
    '10000, or a quarter of the claim ttl if that is less',
    100,
    20_000,
    'How often a claim is renewed; at most a third of the claim ttl.',
  ),
  sweepEveryMs: duration(
    'THREADMILL_SWEEP_EVERY_MS',
    1_000,
    50,
    600_000,
    'How often each worker process looks for chats that are due and that nobody rang for.',
  ),
  shutdownGraceMs: duration(
    'THREADMILL_SHUTDOWN_GRACE_MS',
    25_000,
    0,
    3_600_000,
    'How long a shutdown waits for running moves before it aborts them.',
  ),
  stuckAfterMs: duration(
    'THREADMILL_STUCK_AFTER_MS',
    10_000,
    2_000,
    600_000,
    'How long a worker that can take jobs may ask for none, or get no answer, before it is made anew; as long again, and it counts as stuck.',
  ),
  eventCoalesceMs: duration(
    'THREADMILL_EVENT_COALESCE_MS',
    40,
    0,
    10_000,
    'How long text of an answer is gathered before viewers get it; the first of each message is sent at once.',
  ),
  completeConcurrency: count(
    'THREADMILL_COMPLETE_CONCURRENCY',
    50,
    'jobs',
    10_000,
    'How many chats one process runs at once.',
  ),
  runToolsConcurrency: count(
    'THREADMILL_RUN_TOOLS_CONCURRENCY',
    20,
    'jobs',
    10_000,
    'How many jobs that only run tools one process runs at once.',
  ),
  compactConcurrency: count(
    'THREADMILL_COMPACT_CONCURRENCY',
    5,
    'jobs',
    10_000,
    'How many summaries of chats one process makes at once, as jobs of their own.',
  ),
  dataDir: spec({
    env: 'THREADMILL_DATA_DIR',
    kind: 'text',
    secret: false,
    description: 'Where embedded services keep their files; relative to the working directory.',
    default: '.threadmill',
    right: 'the path of a directory',
    schema: z.string().regex(/^[^\0]+$/),
  }),
  embedded: spec({
    env: 'THREADMILL_EMBEDDED',
    kind: 'boolean',
    secret: false,
    description:
      'Whether missing services may be embedded ones. Under NODE_ENV=production only if this is set to true.',
    default: 'true, but false under NODE_ENV=production',
    right: 'true or false',
    schema: z.boolean(),
  }),
  databasePool: count(
    'THREADMILL_DATABASE_POOL',
    10,
    'connections',
    1_000,
    'How many connections to MySQL or MariaDB one process opens at most.',
  ),
} as const satisfies Record<string, SettingSpec>

/** The name of a setting in code. */
export type SettingName = keyof typeof settingsTable

/** The values that settings have in code, each by its name. */
export type SettingValues = { -readonly [Name in SettingName]: z.infer<(typeof settingsTable)[Name]['schema']> }
