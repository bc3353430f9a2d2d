import type { Arena, Contestant } from './contestant.ts'
import type { Workload } from './workloads.ts'

/** What one contestant did in one round of one workload. */
export interface Figures {
  readonly turnsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMsPerTurn: number
  readonly database: DatabaseLoad | null
}

/** What the database server did for one turn. */
export interface DatabaseLoad {
  readonly statements: number
  readonly bytesReceived: number
  readonly rowsRead: number
}

/** Reads the server's counters; null where it has none. */
export type DatabaseCounters = () => Promise<DatabaseLoad | null>

/** Runs a workload: some turns to warm up, then the timed ones, so many at once. */
export async function measure(
  contestant: Contestant,
  workload: Workload,
  arena: Arena,
  counters: DatabaseCounters,
): Promise<Figures> {
  const prepared = await contestant.prepare(workload, arena)
  try {
    await inParallel(workload.warmup, workload.concurrency, (at) => prepared.turn(at))
    const [cpuBefore, loadBefore] = [await prepared.cpuMs(), await counters()]
    const latencies: number[] = []
    const begun = performance.now()
    await inParallel(workload.turns, workload.concurrency, async (at) => {
      const asked = performance.now()
      await prepared.turn(workload.warmup + at)
      latencies.push(performance.now() - asked)
    })
    const seconds = (performance.now() - begun) / 1_000
    const [cpuAfter, loadAfter] = [await prepared.cpuMs(), await counters()]
    latencies.sort((a, b) => a - b)
    return {
      turnsPerSecond: workload.turns / seconds,
      p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? 0,
      p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
      cpuMsPerTurn: (cpuAfter - cpuBefore) / workload.turns,
      database: perTurn(loadBefore, loadAfter, workload.turns),
    }
  } finally {
    await prepared.close()
  }
}

async function inParallel(count: number, limit: number, work: (at: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(limit, count) }, lane))
}

function perTurn(before: DatabaseLoad | null, after: DatabaseLoad | null, turns: number): DatabaseLoad | null {
  if (before === null || after === null) return null
  return {
    statements: (after.statements - before.statements) / turns,
    bytesReceived: (after.bytesReceived - before.bytesReceived) / turns,
    rowsRead: (after.rowsRead - before.rowsRead) / turns,
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
