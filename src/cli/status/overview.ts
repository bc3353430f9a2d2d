import Table from 'cli-table3'
import type { Settings } from '../../../config/settings.ts'
import { migrationStatus } from '../../../models/migrator.ts'
import { type ChatTotals, chatStates, chatTotals } from '../../../models/overview.ts'
import type { QueueView } from '../../../workers/queue-view.ts'
import type { Cli, CommonOptions } from '../cli.ts'
import { withDatabase } from '../connect.ts'
import { type Seen, seeQueues } from './queues.ts'

interface Overview {
  /** Steps that the tables lack. */
  readonly pendingMigrations: readonly string[]
  /** Null while steps are missing. */
  readonly totals: ChatTotals | null
  readonly queues: Seen<readonly QueueView[]>
}

/** Shows how the chats and the queues stand. */
export async function showOverview(cli: Cli, settings: Settings, { json }: CommonOptions): Promise<void> {
  const [{ pendingMigrations, totals }, queues] = await Promise.all([
    withDatabase(settings, async (db) => {
      const steps = await migrationStatus(db.sequelize, settings.tablePrefix)
      const pending = steps.filter(({ appliedAt }) => appliedAt === null).map(({ name }) => name)
      return { pendingMigrations: pending, totals: pending.length > 0 ? null : await chatTotals(db) }
    }),
    seeQueues(settings, (views) => views.all()),
  ])
  const overview: Overview = { pendingMigrations, totals, queues }
  if (json) cli.json(asJson(overview))
  else show(cli, overview)
}

function asJson({ pendingMigrations, totals, queues }: Overview): object {
  return {
    migrations: { pending: pendingMigrations },
    chats: totals?.chats ?? null,
    oldestDueMs: totals?.oldestDueMs ?? null,
    alone: totals?.alone ?? null,
    setAside: totals?.setAside ?? null,
    queues: 'seen' in queues ? queues.seen : null,
    queuesProblem: 'problem' in queues ? queues.problem : null,
  }
}

function show(cli: Cli, { pendingMigrations, totals, queues }: Overview): void {
  if (pendingMigrations.length > 0) {
    cli.line(cli.paint('yellow', `The tables lack ${pendingMigrations.join(', ')}: threadmill migrate`))
  } else {
    cli.line('The tables are up to date.')
  }
  if (totals !== null) {
    const due = totals.oldestDueMs === null ? '' : `, the oldest for ${Math.round(totals.oldestDueMs / 1_000)} s`
    const table = plainTable(['chats', ''])
    for (const state of chatStates) table.push([state, `${totals.chats[state]}${state === 'due' ? due : ''}`])
    cli.line(`\n${table.toString()}`)
    if (totals.alone > 0) cli.line(cli.paint('yellow', `${chatsOf(totals.alone)} alone: processes died over them.`))
    if (totals.setAside > 0)
      cli.line(cli.paint('red', `${totals.setAside} of those that failed killed their processes.`))
  }
  if ('problem' in queues) {
    cli.line(`\nQueues: not seen, ${queues.problem}.`)
    return
  }
  const table = plainTable(['queue', 'waiting', 'active', 'delayed', 'workers'])
  for (const { queue, waiting, active, delayed, workers } of queues.seen) {
    table.push([queue, waiting, active, delayed, workers === null ? 'not known' : workersText(workers)])
  }
  cli.line(`\n${table.toString()}`)
}

const chatsOf = (count: number) => (count === 1 ? '1 chat runs' : `${count} chats run`)

function workersText(workers: readonly string[]): string {
  return workers.length === 0 ? 'none' : `${workers.length}: ${workers.join(', ')}`
}

/** Columns and nothing else, so that it can be piped. */
function plainTable(head: string[]): Table.Table {
  const none = [
    'top',
    'top-mid',
    'top-left',
    'top-right',
    'bottom',
    'bottom-mid',
    'bottom-left',
    'bottom-right',
  ] as const
  const inner = ['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'] as const
  const chars = Object.fromEntries([...none, ...inner].map((place) => [place, '']))
  return new Table({
    head,
    chars: { ...chars, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  })
}
