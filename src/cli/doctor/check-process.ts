import type { Clock, Finding, ProcessFacts } from './facts.ts'

const leastNode = [20, 19] as const
const mostAheadMs = 1_000

export function checkNode({ node }: ProcessFacts): Finding {
  const what = `Node ${node}`
  if (isAtLeast(node, leastNode)) return { name: 'node', status: 'ok', what, fix: null }
  return { name: 'node', status: 'fail', what, fix: `Install Node ${leastNode.join('.')} or newer.` }
}

export function checkVersions({ threadmill, drivers }: ProcessFacts): Finding {
  const missing = Object.keys(drivers).filter((name) => drivers[name] === null)
  const found = Object.entries(drivers).filter(([, version]) => version !== null)
  const what = `threadmill ${threadmill}; ${found.map(([name, version]) => `${name} ${version}`).join(', ')}`
  if (missing.length === 0) return { name: 'versions', status: 'ok', what, fix: null }
  return {
    name: 'versions',
    status: 'fail',
    what: `${what}; not found: ${missing.join(', ')}`,
    fix: 'Run npm install again.',
  }
}

/** Claims go by the database's clock; ids, logs and what is shown go by the others. */
export function checkClock(of: 'database' | 'redis', { aheadMs, withinMs }: Clock): Finding {
  const name = `${of} clock`
  const surely = Math.abs(aheadMs) - withinMs
  const what = `${Math.abs(Math.round(aheadMs))} ms ${aheadMs < 0 ? 'behind' : 'ahead of'} this process, within ${Math.round(withinMs)} ms`
  if (surely <= mostAheadMs) return { name, status: 'ok', what, fix: null }
  return { name, status: 'warn', what, fix: 'Keep the clocks of all machines in step, by NTP for example.' }
}

/** Whether a version is at least this one; what is no version is not. */
export function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const match = /^v?(\d+)\.(\d+)/.exec(version)
  if (match === null) return false
  const [has, hasMinor] = [Number(match[1]), Number(match[2])]
  return has > major || (has === major && hasMinor >= minor)
}
