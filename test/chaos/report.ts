import Table from 'cli-table3'
import { toolFindings } from './checks/tools.ts'
import type { Rule, Violation } from './evidence.ts'
import type { ModelFault } from './model.ts'
import type { PartResult } from './part.ts'
import { percentile, recoveryTimes } from './recovery.ts'
import type { Injected } from './tally.ts'

/** One part, or all parts together. */
export interface Summary {
  readonly title: string
  readonly injected: ReadonlyMap<Injected | ModelFault, number>
  /** Turns that were begun; the answers, and the chats that ended in a failure. */
  readonly turns: number
  readonly answers: number
  readonly failures: number
  readonly requests: number
  readonly calls: number
  /** Decisions and cancels that were accepted. */
  readonly approvals: number
  readonly cancels: number
  /** Executions of a call beyond its first that the guarantees allow. */
  readonly repeats: number
  /** In ms, the shortest first. */
  readonly recoveries: readonly number[]
  readonly violations: readonly Violation[]
}

export function summaryOf({ evidence, model, tally }: PartResult, violations: readonly Violation[]): Summary {
  const { chats, book, ledger, requests, database } = evidence
  const messages = chats.flatMap((chat) => chat.messages)
  return {
    title: database === 'mysql' ? 'MariaDB' : 'SQLite',
    injected: new Map([...tally.counts, ...model.injected]),
    turns: chats.reduce((sum, { row }) => sum + row.turn, 0),
    answers: messages.filter((message) => message.role === 'assistant' && message.toolCalls.length === 0).length,
    failures: chats.filter(({ row }) => row.failure !== null).length,
    requests: requests.length,
    calls: new Set(ledger.map(({ key }) => key)).size,
    approvals: book.decisions.filter(({ approved, heard }) => approved && heard === 'accepted').length,
    cancels: book.cancels.filter(({ heard }) => heard === 'accepted').length,
    repeats: toolFindings(evidence).repeats,
    recoveries: recoveryTimes(evidence),
    violations,
  }
}

export function together(summaries: readonly Summary[]): Summary {
  const sum = (of: (summary: Summary) => number) => summaries.reduce((total, summary) => total + of(summary), 0)
  const injected = new Map<Injected | ModelFault, number>()
  for (const summary of summaries) {
    for (const [kind, count] of summary.injected) injected.set(kind, (injected.get(kind) ?? 0) + count)
  }
  return {
    title: 'Together',
    injected,
    turns: sum(({ turns }) => turns),
    answers: sum(({ answers }) => answers),
    failures: sum(({ failures }) => failures),
    requests: sum(({ requests }) => requests),
    calls: sum(({ calls }) => calls),
    approvals: sum(({ approvals }) => approvals),
    cancels: sum(({ cancels }) => cancels),
    repeats: sum(({ repeats }) => repeats),
    recoveries: summaries.flatMap(({ recoveries }) => recoveries).sort((one, other) => one - other),
    violations: summaries.flatMap(({ violations }) => violations),
  }
}

const faultNames: Readonly<Record<Injected | ModelFault, string>> = {
  kill: 'SIGKILL of a worker',
  freeze: 'SIGSTOP past the claim, SIGCONT',
  hold: 'statement held up, and the chat written to',
  'restart-redis': 'Redis killed and restarted, empty',
  'restart-database': 'database killed and restarted',
  flush: 'FLUSHALL',
  pause: 'CLIENT PAUSE',
  'refuse-redis': 'connections to Redis refused',
  'refuse-database': 'connections to the database refused',
  'slow-redis': 'slow network to Redis',
  'slow-database': 'slow network to the database',
  'cut-redis': 'cut network to Redis',
  'cut-database': 'cut network to the database',
  'kill-connections': 'database connections killed',
  'lost-commit': 'connection lost at a COMMIT',
  deadlock: 'deadlock',
  'full-disk': 'disk full',
  'model-429': 'model: 429',
  'model-500': 'model: 500',
  'model-half': 'model: half a stream',
  'model-nothing': 'model: nothing',
}

/** What has a row of its own. */
const tabled: readonly Rule[] = ['message', 'answer', 'claim', 'tool']

/** The table of a run, a column for each summary. */
export function tableOf(summaries: readonly Summary[], markdown: boolean): string {
  const rows: [string, ...string[]][] = [
    ...(Object.keys(faultNames) as (Injected | ModelFault)[])
      .filter((kind) => summaries.some(({ injected }) => injected.has(kind)))
      .map((kind) => rowOf(faultNames[kind], ({ injected }) => injected.get(kind) ?? 0)),
    rowOf('turns', ({ turns }) => turns),
    rowOf('answers', ({ answers }) => answers),
    rowOf('chats left with a failure', ({ failures }) => failures),
    rowOf('requests to the model', ({ requests }) => requests),
    rowOf('calls executed', ({ calls }) => calls),
    rowOf('approvals', ({ approvals }) => approvals),
    rowOf('cancels', ({ cancels }) => cancels),
    rowOf('losses', ({ violations }) => violations.filter(({ rule }) => rule === 'message').length),
    rowOf('doubles', ({ violations }) => violations.filter(({ rule }) => rule === 'answer' || rule === 'claim').length),
    rowOf('tool repeats inside the allowed window', ({ repeats }) => repeats),
    rowOf('tool repeats outside of it', ({ violations }) => violations.filter(({ rule }) => rule === 'tool').length),
    rowOf('other violations', ({ violations }) => violations.filter(({ rule }) => !tabled.includes(rule)).length),
    rowOf('time to recover, p50', ({ recoveries }) => seconds(percentile(recoveries, 0.5))),
    rowOf('time to recover, p99', ({ recoveries }) => seconds(percentile(recoveries, 0.99))),
  ]
  function rowOf(name: string, value: (summary: Summary) => number | string): [string, ...string[]] {
    return [name, ...summaries.map((summary) => String(value(summary)))]
  }
  const head = ['', ...summaries.map(({ title }) => title)]
  if (!markdown) {
    const table = new Table({ head, style: { head: [], border: [], compact: true } })
    table.push(...rows)
    return table.toString()
  }
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

function seconds(ms: number | null): string {
  return ms === null ? '-' : `${(ms / 1_000).toFixed(1)} s`
}
