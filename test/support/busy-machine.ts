import { availableParallelism, loadavg } from 'node:os'

/**
 * How many times longer than on an idle machine things may take now: 1 where it has CPUs to spare, 3 where three want each of
 * them. What bounds in seconds are stretched by in tests of real processes, which wait for a CPU at every step.
 */
export function busyness(): number {
  const [lastMinute = 0] = loadavg()
  return Math.max(1, lastMinute / availableParallelism())
}
