import type { RowsPort } from '../../src/loop/ports.ts'
import type { LoopPorts } from '../../src/loop/run-context.ts'
import { configurationOf, isGated, toolsOf } from './agent.ts'
import { modelOf, unlessAborted } from './model.ts'
import type { SimulatedProcess } from './process.ts'
import type { World } from './world.ts'

/** All that the loop touches outside itself, as one simulated process has it. */
export function portsOf(world: World, process: SimulatedProcess): LoopPorts {
  const pause = (ms: number) => new Promise<void>((resolve) => process.later(ms, resolve))
  const tools = toolsOf({
    begin: (context, kind) => world.monitor.begins(process, context, kind),
    pause: (kind) => pause(process.random() * (kind === 'slow' ? 60_000 : 3_000)),
  })
  return {
    claims: process.claims,
    rows: rowsOf(world, process),
    bell: {
      ring: (chatId, queue) =>
        process.call(`ring for ${chatId}`, async () => world.redis.ring(chatId, queue, chatId, true), {
          statement: false,
        }),
    },
    events: { publish() {}, flush: async () => {}, forget: async () => {} },
    // Its tools attach nothing.
    files: { store: async () => [], keep: async () => {}, purge: async () => {} },
    clock: {
      now: () => new Date(world.scheduler.now),
      random: process.random,
      wait: (ms, signal) => unlessAborted(process, ms, signal),
      newId: () => world.newId('id'),
      timers: timersOf(process),
    },
    observe() {},
    within: (_step, work) => work(() => {}),
    content: () => null,
    configure: async ({ id }) => configurationOf(modelOf(world, process, id), tools),
    chatOf: () => null,
    records: noRecords,
    agentNamed: () => null,
    requiresApproval: (_chat, name) => isGated(name),
    tellTurnEnd: async () => {},
  }
}

/** Each statement is waited for, can fail, and is watched. */
function rowsOf(world: World, process: SimulatedProcess): RowsPort {
  const names = Object.keys(world.statements.rows) as (keyof RowsPort)[]
  const rows = names.map((name) => {
    const statement = (...given: unknown[]) => {
      if (name === 'startToolCall') world.monitor.starts(process, (given[1] as { id: string }).id)
      const perform = world.statements.rows[name] as (...input: unknown[]) => Promise<unknown>
      return process.call(name, () => world.monitor.during(process, name, given, () => perform(...given)))
    }
    return [name, statement] as const
  })
  return Object.fromEntries(rows) as unknown as RowsPort
}

function timersOf(process: SimulatedProcess): LoopPorts['clock']['timers'] {
  return {
    setTimeout(callback, ms) {
      const timer = { isOver: false }
      process.later(ms, () => {
        if (!timer.isOver) callback()
      })
      return timer
    },
    clearTimeout(timer) {
      ;(timer as { isOver: boolean }).isOver = true
    },
  }
}

/** Only hooks ask for records, and there are none. */
const noRecords: LoopPorts['records'] = { message: () => unexpected(), queuedMessage: () => unexpected() }

function unexpected(): never {
  throw new Error('nobody asks for records here')
}
