import type { ClaimsPort } from '../../src/loop/ports.ts'
import type { LoopPorts } from '../../src/loop/run-context.ts'
import { ringJob } from '../../workers/bell.ts'
import { configurationOf, helper, isGated, toolsOf } from './agent.ts'
import { modelOf, unlessAborted } from './model.ts'
import type { SimulatedProcess } from './process.ts'
import type { World } from './world.ts'

/** All that the loop touches outside itself, as one simulated process has it. */
export function portsOf(world: World, process: SimulatedProcess): LoopPorts {
  const pause = (ms: number) => new Promise<void>((resolve) => process.later(ms, resolve))
  const toolExecution = world.plan.toolQueue ? 'queue' : 'inline'
  const tools = toolsOf({
    begin: (context, kind) => world.monitor.begins(process, context, kind),
    die: ({ toolCall }) => {
      if (world.kills(toolCall.id)) process.crash()
    },
    pause: (kind) => pause(process.random() * (kind === 'slow' ? 60_000 : 3_000)),
  })
  return {
    claims: claimsOf(world, process),
    rows: process.statements.rows,
    bell: {
      ring: (chatId, queue) =>
        process.call(`ring for ${chatId}`, async () => world.redis.ring(chatId, queue, ringJob(chatId)), {
          statement: false,
        }),
    },
    events: { publish() {}, flush: async () => {}, forget: async () => {} },
    // Its tools attach nothing.
    files: { store: async () => [], keep: async () => {}, purge: async () => {} },
    clock: {
      now: () => new Date(process.clocks.wall()),
      random: process.random,
      wait: (ms, signal) => unlessAborted(process, ms, signal),
      newId: () => world.newId('id'),
      timers: timersOf(process),
    },
    observe() {},
    within: (_step, work) => work(() => {}),
    content: () => null,
    configure: async ({ id }) => configurationOf(modelOf(world, process, id), tools, toolExecution),
    chatOf: () => null,
    records: noRecords,
    agentNamed: (name) => (name === helper.name ? helper : null),
    requiresApproval: (_chat, name) => isGated(name),
    tellTurnEnd: async () => {},
  }
}

/** The claims of a process; it is seen whose they are, and whether what is aborted ends. */
function claimsOf(world: World, process: SimulatedProcess): ClaimsPort {
  return {
    async take(chatId, reason, deathsBelow) {
      const taken = await process.claims.take(chatId, reason, deathsBelow)
      if (taken.kind === 'refused') return taken
      const { signal, claimId } = taken.claim
      world.monitor.goesBy(process, taken.claim, deathsBelow)
      signal.addEventListener('abort', () => world.monitor.deadlines.aborted(process, chatId, claimId))
      return taken
    },
  }
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
