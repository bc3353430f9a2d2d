import { setTimeout as wait } from 'node:timers/promises'
import type { Chat } from '../../chat/chat.ts'
import { ArgumentError } from '../../errors.ts'
import { problemsOf, type RunFacts, type Usual } from './invariants.ts'
import { readJournal } from './journal.ts'
import type { Lane, Working } from './lane.ts'
import type { CrashOutcome, CrashPoint, ToolExecution, TurnEnd } from './report.ts'
import type { CheckedScenario } from './scenario.ts'
import { endOf, readSnapshot, type Snapshot } from './snapshot.ts'
import { readable } from './transcript.ts'
import type { WriteKey } from './trap.ts'
import { until } from './until.ts'

/** One run of the scenario. */
export interface CrashOrder {
  readonly scenario: CheckedScenario
  /** Null: nobody dies. */
  readonly target: { readonly point: CrashPoint; readonly key: WriteKey } | null
  /** Null for the run that the others are measured by. */
  readonly usual: Usual | null
}

/** What came of it. */
export interface CrashResult {
  readonly outcome: CrashOutcome
  readonly facts: RunFacts
}

const lookEveryMs = 25
/** A process may have a last write ahead of it when its chat is at rest already. */
const lastWriteMs = 1_000

/** Runs the scenario once on a chat of its own, and kills the worker process at the place named. The chat is deleted afterwards. */
export async function crash(lane: Lane, { scenario, target, usual }: CrashOrder): Promise<CrashResult> {
  const { mill, model } = lane
  const victim = await lane.worker()
  const [asked, begun] = [model.requests.length, (await readJournal(lane.journal)).length]
  await victim.process.order({ kind: 'set', death: target && { ...target.key, moment: target.point.moment } }, 'set')
  const chat = await createdBy(scenario, mill, victim)
  const course = await follow(lane, { scenario, chat, victim, dies: target !== null })
  const entries = (await readJournal(lane.journal)).slice(begun)
  const executions = entries
    .filter(({ at }) => at === 'begun')
    .map(({ tool, key, chatId, pid, execution }): ToolExecution => {
      const returned = entries.some((one) => one.at === 'returned' && one.pid === pid && one.execution === execution)
      return { tool, key, chatId, process: pid === victim.process.pid ? 'killed' : 'next', returned }
    })
  const { drove, died, ...known } = course
  const facts: RunFacts = { ...known, executions, requests: model.requests.slice(asked) }
  const problems = [
    ...(died && target === null ? ['The worker process ended by itself.'] : []),
    ...(drove === null ? [] : [`drive() failed: ${drove}`]),
    ...problemsOf(facts, usual, victim.app.once),
  ]
  const outcome = outcomeOf(chat, target?.point ?? null, { died, facts, problems })
  const complaint = await complaintOf(scenario, outcome, { chat, mill })
  await chat.delete()
  return { outcome: { ...outcome, problems: [...problems, ...complaint] }, facts }
}

async function createdBy(scenario: CheckedScenario, mill: Lane['mill'], { app }: Working): Promise<Chat> {
  if (scenario.create !== undefined) return scenario.create(mill)
  const agent = scenario.agent ?? (app.agents.length === 1 ? app.agents[0] : undefined)
  if (agent === undefined || !app.agents.includes(agent)) {
    throw new ArgumentError(`killAtEveryWrite({ agent }) must name one of the app's agents: ${app.agents.join(', ')}.`)
  }
  return mill.chats.create({ agent }, { agentElsewhere: true })
}

interface Course {
  readonly end: TurnEnd
  readonly atDeath: Snapshot | null
  readonly final: Snapshot
  readonly died: boolean
  /** What `drive` threw, in words; null = nothing. */
  readonly drove: string | null
}

interface Followed {
  readonly scenario: CheckedScenario
  readonly chat: Chat
  readonly victim: Working
  readonly dies: boolean
}

/** Drives the chat and watches it to its end; once the process is dead, another goes on. */
async function follow(lane: Lane, { scenario, chat, victim, dies }: Followed): Promise<Course> {
  const { mill } = lane
  const { limitMs } = scenario
  const stop = new AbortController()
  let drove: string | null | undefined
  const driving = Promise.resolve()
    .then(() =>
      scenario.drive(chat, {
        mill,
        until: (what, condition) => until(what, condition, { limitMs, signal: stop.signal }),
      }),
    )
    .then(
      () => null,
      (error: unknown) => wordsOf(error),
    )
    .then((problem) => {
      drove = problem
    })
  let atDeath: Snapshot | null = null
  let since = performance.now()
  let [before, end]: [TurnEnd | null, TurnEnd | null] = [null, null]
  let restSince: number | null = null
  while (end === null) {
    // Looked at once: what is read below is as of later.
    const { isAlive } = victim.process
    if (atDeath === null && !isAlive) {
      atDeath = await readSnapshot(mill, chat)
      await lane.worker()
      since = performance.now()
    }
    const now = drove === undefined ? null : await endOf(chat, await readSnapshot(mill, chat))
    // Chats are read one after the other, so only what is seen twice is so.
    const isAtRest = now !== null && now === before
    before = now
    restSince = isAtRest ? (restSince ?? performance.now()) : null
    const mayDie = dies && isAlive && performance.now() - (restSince ?? 0) < lastWriteMs
    if (isAtRest && !mayDie) end = now
    else if (performance.now() - since > limitMs) end = 'stuck'
    else await wait(lookEveryMs)
  }
  stop.abort()
  // One that waits gives up at once, and says for what; any other is not waited for any longer.
  await Promise.race([driving, wait(lastWriteMs)])
  return { end, atDeath, final: await readSnapshot(mill, chat), died: atDeath !== null, drove: drove ?? null }
}

function outcomeOf(
  chat: Chat,
  point: CrashPoint | null,
  { died, facts, problems }: { readonly died: boolean; readonly facts: RunFacts; readonly problems: readonly string[] },
): CrashOutcome {
  const { end, final, executions, requests } = facts
  const [top, ...below] = final.chats
  return {
    point,
    died,
    chatId: chat.id,
    end,
    failure: top?.row.failure ?? null,
    transcript: [
      ...readable(top?.messages ?? []),
      ...below.flatMap(({ row, messages }) => [
        `Sub-chat of ${row.agent}:`,
        ...readable(messages).map((line) => `  ${line}`),
      ]),
    ],
    messages: top?.messages ?? [],
    executions,
    usages: final.usages,
    requests,
    problems,
  }
}

async function complaintOf(
  { check }: CheckedScenario,
  outcome: CrashOutcome,
  tools: { readonly chat: Chat; readonly mill: Lane['mill'] },
): Promise<string[]> {
  try {
    await check?.(outcome, tools)
    return []
  } catch (error) {
    return [`check() failed: ${wordsOf(error)}`]
  }
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
