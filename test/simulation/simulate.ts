import fc from 'fast-check'
import type { Bug } from './bugs.ts'
import { type Plan, plan } from './plan.ts'
import { play } from './play.ts'
import type { SqliteFile } from './sqlite-file.ts'
import type { WorldOptions } from './world.ts'

export interface Failed {
  readonly seed: number
  /** What was wrong, in a line. */
  readonly violation: string
  /** As small as it could be made. */
  readonly plan: Plan
  /** For people: the seed, what was wrong, the plan, and what happened. */
  readonly report: string
}

export interface SimulateOptions {
  readonly seeds: number
  /** The first of them; the others follow it. */
  readonly first: number
  readonly bug?: Bug | undefined
  /** A real database for the rows; left out, they are in memory. */
  readonly file?: SqliteFile | undefined
  /** False tells of the plan as it was drawn. */
  readonly shrinks?: boolean
  /** Told after each seed that went well. */
  readonly onPlayed?: (seed: number) => void
}

type Planted = Pick<WorldOptions, 'bug' | 'file'>

/** Most of the time that is spent on making a failing plan small, in ms. */
const shrinkMs = 60_000

/** Plays a plan for each seed, until one of them goes wrong; null = none did. */
export async function simulate({
  seeds,
  first,
  bug,
  file,
  shrinks = true,
  onPlayed,
}: SimulateOptions): Promise<Failed | null> {
  const world = { bug, file: file ?? null }
  for (let seed = first; seed < first + seeds; seed++) {
    const [drawn] = fc.sample(plan, { seed, numRuns: 1 })
    if (drawn === undefined) continue
    const { violation } = await play(drawn, world)
    if (violation === null) onPlayed?.(seed)
    else return report(seed, violation, shrinks ? await shrunk(seed, drawn, world) : drawn, world)
  }
  return null
}

/** The plan of that seed, made as small as it goes wrong. */
async function shrunk(seed: number, drawn: Plan, world: Planted): Promise<Plan> {
  const goesWell = async (one: Plan) => (await play(one, world)).violation === null
  const found = await fc.check(fc.asyncProperty(plan, goesWell), {
    ...{ seed, numRuns: 1, interruptAfterTimeLimit: shrinkMs },
    // So that the seed gives the plan that was drawn of it.
    unbiased: true,
  })
  return found.counterexample?.[0] ?? drawn
}

async function report(seed: number, found: string, small: Plan, world: Planted): Promise<Failed> {
  const { violation: again, lines } = await play(small, { ...world, traced: true })
  const violation =
    again ?? `${found} (and not when it was played again: something hangs on the time of day, or on chance)`
  const report = [`seed ${seed}: ${violation}`, JSON.stringify(small, null, 1), ...shortened(lines)].join('\n')
  return { seed, violation, plan: small, report }
}

const mostLines = 400

function shortened(lines: readonly string[]): string[] {
  if (lines.length <= mostLines) return [...lines]
  const half = mostLines / 2
  return [...lines.slice(0, half), `… ${lines.length - mostLines} lines …`, ...lines.slice(-half)]
}
