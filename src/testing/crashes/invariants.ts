import type { LoggedRequest } from '../request-log.ts'
import type { ToolExecution, TurnEnd } from './report.ts'
import type { ChatState, Snapshot } from './snapshot.ts'

/** What is known of a run. */
export interface RunFacts {
  readonly end: TurnEnd
  /** As it was when the process was dead and no other had begun; null where none died. */
  readonly atDeath: Snapshot | null
  readonly final: Snapshot
  readonly executions: readonly ToolExecution[]
  readonly requests: readonly LoggedRequest[]
}

/** What the run without a crash came to, which the others are measured by. */
export interface Usual {
  /** The questions of the chat, in their order. */
  readonly questions: readonly (string | null)[]
  /** The most executions of one call, by tool: a tool that asks its user runs again. */
  readonly executions: ReadonlyMap<string, number>
  /** Requests that were made more than once, as after a model's failure. */
  readonly repeated: number
}

/** What a run that nobody died in says of all the others. */
export function usualOf(facts: RunFacts): Usual {
  const executions = new Map<string, number>()
  for (const [, [first, ...more]] of byKey(facts.executions)) {
    if (first !== undefined) executions.set(first.tool, Math.max(executions.get(first.tool) ?? 0, 1 + more.length))
  }
  return { questions: questionsOf(facts.final), executions, repeated: repeatedOf(facts.requests) }
}

/**
 * What is wrong with a run; empty when nothing is. (E110, E111)
 * @param usual null for the run that the others are measured by.
 * @param once the tools that are never to be executed again.
 */
export function problemsOf(facts: RunFacts, usual: Usual | null, once: readonly string[]): string[] {
  const { end, final } = facts
  return [
    ...endProblems(end),
    ...final.chats.flatMap((state) => [
      ...transcriptProblems(state),
      ...unansweredCalls(state),
      ...leftOver(state, end),
    ]),
    ...final.usages
      .filter(({ status }) => status === 'pending')
      .map(({ model }) => `An attempt at the model ${model} is still written down as under way.`),
    ...(usual === null ? [] : [...questionProblems(final, usual), ...requestProblems(facts, usual)]),
    ...executionProblems(facts, usual, once),
  ]
}

function endProblems(end: TurnEnd): string[] {
  switch (end) {
    case 'answered':
    case 'failed':
    case 'cancelled':
      return []
    case 'waiting':
      return ['The turn has no end: it waits for a decision, an answer or a task that drive() does not give.']
    case 'stuck':
      return ['The turn did not end within the limit: nobody goes on with it, or it takes longer than limitMs.']
    default:
      return end satisfies never
  }
}

/** Positions without a gap, each result behind its call, and nothing answered twice. */
export function transcriptProblems({ row, messages }: ChatState): string[] {
  const problems: string[] = []
  const transcript = messages.filter(({ role, summaryThrough }) => role !== 'system' && summaryThrough === null)
  const calls = transcript.flatMap(({ toolCalls }) => toolCalls)
  const ids = new Set(messages.map(({ id }) => id))
  if (ids.size < messages.length) problems.push('A message is in the transcript twice.')
  for (const [at, message] of messages.entries()) {
    if (message.position !== at) problems.push(`Position ${at} of the transcript is not there.`)
  }
  if (row.nextPosition !== messages.length) problems.push('The next position does not follow the last message.')
  for (const [at, message] of transcript.entries()) {
    const next = transcript[at + 1]
    if (message.role === 'tool' && calls.filter(({ resultId }) => resultId === message.id).length !== 1) {
      problems.push(`The result at position ${message.position} is not that of one call.`)
    }
    if (message.role !== 'assistant') continue
    const results = transcript.slice(at + 1, at + 1 + message.toolCalls.length).map(({ id }) => id)
    for (const call of message.toolCalls) {
      if (call.resultId !== null && !results.includes(call.resultId))
        problems.push(`The result of ${call.name} is not behind its round.`)
    }
    if (message.toolCalls.length === 0 && next?.role === 'assistant') {
      problems.push(`The answer at position ${message.position} is followed by another.`)
    }
  }
  return problems
}

/** Calls without a result. */
export function unansweredCalls({ messages }: ChatState): string[] {
  const open = messages.flatMap(({ toolCalls }) => toolCalls).filter(({ resultId }) => resultId === null)
  return open.map(({ name }) => `The call of ${name} has no result.`)
}

function leftOver({ row, queued }: ChatState, end: TurnEnd): string[] {
  // What a turn without an end holds is told by that.
  if (end === 'stuck' || end === 'waiting') return []
  return [
    ...(row.claimedBy === null ? [] : ['The chat is still claimed.']),
    ...(row.wantedAt === null ? [] : ['The chat is still wanted.']),
    ...(queued === 0 ? [] : [`The queue still holds ${queued} messages.`]),
  ]
}

function questionProblems(final: Snapshot, usual: Usual): string[] {
  const questions = questionsOf(final)
  if (JSON.stringify(questions) === JSON.stringify(usual.questions)) return []
  return [`The transcript has other questions than without a crash: ${JSON.stringify(questions)}.`]
}

/** A request is made again only where the crash left one without its answer. */
function requestProblems({ atDeath, requests }: RunFacts, usual: Usual): string[] {
  const open = atDeath?.usages.filter(({ messageId }) => messageId === null).length ?? 0
  const repeated = repeatedOf(requests) - usual.repeated
  if (repeated <= open) return []
  return [
    `The model was asked again for what it had answered: ${repeated} requests too many, of which the crash explains ${open}.`,
  ]
}

function executionProblems(
  { atDeath, final, executions }: RunFacts,
  usual: Usual | null,
  once: readonly string[],
): string[] {
  const calls = new Set(callsOf(final).map(({ id }) => id))
  const cutOff = new Set(
    callsOf(atDeath)
      .filter(({ startedAt, resultId }) => startedAt !== null && resultId === null)
      .map(({ id }) => id),
  )
  return [...byKey(executions)].flatMap(([key, [first, ...more]]) => {
    if (first === undefined) return []
    const { tool } = first
    if (!calls.has(key)) return [`${tool} was executed under the key ${key}, which is that of no call.`]
    const times = 1 + more.length
    const allowed = usual?.executions.get(tool) ?? (usual === null ? times : 1)
    const isOnce = once.includes(tool)
    if (times <= allowed + (cutOff.has(key) && !isOnce ? 1 : 0)) return []
    const why = isOnce ? `although its onInterrupted is 'fail'` : 'although no crash cut it off'
    return [`${tool} was executed ${times} times under the key ${key}, ${why}.`]
  })
}

const questionsOf = ({ chats }: Snapshot): (string | null)[] =>
  (chats[0]?.messages ?? []).filter(({ role }) => role === 'user').map(({ content }) => content)

const callsOf = (snapshot: Snapshot | null) =>
  (snapshot?.chats ?? []).flatMap(({ messages }) => messages.flatMap(({ toolCalls }) => toolCalls))

function byKey(executions: readonly ToolExecution[]): Map<string, ToolExecution[]> {
  const keys = new Map<string, ToolExecution[]>()
  for (const execution of executions) keys.set(execution.key, [...(keys.get(execution.key) ?? []), execution])
  return keys
}

function repeatedOf(requests: RunFacts['requests']): number {
  const distinct = new Set(requests.map(({ model, messages }) => JSON.stringify([model, messages])))
  return requests.length - distinct.size
}
