import { type DatabaseKind, onEachDatabase } from '../../../support/databases.ts'
import { itOnRealRedis } from '../../../support/real-redis.ts'
import { type Fault, faults } from './faults.ts'
import { type Ground, useGround } from './ground.ts'

/** A reported bug's scenario, to be played again under a fault. */
export interface Case {
  /** Its number in docs/behaviour.md. */
  readonly bug: string
  /** The database that it is about; left out, either. */
  readonly only?: DatabaseKind['name']
  /** What is right, as the end of a test's title. */
  readonly right: string
  /** The faults under which it is always played. */
  readonly under: readonly (keyof typeof faults | Fault)[]
  /** Those that are left to the long run. */
  readonly atLength?: readonly (keyof typeof faults | Fault)[]
  /** Plays it, and checks what is right, the fault or no. `strike` lets the fault happen; what it returns ends it. */
  play(ground: Ground, strike: () => Promise<() => Promise<unknown>>, fault: Fault): Promise<void>
}

const LIMIT_MS = 180_000
const isLong = process.env.THREADMILL_FULL === '1'
/** Faults of Redis are the same on every database: one will do. */
const oneDatabase = new Set<Fault>([faults.flush, faults.restart, faults.away, faults.disconnected, faults.slow])

/** Declares a test for each case and fault, on each database. */
export function playUnderFaults(title: string, cases: readonly Case[]): void {
  onEachDatabase(title, (kind) => {
    const ground = useGround(kind)
    for (const each of cases) {
      const chosen = [...each.under, ...(isLong ? (each.atLength ?? []) : [])]
      for (const fault of chosen.map((one) => (typeof one === 'string' ? faults[one] : one))) {
        if (!isFor(kind, each, fault)) continue
        itOnRealRedis(`${each.bug} while ${fault.name}: ${each.right} (${fault.number})`, async () => {
          const here = await ground(fault.claimTtlMs)
          await each.play(here, () => fault.strike(here), fault)
        }).timeout(LIMIT_MS)
      }
    }
  })
}

function isFor({ name }: DatabaseKind, each: Case, fault: Fault): boolean {
  if (each.only !== undefined && each.only !== name) return false
  if (fault.only !== undefined) return fault.only === name
  const hasServer = (process.env.TEST_DATABASE_URL ?? '') !== ''
  return !oneDatabase.has(fault) || name === (hasServer ? 'MariaDB' : 'SQLite')
}
