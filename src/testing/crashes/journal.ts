import { closeSync, openSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Agent } from '../../tools/agent.ts'
import type { Tool } from '../../tools/tool.ts'

/** A line of the journal. */
export interface JournalEntry {
  readonly at: 'begun' | 'returned'
  /** When, in ms since the epoch. */
  readonly time: number
  /** Tells the executions of one process apart. */
  readonly execution: number
  readonly pid: number
  readonly tool: string
  readonly key: string
  readonly chatId: string
}

/**
 * Agents and tools whose executions are written down, each before it begins and once it is over. A line is in the file when the call
 * returns, so a SIGKILL loses none.
 */
export function withJournal<App extends { readonly agents: readonly Agent[]; readonly tools: readonly Tool[] }>(
  app: App,
  file: string,
): App {
  const descriptor = openSync(file, 'a')
  process.once('exit', () => closeSync(descriptor))
  const write = (entry: Omit<JournalEntry, 'time'>): void => {
    writeSync(descriptor, `${JSON.stringify({ ...entry, time: Date.now() } satisfies JournalEntry)}\n`)
  }
  let executions = 0
  // One for each, since an agent or a tool that stands in two places must be the same in both.
  const agents = new Map<Agent, Agent>()
  const tools = new Map<Tool, Tool>()
  const agentOf = (agent: Agent): Agent =>
    remembered(agents, agent, () => ({ ...agent, tools: agent.tools.map(toolOf) }))
  const toolOf = (tool: Tool): Tool =>
    remembered(tools, tool, () => ({
      ...tool,
      agents: tool.agents.map(agentOf),
      async execute(args, context) {
        const { pid } = process
        const entry = {
          execution: ++executions,
          pid,
          tool: tool.name,
          key: context.idempotencyKey,
          chatId: context.chat.id,
        }
        write({ at: 'begun', ...entry })
        try {
          return await tool.execute(args, context)
        } finally {
          write({ at: 'returned', ...entry })
        }
      },
    }))
  return { ...app, agents: app.agents.map(agentOf), tools: app.tools.map(toolOf) }
}

/** Every line of the journal; none while there is no file. */
export async function readJournal(file: string): Promise<JournalEntry[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JournalEntry)
}

function remembered<T>(known: Map<T, T>, key: T, make: () => T): T {
  const value = known.get(key) ?? make()
  known.set(key, value)
  return value
}
