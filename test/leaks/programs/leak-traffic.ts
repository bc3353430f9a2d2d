import { setTimeout as wait } from 'node:timers/promises'
import { Threadmill } from '../../../src/index.ts'
import { above, type Counts, keysOf, memoryNow, openNow } from '../support/counts.ts'
import { openEyes } from '../support/eyes.ts'
import { numberOf, readInput, report } from '../support/input.ts'
import { agents } from '../traffic/agents.ts'
import type { Shop } from '../traffic/shop.ts'
import { visits } from '../traffic/visits.ts'

// Everything that an application and its workers do in an hour, in one process, as fast as it goes. Reports what is open and in memory
// before it, at three points of it, and after it.

const atOnce = 8
const settleMs = 20_000
/**
 * The thread that renews claims outlives its last user for half a minute, and keeps SQLite's files open until it ends or collects its
 * garbage.
 */
const closeMs = 60_000
/** Connections that one connection of ours may have to a server, by what the test sets, and those that renew its claims. */
const keptByPools = 4 + 2
/** The same of SQLite: one, and eight that wait to be used again, with up to three files each. */
const keptBySqlite = 2 * (1 + 8) * 3

const input = readInput()
const eyes = await openEyes(input)
const start = await openNow(eyes)
let turns = 0

const connect = () => Threadmill.connect({ ...input.options, agents, metrics: true })
const [web, desk, works] = [await connect(), await connect(), await connect()]
await works.startWorkers({ complete: 20, runTools: 5, compact: 2 }).ready()
const shop: Shop = {
  web,
  desk,
  turn(count = 1) {
    turns += count
  },
}

/** Has so many customers at once in the shop until each visit was made so many times, and resolves when all have left. */
async function serve(rounds: number, customers: number): Promise<void> {
  const end = rounds * visits.length
  let next = 0
  const serveOne = async () => {
    while (next < end) await visits[next++ % visits.length]?.(shop)
  }
  await Promise.all(Array.from({ length: customers }, serveOne))
}

/** The most of each that is open at rest; of what is pooled, as much as pools may keep. */
async function mostOpen(): Promise<Counts> {
  const most: Record<string, number> = {}
  for (let look = 0; look < 10; look++) {
    for (const [kind, count] of Object.entries(await openNow(eyes))) most[kind] = Math.max(count, most[kind] ?? 0)
    await wait(100)
  }
  const connections = 3 * (eyes.sql === null ? keptBySqlite : keptByPools)
  return {
    ...most,
    'database connections': connections,
    TCPSocketWrap: (most['Redis connections'] ?? 0) + (eyes.sql === null ? 0 : connections + 1) + 4 * atOnce,
  }
}

// Twice as many at once as later, so that pools and caches have been as large as they get.
await serve(numberOf(input, 'warmUpRounds'), 2 * atOnce)
const limits = await mostOpen()
for (const point of ['begin', 'middle', 'end']) {
  if (point !== 'begin') await serve(numberOf(input, 'rounds'), atOnce)
  const left = await above(limits, eyes, settleMs)
  const counted = point === 'begin' ? [] : (['Promise', 'AbortSignal', 'Map', 'Set', 'Object'] as const)
  report(point, { turns, left, memory: await memoryNow(counted), keys: await keysOf(eyes.redis) })
}
await Promise.all([web, desk, works].map((mill) => mill.close()))
report('closed', null)
const spared: Counts =
  eyes.sql === null && numberOf(input, 'waitForThread') === 0 ? { 'database connections': 3 * keptBySqlite } : {}
report('left', await above({ ...start, ...lastingKeys(limits), ...spared }, eyes, closeMs))
await eyes.close()

/** What queues leave in Redis is there for as long as there are queues. */
function lastingKeys(counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).filter(([kind]) => kind.startsWith('keys ')))
}
