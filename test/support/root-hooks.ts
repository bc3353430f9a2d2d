import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'

/** Above the longest pause that a library makes between two attempts to reconnect, and lets run out by itself. */
const LIMIT_MS = 25_000
const LOOK_AGAIN_MS = 10

/** In what tests start, too, `threadmill` is these sources and not what was built of them some time. */
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --conditions=threadmill-source`.trim()

type Counts = ReadonlyMap<string, number>

// Opened here so that they belong to the baseline: Node opens them when they are first asked for.
const ownHandles: readonly unknown[] = [process.stdout, process.stderr, ...activeHandles()]
const baseline = countHandles(process.getActiveResourcesInfo().filter((kind) => /(Wrap|Port)$/.test(kind)))

function countHandles(kinds: readonly string[]): Counts {
  const counts = new Map<string, number>()
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

/** What keeps the process alive beyond what did before the tests, such as `TCPSocketWrap x 2`; empty for nothing. */
function leftOver(): string[] {
  return [...countHandles(process.getActiveResourcesInfo())]
    .map(([kind, count]) => ({ kind, extra: count - (baseline.get(kind) ?? 0) }))
    .filter(({ extra }) => extra > 0)
    .map(({ kind, extra }) => `${kind} x ${extra}`)
}

interface Described {
  readonly spawnfile?: unknown
  readonly pid?: unknown
  readonly localPort?: unknown
  readonly remoteAddress?: unknown
  readonly remotePort?: unknown
  readonly address?: () => unknown
}

/** Ports and programs, where Node tells them: a kind alone seldom says which test forgot to close what. */
function describeHandles(): string[] {
  return activeHandles()
    .filter((handle) => !ownHandles.includes(handle))
    .map(describeHandle)
}

/** Node does not document it, so it only serves the message. */
function activeHandles(): object[] {
  return (process as unknown as { _getActiveHandles?: () => object[] })._getActiveHandles?.() ?? []
}

function describeHandle(handle: Described): string {
  const name = handle.constructor.name
  if (handle.spawnfile !== undefined) return `${name} ${handle.spawnfile} (pid ${handle.pid})`
  if (handle.remotePort !== undefined) return `${name} to ${handle.remoteAddress}:${handle.remotePort}`
  if (name === 'Server') return `${name} on ${JSON.stringify(handle.address?.())}`
  return name
}

/** Fails the run when a test left something open that would keep the process alive. */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    // Mocha arms its own timer once this has begun to wait, and that one would be among what is left.
    await turn()
    this.runnable().clearTimeout()
    const start = performance.now()
    while (leftOver().length > 0) {
      if (performance.now() - start > LIMIT_MS) throw handlesLeft()
      await delay(LOOK_AGAIN_MS)
      // Until the next turn of the event loop this timer itself counts as active.
      await turn()
    }
  },
}

/** Its code makes the reporter end the process, which would hang otherwise. */
function handlesLeft(): Error {
  const lines = [...leftOver(), ...describeHandles()].map((line) => `  ${line}`)
  const message = `The tests left open what keeps the process alive; close it where it is made:\n${lines.join('\n')}`
  return Object.assign(new Error(message), { code: 'ERR_HANDLES_LEFT' })
}
