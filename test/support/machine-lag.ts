import { monitorEventLoopDelay } from 'node:perf_hooks'

/** How late the machine has let this process go on at worst, in ms: what a limit in ms has to allow for beside the work itself. */
export interface MachineLag {
  /** The worst so far. */
  worst(): number
  stop(): void
}

/** Begins to measure. On an idle machine it comes to some 20 ms. */
export function measureLag(): MachineLag {
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  return { worst: () => delays.max / 1e6, stop: () => void delays.disable() }
}
