import { ConfigurationError } from '../errors.ts'
import type { Agent } from './agent.ts'
import { repeated } from './define-agent.ts'
import type { Tool } from './tool.ts'

/**
 * The tools that a chat of this agent can use in this process, by name: the agent's, and those that the application
 * brought. The same tool may stand in both.
 * @param agent null for a chat without an agent.
 * @throws {ConfigurationError} that names every name that two different tools have.
 */
export function toolRegistry(agent: Agent | null, extraTools: readonly Tool[] = []): ReadonlyMap<string, Tool> {
  const tools = [...new Set([...(agent?.tools ?? []), ...extraTools])]
  const clashes = repeated(tools.map((tool) => tool.name))
  if (clashes.length > 0) {
    const where = agent === null ? '' : ` for agent ${JSON.stringify(agent.name)}`
    throw new ConfigurationError(`More than one tool${where} is named ${clashes.join(', ')}: rename all but one.`)
  }
  return new Map(tools.map((tool) => [tool.name, tool]))
}

/**
 * The agents of this process, by name: those given, and those that their tools and the application's bring along.
 * @throws {ConfigurationError} that names every name that more than one agent has.
 */
export function agentRegistry(given: readonly Agent[], extraTools: readonly Tool[] = []): ReadonlyMap<string, Agent> {
  if (repeated(given.map(({ name }) => name)).length > 0) throw clash(given)
  const agents = new Set(given)
  // A set goes on to what is added to it meanwhile.
  for (const { agents: brought } of extraTools) for (const agent of brought) agents.add(agent)
  for (const { tools } of agents) for (const tool of tools) for (const agent of tool.agents) agents.add(agent)
  if (repeated([...agents].map(({ name }) => name)).length > 0) throw clash([...agents])
  return new Map([...agents].map((agent) => [agent.name, agent]))
}

function clash(agents: readonly Agent[]): ConfigurationError {
  const names = repeated(agents.map(({ name }) => name))
  return new ConfigurationError(`More than one agent is named ${names.join(', ')}: rename all but one.`)
}
