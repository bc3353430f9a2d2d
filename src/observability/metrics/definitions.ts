/** One metric as it is made and documented. */
export interface MetricDefinition {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** Upper bounds of a histogram, in the unit of its name. */
  readonly buckets?: readonly number[]
  /** What to alert on, for the documentation. */
  readonly alert?: string
}

/** From a fraction of a second to an hour: a turn may be one short answer or many long tools. */
const long = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600]
const short = [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
const waits = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

/** Every metric, without the prefix `threadmill_`. */
export const definitions = {
  turns_total: {
    kind: 'counter',
    help: 'Turns that ended in this process, by how: answered, cancelled, failed.',
    labels: ['outcome'],
    alert: 'the share of `failed` is above what you accept, over 10 minutes',
  },
  runs_total: {
    kind: 'counter',
    help: 'Runs that ended in this process, by how; a turn may take several.',
    labels: ['outcome'],
    alert: '`retry` or `put-off` keeps rising',
  },
  run_duration_seconds: {
    kind: 'histogram',
    help: 'Time from taking a chat to giving it back.',
    labels: ['outcome'],
    buckets: long,
  },
  run_wait_seconds: {
    kind: 'histogram',
    help: 'Time from when a chat was due to when it was taken, by the clock of the database.',
    labels: [],
    buckets: waits,
    alert: 'the 95th percentile is above what your users accept: add workers',
  },
  model_calls_total: {
    kind: 'counter',
    help: 'Attempts at a model, by what for (chat, compaction) and how they ended; code is the code of the error, or none.',
    labels: ['provider', 'model', 'operation', 'status', 'code'],
    alert: 'the share of `failed` is high; any `provider.authentication`',
  },
  model_call_duration_seconds: {
    kind: 'histogram',
    help: 'Time of an attempt at a model that succeeded.',
    labels: ['provider', 'model'],
    buckets: short,
  },
  model_first_token_seconds: {
    kind: 'histogram',
    help: 'Time from the request to the first text or thinking of a streamed answer.',
    labels: ['provider', 'model'],
    buckets: short,
    alert: 'the 95th percentile doubles against last week',
  },
  model_tokens_total: {
    kind: 'counter',
    help: 'Tokens as the provider reported them, by kind: input (not cached), output, cache_read, cache_write, thinking (part of output).',
    labels: ['provider', 'model', 'kind'],
  },
  model_cost_usd_total: {
    kind: 'counter',
    help: 'What attempts at models cost, as far as prices are known. The ledger in the database is exact; this is a float.',
    labels: ['provider', 'model'],
    alert: 'the increase over a day is above your budget',
  },
  usages_unwritten_total: {
    kind: 'counter',
    help: 'Writes of usage entries that the database refused, by which: open, close, link (to the message), orphan (of a dead run).',
    labels: ['step'],
    alert: 'any increase: the ledger has gaps; turns go on',
  },
  tool_calls_total: {
    kind: 'counter',
    help: 'Tool calls that got a result in this process, by how they ended, those that were not executed too.',
    labels: ['tool', 'outcome'],
    alert: '`interrupted` or `failed` of a tool rises',
  },
  tool_call_duration_seconds: {
    kind: 'histogram',
    help: 'Time that the execution of a tool took.',
    labels: ['tool'],
    buckets: long,
  },
  compactions_total: {
    kind: 'counter',
    help: 'Summaries of chats that were tried, by how that ended: stored, nothing (to summarise), stopped, failed.',
    labels: ['outcome'],
    alert: '`failed` keeps rising: turns will outgrow their models',
  },
  claims_held: { kind: 'gauge', help: 'Chats that this process holds now.', labels: [] },
  claims_lost_total: {
    kind: 'counter',
    help: 'Runs that lost their chat on the way; another process goes on with it.',
    labels: [],
    alert: 'any increase that no restart explains: processes freeze, or the database is out of reach',
  },
  claim_renewals_late_total: {
    kind: 'counter',
    help: 'Renewals of a claim that came later than twice their period.',
    labels: [],
    alert: 'it keeps rising: claims will be lost next',
  },
  jobs_total: {
    kind: 'counter',
    help: 'Jobs that this process ended, by what they came to.',
    labels: ['queue', 'outcome'],
  },
  job_wait_seconds: {
    kind: 'histogram',
    help: 'Time from when a job was due to its start.',
    labels: ['queue'],
    buckets: waits,
  },
  queue_jobs: {
    kind: 'gauge',
    help: 'Jobs in a queue, of all processes, by state. Missing while Redis is out of reach.',
    labels: ['queue', 'state'],
    alert: '`wait` of a queue keeps rising',
  },
  chats_due: {
    kind: 'gauge',
    help: 'Chats that are due and that nobody runs, in the database. Missing while it is out of reach.',
    labels: [],
  },
  chats_due_oldest_age_seconds: {
    kind: 'gauge',
    help: 'How long the oldest of them has been due; 0 for none.',
    labels: [],
    alert: 'it is above 60 for 5 minutes: no worker runs, or none has the agent',
  },
  chats_parked: { kind: 'gauge', help: 'Chats that wait for a person, in the database.', labels: [] },
  chats_failed: {
    kind: 'gauge',
    help: 'Chats whose last turn failed for good and that nobody has tried again, in the database.',
    labels: [],
    alert: 'it rises',
  },
  chats_put_off_total: {
    kind: 'counter',
    help: 'Times that this process left a chat to others because it lacks its agent.',
    labels: [],
    alert: 'it keeps rising: no pool has an agent that is asked for',
  },
  alone_runs_total: {
    kind: 'counter',
    help: 'Runs of chats that processes had died over, with nothing else beside them, by how: ended, or died (the process of the chat).',
    labels: ['outcome'],
    alert: '`died` rises: a chat kills its processes',
  },
  chats_quarantined_total: {
    kind: 'counter',
    help: 'Chats that this process set aside, since processes died over them even while they ran nothing else.',
    labels: [],
    alert: 'any increase: find what kills the processes, then `threadmill retry`',
  },
  sweeper_rings_total: {
    kind: 'counter',
    help: 'Chats that the sweeper of this process rang for.',
    labels: [],
    alert: 'it keeps rising while Redis is well: rings get lost',
  },
  rings_lost_total: {
    kind: 'counter',
    help: 'Rings that Redis did not take; the sweeper makes up for them.',
    labels: ['queue'],
    alert: 'any increase: Redis is out of reach of this process',
  },
  worker_renewals_total: {
    kind: 'counter',
    help: 'Times that a worker of this process took nothing though it could, and was made anew.',
    labels: ['queue'],
    alert: 'it keeps rising: something between the workers and Redis swallows what they send',
  },
  workers_stuck_total: {
    kind: 'counter',
    help: 'Times that making a worker anew did not help; `threadmill worker` ends then.',
    labels: ['queue'],
    alert: 'any increase: restart the process, if nothing does',
  },
  event_drops_total: {
    kind: 'counter',
    help: 'Times that live events were dropped; viewers miss text until the message is stored.',
    labels: [],
    alert: 'any increase: Redis is slow or out of reach',
  },
  troubles_total: {
    kind: 'counter',
    help: 'Things that this process does by itself and that failed, by part: database, redis, renewal, hook.',
    labels: ['part'],
    alert: 'any increase over 5 minutes',
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>

export type MetricName = keyof typeof definitions

export const metricPrefix = 'threadmill_'
