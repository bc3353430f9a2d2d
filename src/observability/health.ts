import type { Metrics } from './metrics/metrics.ts'
import type { CheckResults, ProbeSource } from './probe.ts'

/** What is looked at to tell how a process is. */
export interface Health {
  /** Whether the thread that renews claims answers. */
  isRenewing(): boolean
  isClosing(): boolean
  /** The state of each pool that was started; `running` is well, `stuck` can't get well in this process. */
  pools(): readonly string[]
  /** Rejects unless the database answers and has every table. */
  database(): Promise<unknown>
  /** Rejects unless Redis answers. */
  redis(): Promise<unknown>
  readonly metrics: Metrics | null
}

/** How long a probe waits for a part, in ms: below the second that most probes are given. */
const patienceMs = 800

/** What a probe of this process answers. Results are words of ours, never those of an error: anyone may ask. */
export function probeSource(health: Health): ProbeSource {
  const renewal = () => (health.isRenewing() ? 'ok' : 'hung')
  const stuck = () => (health.pools().includes('stuck') ? 'stuck' : 'ok')
  return {
    live: () => ({ renewal: renewal(), ...(health.pools().length === 0 ? {} : { workers: stuck() }) }),
    async ready(): Promise<CheckResults> {
      const [database, redis] = await Promise.all([answers(() => health.database()), answers(() => health.redis())])
      const pools = health.pools()
      const workers = pools.find((state) => state !== 'running') ?? 'ok'
      return {
        database,
        redis,
        renewal: renewal(),
        ...(pools.length === 0 ? {} : { workers }),
        process: health.isClosing() ? 'closing' : 'ok',
      }
    },
    async metrics() {
      const { metrics } = health
      return metrics === null ? null : { text: await metrics.text(), contentType: metrics.contentType }
    },
  }
}

async function answers(ask: () => Promise<unknown>): Promise<string> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, patienceMs, 'slow')
  })
  const answer = ask().then(
    () => 'ok',
    (error: unknown) =>
      (error as { code?: unknown } | null)?.code === 'configuration.not_migrated' ? 'not migrated' : 'unreachable',
  )
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}
