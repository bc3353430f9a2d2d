import * as z from 'zod'
import { diskStore } from '../../src/attachments/store.ts'
import { defineAgent, defineTool, ToolError } from '../../src/index.ts'
import type { Configuration } from '../../src/loop/run-context.ts'
import type { ModelClient } from '../../src/providers/provider.ts'
import { effectiveSettings } from '../../src/tools/settings.ts'
import type { Tool, ToolContext } from '../../src/tools/tool.ts'
import type { CallKind } from './plan.ts'

/** What a process does when a tool of its runs: `act` leaves its effect on the world, once each time it is called. */
export interface ToolWorld {
  /** @returns what leaves the effect. */
  begin(context: ToolContext, kind: ToolKind): () => void
  /** Ends the process, the first few times that a call has it. */
  die(context: ToolContext): void
  pause(kind: ToolKind): Promise<void>
}

export type ToolKind = Exclude<CallKind, 'unknown' | 'malformed'>

const declared: Readonly<Record<ToolKind, Partial<Parameters<typeof defineTool>[0]>>> = {
  free: {},
  slow: {},
  gated: { requiresApproval: true },
  reports: {},
  raises: {},
  once: { onInterrupted: 'fail' },
  unsure: { onInterrupted: 'ask' },
  question: {},
  deadly: {},
  delegates: {},
}
const kinds = Object.keys(declared) as ToolKind[]

const parameters = z.object({})
const outOfWorld = () => Promise.reject(new ToolError('no process runs this'))
const tools = new Map(
  kinds.map((name) => [
    name,
    defineTool({ name, description: name, parameters, execute: outOfWorld, ...declared[name] }),
  ]),
)
const noClient: ModelClient = { provider: 'openai', attempt: outOfWorld }
const common = { client: noClient, tools: [...tools.values()], retries: 1, concurrency: 2 }
const agents = {
  inline: defineAgent({ name: 'any', ...common }),
  queue: defineAgent({ name: 'any', ...common, toolExecution: 'queue' }),
}
/** The agent of sub-chats. */
export const helper = defineAgent({ name: 'helper', ...common })
const store = diskStore('nowhere')

/** The tools as one process has them. */
export function toolsOf(world: ToolWorld): ReadonlyMap<string, Tool> {
  return new Map(
    [...tools].map(([kind, tool]) => [kind, { ...tool, execute: (_args, context) => execute(world, kind, context) }]),
  )
}

async function execute(world: ToolWorld, kind: ToolKind, context: ToolContext): Promise<unknown> {
  if (kind === 'delegates') return context.delegate({ agent: helper, message: 'Find it out.' })
  if (kind === 'question') await context.ask({ message: 'How many?', fields: [{ name: 'n', type: 'integer' }] })
  const act = world.begin(context, kind)
  await world.pause(kind)
  act()
  if (kind === 'deadly') world.die(context)
  await world.pause(kind)
  if (kind === 'reports') throw new ToolError('no such order')
  if (kind === 'raises') throw new ToolBug('a bug')
  return 'done'
}

/** What a tool throws that is none of the library's errors. */
export class ToolBug extends Error {}

/** The agent of a chat, asking through this client; all of them have the same tools. */
export function configurationOf(
  client: ModelClient,
  tools: ReadonlyMap<string, Tool>,
  toolExecution: 'inline' | 'queue',
): Configuration {
  const agent = agents[toolExecution]
  return {
    ...{ agent, settings: effectiveSettings({}, agent), store, client, tools, kept: tools },
    model: 'any-model',
    instructions: 'Be brief.',
    ownInstructions: null,
    headers: {},
    converters: [],
    rounds: agent.rounds,
    concurrency: agent.concurrency,
    compaction: null,
    clientFor: () => client,
  }
}

/** Whether each call of such a tool waits for a person. */
export function isGated(name: string): boolean {
  return name === 'gated'
}
