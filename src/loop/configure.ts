import type { Settings } from '../../config/settings.ts'
import type { ChatRow } from '../../models/rows.ts'
import { ConfigurationError, MissingAgentError } from '../errors.ts'
import { openAiClient } from '../providers/openai.ts'
import type { ModelClient } from '../providers/provider.ts'
import type { Agent } from '../tools/agent.ts'
import { toolRegistry } from '../tools/registry.ts'
import type { Tool } from '../tools/tool.ts'
import type { Configuration, RunOrder } from './run-context.ts'

/** What a process has to run chats with. */
export interface Equipment {
  readonly agents: ReadonlyMap<string, Agent>
  /** Stands in for the agent of chats that were made without one. */
  readonly defaultAgent: Agent
  readonly tools: readonly Tool[]
  /** The model of chats and agents that name none. */
  readonly model: string | null
  /** A client for a provider. @throws {ConfigurationError} when the process has none. */
  readonly clientFor: (provider: string) => ModelClient
}

/** The agent of a chat. @throws {MissingAgentError} when this process does not have it. */
export function agentOf(equipment: Equipment, chat: ChatRow): Agent {
  if (chat.agent === null) return equipment.defaultAgent
  const agent = equipment.agents.get(chat.agent)
  if (agent !== undefined) return agent
  throw new MissingAgentError(
    `This process has no agent ${JSON.stringify(chat.agent)}, which chat ${chat.id} needs. Give it to connect({ agents }).`,
    { chatId: chat.id },
  )
}

/**
 * What a chat comes down to in this process: its own settings before its agent's, its agent's before the configured ones.
 * @throws {MissingAgentError} for an agent or a tool that another process may have.
 * @throws {ConfigurationError} when there is no model to ask, or no client for its provider.
 */
export function configure(equipment: Equipment, chat: ChatRow, order: Pick<RunOrder, 'tools'>): Configuration {
  const agent = agentOf(equipment, chat)
  const model = chat.model ?? agent.model ?? equipment.model
  if (model === null) {
    throw new ConfigurationError(
      `Chat ${chat.id} names no model, neither does its agent, and none is configured: set THREADMILL_MODEL, ` +
        'or give the agent a model.',
      { chatId: chat.id },
    )
  }
  const provider = chat.provider ?? agent.provider
  const own = agent.client
  const clients = (name = provider) => (own !== null && own.provider === name ? own : equipment.clientFor(name))
  return {
    agent,
    model,
    client: clients(),
    instructions: agent.instructions,
    temperature: chat.settings.temperature ?? agent.temperature,
    maxOutputTokens: chat.settings.maxOutputTokens ?? agent.maxOutputTokens,
    compaction: (chat.settings.compaction ?? agent.compaction) || null,
    fallbacks: chat.settings.fallbacks ?? agent.fallbacks,
    clientFor: clients,
    tools: offered(equipment, chat, agent, order.tools ?? []),
  }
}

/** Every tool that a chat can have in this process, by name; none for a chat whose agent it lacks. */
export function toolsOf(equipment: Equipment, chat: ChatRow): ReadonlyMap<string, Tool> {
  const agent = chat.agent === null ? equipment.defaultAgent : equipment.agents.get(chat.agent)
  return agent === undefined ? new Map() : toolRegistry(agent, equipment.tools)
}

/** The clients that settings alone give: OpenAI, or whatever speaks its protocol at the base URL. */
export function defaultClients(
  settings: Pick<Settings, 'openaiApiKey' | 'openaiBaseUrl'>,
): (provider: string) => ModelClient {
  let openai: ModelClient | null = null
  return (provider) => {
    if (provider !== 'openai') {
      throw new ConfigurationError(
        `There is no provider ${JSON.stringify(provider)}: give its agent a client of its own.`,
      )
    }
    const { openaiApiKey, openaiBaseUrl } = settings
    if (openaiApiKey === null && openaiBaseUrl === null) {
      throw new ConfigurationError(
        'No model can be asked: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that wants none.',
      )
    }
    openai ??= openAiClient({
      apiKey: openaiApiKey ?? '',
      ...(openaiBaseUrl === null ? {} : { baseURL: openaiBaseUrl }),
    })
    return openai
  }
}

/** The tools that the model is offered: those that the chat names, else all of its agent. */
function offered(equipment: Equipment, chat: ChatRow, agent: Agent, own: readonly Tool[]): ReadonlyMap<string, Tool> {
  const names = chat.settings.tools
  if (names === undefined) return toolRegistry(agent)
  const known = new Map([...toolRegistry(agent, equipment.tools), ...own.map((tool) => [tool.name, tool] as const)])
  const missing = names.filter((name) => !known.has(name))
  if (missing.length > 0) {
    throw new MissingAgentError(
      `This process has no tool ${missing.join(', ')}, which chat ${chat.id} was given. Pass it to connect({ tools }); ` +
        'a worker that has it can go on.',
      { chatId: chat.id },
    )
  }
  return new Map([...known].filter(([name]) => names.includes(name)))
}
