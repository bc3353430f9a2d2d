import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '../../errors.ts'
import { type CrashResult, crash } from './crash.ts'
import { CrashPointError } from './crash-point-error.ts'
import { type Usual, usualOf } from './invariants.ts'
import { Lane, type Place } from './lane.ts'
import type { CrashOutcome, CrashReport } from './report.ts'
import { type CheckedScenario, type CrashScenario, checkedScenario } from './scenario.ts'
import type { RecordedWrite } from './trap.ts'
import { type WorkerProgram, workerProgram } from './worker-process.ts'
import { type ListedWrite, listWrites, pointsOf } from './writes.ts'

/**
 * Runs a chat of an application again and again, in worker processes that load the application's file, and kills one by SIGKILL before and
 * after each write to the database; another takes the chat over. Returns what became of the chat each time: how the turn ended,
 * transcript, executions of tools, ledger.
 *
 * Each outcome has to hold what Threadmill promises: the turn ends in an answer, a recorded failure or a cancel; each call is followed by its
 * result, and no message is there twice; the model is not asked again for a stored answer; every usage entry is closed; a call is
 * executed again only if the crash cut it off, then under the same idempotency key, and never where its `onInterrupted` is `fail`; nothing is
 * left claimed, wanted or queued. What the application promises beside that, `check` says. (E110, E111)
 *
 * Tables of a prefix of their own are made in the database and dropped at the end, keys in Redis too. (E115)
 * @throws {CrashPointError} for the first place whose outcome has problems; later ones are not tried then.
 * @throws {ArgumentError} for a scenario that can't be.
 * @throws {ConfigurationError} when the app can't be loaded, its agents do not ask the scripted model, or a connection can't be made.
 */
export async function killAtEveryWrite(scenario: CrashScenario): Promise<CrashReport> {
  const checked = checkedScenario(scenario)
  return runCrashes(checked, workerProgram(checked))
}

/** The crashes of a scenario, with worker processes of this program. */
export async function runCrashes(scenario: CheckedScenario, program: WorkerProgram): Promise<CrashReport> {
  const folder = await mkdtemp(join(tmpdir(), 'threadmill-crashes-'))
  const place: Place = { scenario, program, folder, name: randomBytes(4).toString('hex') }
  const lanes: Lane[] = []
  const close = async (): Promise<void> => {
    const closed = await Promise.allSettled(lanes.map((lane) => lane.close()))
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    for (const one of closed) if (one.status === 'rejected') throw one.reason
  }
  try {
    const report = await runIn(place, lanes)
    await close()
    return report
  } catch (error) {
    // What is wrong with the chat is worth more than what is wrong with the end.
    await close().catch(() => {})
    throw error
  }
}

/** @param lanes gets each lane once it is open; whoever gave it closes them. */
async function runIn(place: Place, lanes: Lane[]): Promise<CrashReport> {
  const { scenario } = place
  const open = async (): Promise<Lane> => {
    const lane = await Lane.open(place, lanes.length + 1)
    lanes.push(lane)
    return lane
  }
  const first = await open()
  const { outcome: baseline, usual, writes } = await runWithoutCrash(first, scenario)
  const targets = pointsOf(writes.filter(({ key: _, ...write }) => scenario.only?.(write) ?? true))
  const outcomes = new Map<number, CrashOutcome>()
  let next = 0
  let isBroken = false
  const work = async (lane: Lane): Promise<void> => {
    for (let at = next++; at < targets.length && !isBroken; at = next++) {
      const target = targets[at]
      if (target === undefined) return
      const outcome = await crashThere(lane, scenario, usual, target)
      outcomes.set(at, outcome)
      isBroken ||= outcome.problems.length > 0
    }
  }
  const working = [first]
  const count = Math.min(scenario.concurrency ?? defaultConcurrency(), targets.length)
  while (working.length < count) working.push(await open())
  const ended = await Promise.allSettled(
    working.map((lane) =>
      work(lane).catch((error: unknown) => {
        isBroken = true
        throw error
      }),
    ),
  )
  for (const one of ended) if (one.status === 'rejected') throw one.reason
  const inOrder = [...outcomes].toSorted(([a], [b]) => a - b).map(([, outcome]) => outcome)
  const broken = inOrder.find(({ problems }) => problems.length > 0)
  if (broken !== undefined) throw new CrashPointError(broken)
  return { baseline, outcomes: inOrder }
}

const tries = 3

/** A process that made its statements in another order than before may never come to the place. */
async function crashThere(
  lane: Lane,
  scenario: CheckedScenario,
  usual: Usual,
  target: ReturnType<typeof pointsOf>[number],
): Promise<CrashOutcome> {
  for (let attempt = 1; ; attempt++) {
    const { outcome } = await crash(lane, { scenario, target, usual })
    if (outcome.died || outcome.problems.length > 0 || attempt === tries) return outcome
  }
}

interface WithoutCrash {
  readonly outcome: CrashOutcome
  readonly usual: Usual
  readonly writes: readonly ListedWrite[]
}

/** Two runs in which nobody dies, by one process. What both wrote are the writes of the turn. */
async function runWithoutCrash(lane: Lane, scenario: CheckedScenario): Promise<WithoutCrash> {
  const { process, idle } = await lane.worker()
  const run = async (): Promise<CrashResult & { readonly writes: readonly RecordedWrite[] }> => {
    const result = await crash(lane, { scenario, target: null, usual: null })
    if (result.outcome.requests.length === 0 && result.outcome.usages.length > 0) {
      throw new ConfigurationError(
        'killAtEveryWrite(): the scripted model was not asked. Agents with a client or a base URL of their own ask elsewhere.',
      )
    }
    if (result.outcome.problems.length > 0) throw new CrashPointError(result.outcome)
    return { ...result, ...(await process.order({ kind: 'set', death: null }, 'set')) }
  }
  const first = await run()
  const second = await run()
  return {
    outcome: second.outcome,
    usual: usualOf(second.facts),
    writes: listWrites(first.writes, second.writes, idle),
  }
}

/** A crash is waiting for a claim to lapse, more than anything. */
const defaultConcurrency = (): number => Math.min(4, Math.max(2, availableParallelism()))
