import { type App, loadApp } from '../../cli/worker/app.ts'
import { ThreadmillError } from '../../errors.ts'
import { Threadmill } from '../../threadmill.ts'
import { agentRegistry } from '../../tools/registry.ts'
import { withJournal } from './journal.ts'
import type { Answer, LoadedApp, Order } from './messages.ts'
import { aroundStatements } from './statements.ts'
import { Trap } from './trap.ts'

// A worker process that is to die. Its parent sends orders over the channel between them, one at a time.

let mill: Threadmill | undefined
let trap: Trap | undefined
let swept: () => void = () => {}

async function connect({
  app,
  options,
  tablePrefix,
  journal,
}: Extract<Order, { kind: 'connect' }>): Promise<LoadedApp> {
  const loaded = withJournal(await loadApp(app, 'killAtEveryWrite({ app })'), journal)
  mill = await Threadmill.connect({
    ...options,
    ...loaded,
    onObservation: ({ type }) => {
      if (type === 'sweep.ended') swept()
    },
  })
  const set = new Trap(tablePrefix, () => process.kill(process.pid, 'SIGKILL'))
  trap = set
  aroundStatements(mill.sequelize, ({ sql, transaction }, send) => set.pass(sql, transaction, send))
  return { agents: loaded.agents.map(({ name }) => name), once: onceOf(loaded) }
}

function onceOf({ agents, tools }: App): string[] {
  const all = [...[...agentRegistry(agents, tools).values()].flatMap((agent) => agent.tools), ...tools]
  return [...new Set(all.filter(({ onInterrupted }) => onInterrupted === 'fail').map(({ name }) => name))]
}

/** Two sweeps: the first may have begun before. Whatever a ring that came twice has it look at is over then. */
async function standIdle(): Promise<void> {
  for (let sweeps = 0; sweeps < 2; sweeps++) {
    await new Promise<void>((resolve) => {
      swept = resolve
    })
  }
}

async function obey(order: Order): Promise<Answer> {
  switch (order.kind) {
    case 'connect':
      return { kind: 'connected', ...(await connect(order)) }
    case 'work':
      await mill?.startWorkers().ready()
      return { kind: 'working' }
    case 'set': {
      await standIdle()
      const writes = trap?.writes ?? []
      trap?.set(order.death)
      return { kind: 'set', writes }
    }
    default:
      return order satisfies never
  }
}

function answer(order: Order): void {
  obey(order)
    .catch((error: unknown): Answer => {
      const code = error instanceof ThreadmillError ? error.code : 'error'
      return { kind: 'failed', code, message: error instanceof Error ? error.message : String(error) }
    })
    .then((reply) => process.send?.(reply, () => {}))
}

// The test's process ends it; Ctrl-C in a terminal reaches every process of the group.
process.on('SIGINT', () => {})
// However its parent ended: a worker never outlives it.
process.on('disconnect', () => process.exit(1))
process.on('message', (order) => answer(order as Order))
