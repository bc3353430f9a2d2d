import type { Workload } from './workloads.ts'

/** What a contestant is given to work with. */
export interface Arena {
  readonly databaseUrl: string
  readonly redisUrl: string
  /** The model server, as an OpenAI base URL, with the workload's latency and chunks in it. */
  readonly modelUrl: string
}

/** One way to have turns answered. */
export interface Contestant {
  readonly name: string
  /** Sets up for a workload, outside of what is timed. */
  prepare(workload: Workload, arena: Arena): Promise<Prepared>
}

export interface Prepared {
  /** Resolves when the turn is answered. */
  turn(at: number): Promise<void>
  /** The CPU time of whoever does the work so far, in ms. */
  cpuMs(): Promise<number>
  close(): Promise<void>
}

export function ownCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
