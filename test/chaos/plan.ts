import { randomOf } from '../simulation/random.ts'
import type { Boundary, StatementKind } from './boundary.ts'

export type Server = 'redis' | 'database'

/** Something that goes wrong at a time, in ms from the begin of a part. */
export type Fault =
  /** A worker dies by SIGKILL, at a boundary or wherever it is. */
  | { readonly kind: 'kill'; readonly at: number; readonly boundary: Boundary | null }
  /** A worker is stopped past its claims, and goes on. `extraMs`: longer than its claims live. */
  | {
      readonly kind: 'freeze'
      readonly at: number
      readonly boundary: Boundary | null
      /** Null: it goes on as soon as its claims have lapsed, so that nobody else has taken its chats yet. */
      readonly extraMs: number | null
    }
  /** A worker waits at a boundary, and people write to its chat meanwhile. */
  | { readonly kind: 'hold'; readonly at: number; readonly boundary: Boundary; readonly ms: number }
  | { readonly kind: 'restart'; readonly at: number; readonly server: Server; readonly downMs: number }
  | { readonly kind: 'flush'; readonly at: number }
  /** Redis answers nobody. */
  | { readonly kind: 'pause'; readonly at: number; readonly ms: number }
  /** Connections are cut, and new ones refused. */
  | { readonly kind: 'refuse'; readonly at: number; readonly server: Server; readonly ms: number }
  /** Everything takes longer on its way, there and back. */
  | {
      readonly kind: 'slow'
      readonly at: number
      readonly server: Server
      readonly ms: number
      readonly delayMs: number
    }
  /** Nothing arrives, and nobody is told; then the connections are gone. */
  | { readonly kind: 'cut'; readonly at: number; readonly server: Server; readonly ms: number }
  /** The database ends some of its connections. */
  | { readonly kind: 'kill-connections'; readonly at: number }
  /** Somebody else's transaction locks rows of a chat in the wrong order. */
  | { readonly kind: 'deadlock'; readonly at: number }
  /** The file of SQLite can't grow. */
  | { readonly kind: 'full-disk'; readonly at: number; readonly ms: number }

export type FaultKind = Fault['kind']
export type DatabaseName = 'sqlite' | 'mysql'

/** How often each kind comes, a minute. More than is asked for: not every one finds somebody to hit. */
export const rates: Readonly<Record<DatabaseName, Readonly<Record<FaultKind, number>>>> = {
  mysql: {
    ...{ kill: 19, freeze: 9, hold: 8, restart: 2.2, flush: 1.5, pause: 1, refuse: 1.2, slow: 1.5, cut: 1.5 },
    ...{ 'kill-connections': 2, deadlock: 2, 'full-disk': 0 },
  },
  sqlite: {
    ...{ kill: 12, freeze: 4, hold: 4, restart: 1, flush: 1.5, pause: 0.5, refuse: 0.5, slow: 0, cut: 0 },
    ...{ 'kill-connections': 0, deadlock: 0, 'full-disk': 3 },
  },
}

type Place = readonly [statement: StatementKind, commit: boolean, moment: Boundary['moment']]

/** Where a death hurts most comes more often. */
const killedAt: readonly Place[] = [
  ['take', false, 'after'],
  ['release', false, 'before'],
  ['release', false, 'after'],
  ['fence', false, 'after'],
  ['insertMessage', false, 'after'],
  ['insertMessage', true, 'before'],
  ['insertMessage', true, 'after'],
  ['insertCalls', true, 'after'],
  ['linkResult', false, 'before'],
  ['linkResult', true, 'before'],
  ['linkResult', true, 'after'],
  ['startCall', true, 'before'],
  ['startCall', true, 'after'],
  ['takeQueue', false, 'after'],
  ['takeQueue', true, 'before'],
  ['takeQueue', true, 'after'],
  ['takeQueue', true, 'after'],
  ['openUsage', false, 'after'],
  ['closeUsage', false, 'after'],
  ['linkUsage', false, 'before'],
  ['write', false, 'after'],
  ['write', true, 'after'],
]

/** Where a standstill past the claim hurts most: between what was read or proved and what rests on it. */
const frozenAt: readonly Place[] = [
  ['take', false, 'after'],
  ['take', false, 'after'],
  ['take', false, 'after'],
  ['take', false, 'before'],
  ['look', false, 'after'],
  ['release', false, 'before'],
  ['release', false, 'before'],
  ['fence', false, 'before'],
  ['fence', false, 'before'],
  ['fence', false, 'after'],
  ['insertMessage', true, 'before'],
  ['linkResult', true, 'before'],
  ['linkResult', false, 'before'],
  ['startCall', true, 'after'],
  ['startCall', true, 'before'],
  ['takeQueue', true, 'before'],
  ['openUsage', false, 'before'],
  ['closeUsage', false, 'after'],
  ['write', false, 'before'],
]

/** Statements between the look at a chat and its release: what is written to the chat there must not be overlooked. */
const heldAt: readonly StatementKind[] = ['release', 'release', 'release', 'fence', 'take', 'startCall', 'closeUsage']

export interface PlanOptions {
  readonly seed: number
  readonly database: DatabaseName
  /** How long faults are made, in ms. */
  readonly ms: number
}

/** What goes wrong and when, the earliest first: the same for the same seed. */
export function planOf({ seed, database, ms }: PlanOptions): Fault[] {
  const kinds = Object.keys(rates[database]) as FaultKind[]
  return kinds
    .flatMap((kind, stream) => {
      const random = randomOf(seed, stream)
      const count = Math.ceil((rates[database][kind] * ms) / 60_000)
      // One in each of so many equal parts of the time: the same number in any minute.
      return Array.from({ length: count }, (_, nth) =>
        draw(kind, ((nth + random()) / count) * ms, nth, random, database),
      )
    })
    .sort((one, other) => one.at - other.at)
}

function draw(kind: FaultKind, time: number, nth: number, random: () => number, database: DatabaseName): Fault {
  const at = Math.round(time)
  const between = (least: number, most: number) => Math.round(least + random() * (most - least))
  // In turns, so that neither is left out.
  const server: Server = database === 'mysql' && nth % 2 === 1 ? 'database' : 'redis'
  switch (kind) {
    case 'kill':
      return { kind, at, boundary: random() < 0.55 ? boundaryOf(random, killedAt) : null }
    case 'freeze': {
      const boundary = random() < 0.65 ? boundaryOf(random, frozenAt) : null
      return { kind, at, boundary, extraMs: random() < 0.35 ? null : between(150, 1_800) }
    }
    case 'hold': {
      const statement = pick(heldAt, random)
      const boundary = { statement, commit: false, moment: 'before', nth: between(1, 3) } as const
      return { kind, at, boundary, ms: between(120, 600) }
    }
    case 'restart':
      return { kind, at, server, downMs: between(100, 1_500) }
    case 'flush':
    case 'kill-connections':
    case 'deadlock':
      return { kind, at }
    case 'pause':
      return { kind, at, ms: between(500, 3_000) }
    case 'refuse':
      return { kind, at, server, ms: between(300, 2_500) }
    case 'slow':
      return { kind, at, server, ms: between(1_000, 4_000), delayMs: between(5, 60) }
    case 'cut':
      return { kind, at, server, ms: between(500, 3_500) }
    case 'full-disk':
      return { kind, at, ms: between(500, 3_000) }
    default:
      return kind satisfies never
  }
}

function boundaryOf(random: () => number, places: readonly Place[]): Boundary {
  const [statement, commit, moment] = pick(places, random)
  return { statement, commit, moment, nth: 1 + Math.floor(random() * 3) }
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T
}
