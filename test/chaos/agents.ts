import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { defineAgent, defineTool, type OnInterrupted } from '../../src/index.ts'

// What the chats of a chaos run are run by. An execution of a tool is a line of the ledger, written before it begins.

interface Kind {
  readonly ms: number
  readonly onInterrupted?: OnInterrupted
  readonly requiresApproval?: boolean
}

/** By their names; the model picks among them. */
export const toolKinds = {
  quick: { ms: 5 },
  slow: { ms: 350 },
  gated: { ms: 10, requiresApproval: true },
  once: { ms: 60, onInterrupted: 'fail' },
  unsure: { ms: 60, onInterrupted: 'ask' },
  /** For what is stopped. */
  long: { ms: 30_000 },
} as const satisfies Readonly<Record<string, Kind>>

export type ToolName = keyof typeof toolKinds

const tools = (Object.entries(toolKinds) as [ToolName, Kind][]).map(([name, { ms, ...more }]) =>
  defineTool({
    name,
    description: `Takes ${ms} ms.`,
    parameters: z.object({ of: z.string() }),
    async execute({ of }, { signal }) {
      await wait(ms, undefined, { signal })
      return `done for ${of}`
    },
    ...more,
  }),
)

/** Workers die by the dozen, so a turn may be begun often; a model that is silent is given up soon. */
const patient = { tools, attempts: 1_000, retries: 3, idleMs: 1_500, timeoutMs: 10_000 }

export const agents = [
  defineAgent({ name: 'inline', ...patient }),
  defineAgent({ name: 'queued', ...patient, toolExecution: 'queue' }),
]
