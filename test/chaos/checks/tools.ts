import type { JournalEntry } from '../../../src/testing/crashes/journal.ts'
import { toolKinds } from '../agents.ts'
import type { Evidence, Violation } from '../evidence.ts'
import { groupBy } from './messages.ts'

// An execution is written to the ledger before it begins. A call may have several only if the processes of all but one
// were disturbed between its begin and the last of them: they died, stood still, or were cut off from the database.

/** A process may have been stopped between the start of a call and its execution, so long before that it counts, in ms. */
const slackMs = 1_500

export interface ToolFindings {
  readonly violations: readonly Violation[]
  /** Executions beyond the first of a call that something explains. */
  readonly repeats: number
}

/** What is wrong with the executions of tools. */
export function toolFindings(evidence: Evidence): ToolFindings {
  const begun = evidence.ledger.filter(({ at }) => at === 'begun')
  const calls = new Map(
    evidence.chats.flatMap(({ messages }) =>
      messages.flatMap(({ toolCalls }) => toolCalls.map((call) => [call.id, call])),
    ),
  )
  const violations: Violation[] = []
  let repeats = 0
  for (const [key, executions] of groupBy(begun, (entry) => entry.key)) {
    const [first] = executions
    if (first === undefined) continue
    const violate = (what: string) => violations.push({ rule: 'tool', chatId: first.chatId, what })
    const call = calls.get(key)
    if (call === undefined) violate(`${first.tool} was executed under the key ${key}, which is that of no call.`)
    if (call?.approval === 'denied' && wasBegunAfterDenial(evidence, executions)) {
      violate(`${first.tool} was executed (${key}) after it was denied.`)
    }
    if (isGated(first) && !isAllowed(evidence, first))
      violate(`${first.tool} was executed (${key}), and nobody allowed it.`)
    if (executions.length === 1) continue
    if (isOnce(first))
      violate(`${first.tool} was executed ${executions.length} times (${key}), although onInterrupted is 'fail'.`)
    const last = Math.max(...executions.map(({ time }) => time))
    const inPeace = executions.filter((execution) => !wasDisturbed(evidence, execution, last))
    if (inPeace.length > 1) {
      violate(
        `${first.tool} was executed ${executions.length} times (${key}): nothing had happened to ${told(inPeace, evidence)}.`,
      )
    } else repeats += executions.length - 1
  }
  return { violations, repeats }
}

const told = (executions: readonly JournalEntry[], evidence: Evidence): string =>
  executions.map((execution) => `${workerOf(evidence, execution)} at ${execution.time}`).join(', ')

function isOnce({ tool }: JournalEntry): boolean {
  return tool === 'once'
}

function isGated({ tool }: JournalEntry): boolean {
  return 'requiresApproval' in (toolKinds[tool as keyof typeof toolKinds] ?? {})
}

/** Whether somebody tried to approve it, or another call of its tool in the chat: that may have been for all of them. */
function isAllowed({ book, chats }: Evidence, { key, chatId, tool }: JournalEntry): boolean {
  if (book.decisions.some(({ callId, approved, heard }) => callId === key && approved && heard !== 'refused'))
    return true
  const chat = chats.find(({ row }) => row.id === chatId)
  return (chat?.messages ?? []).some(({ toolCalls }) =>
    toolCalls.some(({ name, approval }) => name === tool && approval === 'remembered'),
  )
}

/** One that was interrupted may be denied afterwards; a process that was stopped between the start and the execution hears of nothing. */
function wasBegunAfterDenial(evidence: Evidence, executions: readonly JournalEntry[]): boolean {
  const { decisions } = evidence.book
  return executions.some((execution) => {
    const { key, time } = execution
    const isDenied = decisions.some(
      (one) => one.callId === key && !one.approved && one.heard === 'accepted' && one.at < time,
    )
    return isDenied && !wasDisturbed(evidence, execution, time)
  })
}

/** Numbers of processes are used again. */
function workerOf({ lives }: Evidence, { pid, time }: JournalEntry): string {
  return (
    lives.find((life) => life.pid === pid && life.from <= time && (life.to ?? time) >= time)?.name ?? `process ${pid}`
  )
}

/** Whether its process may have been unable to store the result. */
function wasDisturbed(evidence: Evidence, execution: JournalEntry, until: number): boolean {
  const { tally, stalls, silences, lives, database } = evidence
  const worker = workerOf(evidence, execution)
  const from = execution.time - slackMs
  const meets = (one: { readonly from: number; readonly to: number }) => one.from <= until && one.to >= from
  const life = lives.find(({ name }) => name === worker)
  if (life === undefined || (life.to !== null && life.to <= until)) return true
  // Whoever is stopped in a transaction of SQLite holds up everybody's.
  const frozen = database === 'sqlite' ? tally.freezes : tally.freezes.filter((freeze) => freeze.worker === worker)
  const stood = stalls.filter((stall) => stall.worker === worker)
  return [...frozen, ...stood, ...tally.outages, ...silences].some(meets)
}
