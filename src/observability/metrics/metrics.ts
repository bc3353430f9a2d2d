import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { ConfigurationError } from '../../errors.ts'
import type { Observation } from '../observation.ts'
import { definitions, type MetricDefinition, type MetricName, metricPrefix } from './definitions.ts'
import { type Recorder, recordTo } from './record.ts'

/** What is read when somebody looks. */
export interface Readings {
  claimsHeld(): number
  /** Rejects when the database is out of reach. */
  backlog(): Promise<{ due: number; oldestDueMs: number; parked: number; failed: number }>
  /** By queue and state; rejects when Redis is out of reach. */
  queues(): Promise<Readonly<Record<string, Readonly<Record<string, number>>>>>
}

export interface Metrics {
  readonly contentType: string
  observe(observation: Observation): void
  /** From now on gauges are read from here. */
  read(from: Readings): void
  /** All metrics of the registry in the text format of Prometheus. What can't be read is left out. */
  text(): Promise<string>
  /** Takes the metrics out of the registry. */
  close(): void
}

/** How long a reading of the database or of Redis serves, in ms: several scrapers cost no more than one. */
const freshMs = 5_000
/** How long a scrape waits for one of them, in ms. */
const patienceMs = 2_000

/** @throws {ConfigurationError} when the registry has metrics of these names already. */
export function openMetrics(given: Registry | null): Metrics {
  const registry = given ?? new Registry()
  const names = Object.keys(definitions) as MetricName[]
  const taken = names.filter((name) => registry.getSingleMetric(metricPrefix + name) !== undefined)
  if (taken.length > 0) {
    throw new ConfigurationError(
      'The registry of connect({ metrics }) has metrics of another connection: give each connection a registry of its own.',
    )
  }
  const made = new Map(names.map((name) => [name, make(name, registry)]))
  const recorder: Recorder = {
    add: (name, value, labels = {}) => {
      const metric = made.get(name)
      if (metric instanceof Counter) metric.inc(labels, value)
    },
    see: (name, value, labels = {}) => {
      const metric = made.get(name)
      if (metric instanceof Histogram) metric.observe(labels, value)
    },
  }
  const gauge = (name: MetricName): Gauge | null => {
    const metric = made.get(name)
    return metric instanceof Gauge ? metric : null
  }
  return {
    contentType: registry.contentType,
    observe: recordTo(recorder),
    read: (from) => collectFrom(from, gauge),
    text: () => registry.metrics(),
    close() {
      for (const name of names) registry.removeSingleMetric(metricPrefix + name)
    },
  }
}

function make(name: MetricName, registry: Registry): Counter | Gauge | Histogram {
  const { kind, help, labels, buckets }: MetricDefinition = definitions[name]
  const common = { name: metricPrefix + name, help, labelNames: [...labels], registers: [registry] }
  switch (kind) {
    case 'counter':
      return new Counter(common)
    case 'gauge':
      return new Gauge(common)
    case 'histogram':
      return new Histogram({ ...common, ...(buckets === undefined ? {} : { buckets: [...buckets] }) })
    default:
      return kind satisfies never
  }
}

/** Prom-client asks a gauge for its value when the registry is read; gauges of one reading share it. */
function collectFrom(from: Readings, gauge: (name: MetricName) => Gauge | null): void {
  const backlog = shared(() => from.backlog())
  const queues = shared(() => from.queues())
  const fill = (name: MetricName, collect: (into: Gauge) => void | Promise<void>) => {
    const into = gauge(name)
    if (into !== null) Object.assign(into, { collect: () => collect(into) })
  }
  const ofBacklog = (name: MetricName, value: (seen: Awaited<ReturnType<Readings['backlog']>>) => number) =>
    fill(name, async (into) => {
      const seen = await backlog()
      // An old value would hide the trouble.
      if (seen === null) into.remove()
      else into.set(value(seen))
    })
  fill('claims_held', (into) => into.set(from.claimsHeld()))
  ofBacklog('chats_due', ({ due }) => due)
  ofBacklog('chats_due_oldest_age_seconds', ({ oldestDueMs }) => oldestDueMs / 1_000)
  ofBacklog('chats_parked', ({ parked }) => parked)
  ofBacklog('chats_failed', ({ failed }) => failed)
  fill('queue_jobs', async (into) => {
    const seen = await queues()
    into.reset()
    for (const [queue, states] of Object.entries(seen ?? {})) {
      for (const [state, count] of Object.entries(states)) into.set({ queue, state }, count)
    }
  })
}

/** Reads at most once in `freshMs`, one at a time; null for what failed or took too long. */
function shared<T>(read: () => Promise<T>): () => Promise<T | null> {
  let last: { readonly at: number; readonly value: Promise<T | null> } | null = null
  return () => {
    if (last === null || performance.now() - last.at > freshMs) {
      last = { at: performance.now(), value: inTime(read()) }
    }
    return last.value
  }
}

function inTime<T>(reading: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, patienceMs, null)
  })
  return Promise.race([reading.catch(() => null), late]).finally(() => clearTimeout(timer))
}
