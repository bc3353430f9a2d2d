import { QueryTypes } from 'sequelize'
import { SqliteHandle } from '../../../../config/sqlite-handle.ts'
import { until } from '../../../support/until.ts'
import { FROZEN } from '../../support/die.ts'
import { rowOf } from '../../support/rows.ts'
import { type DeathAt, kill } from '../../support/workers.ts'
import { claimLapsed, type Ground, WAIT_MS, type WorkerEnd } from './ground.ts'

/** Something that befalls a case in the middle. */
export interface Fault {
  /** Completes "while". */
  readonly name: string
  /** The scenario of docs/behaviour.md. */
  readonly number: string
  /** What the runner has to be started with. */
  readonly end?: WorkerEnd
  /** How long the runner's claims live in place of the ground's, in ms, where none is to lapse on a busy machine. */
  readonly claimTtlMs?: number
  /** The database that it is about; left out, either. */
  readonly only?: 'MariaDB' | 'SQLite'
  /** Done at the case's worst moment. Returns what ends the fault, which the case calls when it wants the world well again. */
  strike(ground: Ground): Promise<() => Promise<unknown>>
  /** Whether the runner may lose its claim by it, so that a request or a tool call may come once more. */
  readonly losesClaim: boolean
  /** Whether the runner goes on without its claim, so that its request and its successor's may be open at once. */
  readonly splits?: boolean
}

const nothing = async () => {}

const flush: Fault = {
  name: 'Redis is flushed',
  number: 'E156',
  losesClaim: false,
  async strike({ jobs }) {
    await jobs.redis.flushall()
    return nothing
  },
}

const restart: Fault = {
  name: 'Redis restarts empty',
  number: 'E156',
  losesClaim: false,
  async strike({ bench }) {
    await bench.redis.restart()
    return nothing
  },
}

const away: Fault = {
  name: 'Redis is away',
  number: 'E156',
  losesClaim: false,
  async strike({ bench }) {
    await bench.redis.kill()
    return () => bench.redis.restart()
  },
}

const disconnected: Fault = {
  name: 'every connection to Redis is cut',
  number: 'E156',
  losesClaim: false,
  async strike({ jobs }) {
    await jobs.redis.client('KILL', 'SKIPME', 'yes')
    return nothing
  },
}

const sessions: Fault = {
  name: 'the database ends every session of its worker',
  number: 'E157',
  only: 'MariaDB',
  losesClaim: true,
  async strike(ground) {
    await killSessions(ground)
    return nothing
  },
}

const slow: Fault = {
  name: 'its network is slow',
  number: 'E157',
  losesClaim: false,
  claimTtlMs: 10_000,
  async strike({ links }) {
    links.redis.slow(25)
    links.database?.slow(25)
    return nothing
  },
}

/** The worker lives, and hears and says nothing; what it said arrives when the chat is another's. */
const silent: Fault = {
  name: 'its network holds everything back past the claim',
  number: 'E159',
  only: 'MariaDB',
  losesClaim: true,
  splits: true,
  async strike(ground) {
    const { links, mill, struck } = ground
    const { claimToken } = await rowOf(mill, struck)
    links.redis.hold()
    links.database?.hold()
    await ground.startSpare()
    return async () => {
      await claimLapsed(ground, struck, claimToken)
      links.redis.mend()
      links.database?.mend()
    }
  },
}

const frozen: Fault = {
  name: 'its worker is frozen past the claim',
  number: 'E159',
  losesClaim: true,
  splits: true,
  async strike(ground) {
    const { mill, struck, runner } = ground
    const { claimToken } = await rowOf(mill, struck)
    await until('it stands still, and not in the middle of a write', () => {
      runner.signal('SIGSTOP')
      if (canWrite(ground)) return true
      runner.signal('SIGCONT')
      return false
    })
    await ground.startSpare()
    return async () => {
      await claimLapsed(ground, struck, claimToken)
      runner.signal('SIGCONT')
    }
  },
}

const killed: Fault = {
  name: 'its worker is killed',
  number: 'E158',
  losesClaim: true,
  async strike(ground) {
    await kill(ground.runner)
    await ground.startSpare()
    return nothing
  },
}

const locked: Fault = {
  name: 'somebody holds the database’s lock past the claim',
  number: 'E157',
  only: 'SQLite',
  losesClaim: true,
  async strike(ground) {
    const { mill, struck } = ground
    const { claimToken } = await rowOf(mill, struck)
    const handle = new SqliteHandle(ground.bench.database.url.slice('sqlite:'.length))
    await until('the lock is held', () => begins(handle))
    return async () => {
      await claimLapsed(ground, struck, claimToken)
      handle.execute('ROLLBACK', [])
      handle.close()
    }
  },
}

/** Takes SQLite's lock. False: somebody else has it just now. */
export function begins(handle: SqliteHandle): boolean {
  try {
    handle.execute('BEGIN IMMEDIATE', [])
    return true
  } catch {
    return false
  }
}

/** False: who has SQLite's only lock keeps everybody from writing, for as long as it stands still. */
function canWrite({ bench }: Ground): boolean {
  if (!bench.database.url.startsWith('sqlite:')) return true
  const handle = new SqliteHandle(bench.database.url.slice('sqlite:'.length))
  const free = begins(handle)
  if (free) handle.execute('ROLLBACK', [])
  handle.close()
  return free
}

/** Every fault there is, by the name that cases use. */
export const faults = {
  flush,
  restart,
  away,
  disconnected,
  sessions,
  slow,
  silent,
  frozen,
  killed,
  locked,
} as const

/** The worker dies by its own hand before the last of some statements. */
export function diesAt(place: string, statements: DeathAt): Fault {
  return {
    name: `its worker is killed ${place}`,
    number: 'E158',
    losesClaim: true,
    end: { dieAt: statements },
    async strike({ runner, startSpare }) {
      await runner.ended
      await startSpare()
      return nothing
    },
  }
}

/** The worker freezes there, and wakes up when its claim has lapsed. */
export function freezesAt(place: string, statements: DeathAt): Fault {
  return {
    name: `its worker is frozen ${place}`,
    number: 'E159',
    losesClaim: true,
    splits: true,
    end: { freezeAt: statements },
    async strike(ground) {
      const { mill, struck, runner } = ground
      await frozenNow(ground)
      const { claimToken } = await rowOf(mill, struck)
      await ground.startSpare()
      return async () => {
        await claimLapsed(ground, struck, claimToken)
        runner.signal('SIGCONT')
      }
    },
  }
}

/** Waits until the runner has frozen itself. */
export async function frozenNow({ runner }: Ground): Promise<void> {
  await until('the worker has frozen', () => runner.output().includes(FROZEN), WAIT_MS)
}

/** Ends the database's sessions that came over the runner's link. */
export async function killSessions({ mill, links }: Ground): Promise<void> {
  // Not information_schema, whose answers are tables on the server's disk.
  const sessions = await mill.sequelize.query<{ Id: number; Host: string }>('SHOW PROCESSLIST', {
    type: QueryTypes.SELECT,
  })
  const ports = new Set(links.database?.ports().map(String))
  for (const { Id, Host } of sessions) {
    // It may have gone by itself meanwhile.
    if (ports.has(Host.split(':')[1] ?? '')) await mill.sequelize.query(`KILL ${Id}`).catch(() => {})
  }
}
