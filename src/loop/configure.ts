import type { Settings } from '../../config/settings.ts'
import type { ChatRow } from '../../models/rows.ts'
import type { BlobStore } from '../attachments/store.ts'
import { ConfigurationError, InvalidToolChoiceError, MissingAgentError } from '../errors.ts'
import { openAiClient } from '../providers/openai.ts'
import type { ModelClient } from '../providers/provider.ts'
import type { Agent } from '../tools/agent.ts'
import { renderInstructions } from '../tools/instructions.ts'
import type { ModelContext } from '../tools/model-context.ts'
import { toolRegistry } from '../tools/registry.ts'
import { concurrencyOf, effectiveSettings, isChoiceWord, withOwn } from '../tools/settings.ts'
import type { Tool } from '../tools/tool.ts'
import { isRetryable } from './ending.ts'
import { type Configuration, chatOf, type RunOrder } from './run-context.ts'

/** What a process has to run chats with. */
export interface Equipment {
  readonly agents: ReadonlyMap<string, Agent>
  /** Stands in for the agent of chats that were made without one. */
  readonly defaultAgent: Agent
  readonly tools: readonly Tool[]
  /** The model of chats and agents that name none. */
  readonly model: string | null
  /** Where the bytes of files are. */
  readonly store: BlobStore
  /** A client for a provider. @throws {ConfigurationError} when the process has none. */
  readonly clientFor: (provider: string, context: ModelContext | null) => ModelClient
  /** What a chat asks its models with, where the application says so. */
  readonly contextFor: (chat: ChatRow) => Promise<ModelContext | null>
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
 * @throws {InvalidToolChoiceError} when the tool that must be called is not offered.
 */
export async function configure(
  equipment: Equipment,
  chat: ChatRow,
  { caller }: Pick<RunOrder, 'caller'>,
): Promise<Configuration> {
  const agent = agentOf(equipment, chat)
  const model = chat.model ?? agent.model ?? equipment.model
  if (model === null) {
    throw new ConfigurationError(
      `Chat ${chat.id} names no model, neither does its agent, and none is configured: set THREADMILL_MODEL, ` +
        'or give the agent a model.',
      { chatId: chat.id },
    )
  }
  const own = withOwn(chat.settings, caller?.settings ?? {})
  const settings = effectiveSettings(own, agent)
  const context = caller?.context ?? (await equipment.contextFor(chat))
  const clientFor = clientsOf(equipment, agent, context)
  const provider = chat.provider ?? agent.provider
  const callers = (caller?.tools ?? []).map((tool) => [tool.name, tool] as const)
  const kept = new Map([...toolRegistry(agent, equipment.tools), ...callers])
  const tools = offered({ id: chat.id, names: own.tools }, agent, kept)
  requireChoice(chat.id, settings.toolOptions?.choice, tools)
  const client = context?.client ?? clientFor(provider)
  return {
    agent,
    model,
    client,
    clientFor: (name = client.provider) => clientFor(name),
    instructions: await renderInstructions(agent, { ...chatOf({ chat }), inputs: chat.inputs }, isRetryable),
    ownInstructions: caller?.instructions ?? null,
    settings,
    headers: { ...agent.headers, ...context?.headers, ...caller?.headers },
    store: equipment.store,
    converters: [...agent.converters, ...(caller?.converters ?? [])],
    rounds: settings.toolOptions?.rounds ?? agent.rounds,
    concurrency: concurrencyOf(settings.toolOptions, agent.concurrency),
    compaction: settings.compaction || null,
    tools,
    kept,
  }
}

/** The context's client, else the agent's own, else the configured one: both with the key and endpoint that the context says. */
function clientsOf(
  equipment: Equipment,
  agent: Agent,
  context: ModelContext | null,
): (provider: string) => ModelClient {
  return (provider) => {
    if (context?.client?.provider === provider) return context.client
    if (agent.client !== null && agent.client.provider === provider) return accessedBy(agent.client, context)
    return equipment.clientFor(provider, context)
  }
}

/**
 * An agent's own client as a context has it. Never the client as it is where that has a key or an endpoint of its own: a tenant
 * would be served on another's account.
 * @throws {ConfigurationError} for a client that can't take them.
 */
function accessedBy(client: ModelClient, context: ModelContext | null): ModelClient {
  const { apiKey, baseURL, organization, project } = context ?? {}
  const access = { apiKey, baseURL, organization, project }
  if (Object.values(access).every((value) => value === undefined)) return client
  if (client.withAccess !== undefined) return client.withAccess(access)
  throw new ConfigurationError(
    `The agent's own client of provider ${JSON.stringify(client.provider)} has no withAccess(), so the chat's context can't give it ` +
      'a key or an endpoint: give that method to it, or a client to the context.',
  )
}

/** @throws {InvalidToolChoiceError} for the name of a tool that is not offered. */
function requireChoice(chatId: string, choice: string | undefined, tools: ReadonlyMap<string, Tool>): void {
  if (choice === undefined || isChoiceWord(choice) || tools.has(choice)) return
  throw new InvalidToolChoiceError(
    `Chat ${chatId} must call tool ${JSON.stringify(choice)}, which it does not offer. It offers: ${[...tools.keys()].join(', ') || 'none'}.`,
    { chatId },
  )
}

/** Every tool that a chat can have in this process, by name; none for a chat whose agent it lacks. */
export function toolsOf(equipment: Equipment, chat: ChatRow): ReadonlyMap<string, Tool> {
  const agent = chat.agent === null ? equipment.defaultAgent : equipment.agents.get(chat.agent)
  return agent === undefined ? new Map() : toolRegistry(agent, equipment.tools)
}

/** The clients that settings alone give: OpenAI, or whatever speaks its protocol at the base URL. */
export function defaultClients(settings: Pick<Settings, 'openaiApiKey' | 'openaiBaseUrl'>): Equipment['clientFor'] {
  let openai: ModelClient | null = null
  return (provider, context) => {
    if (provider !== 'openai') {
      throw new ConfigurationError(
        `There is no provider ${JSON.stringify(provider)}: give its agent a client of its own.`,
      )
    }
    const { organization, project } = context ?? {}
    // The house's key goes to the house's endpoint only.
    const ownKey = context?.baseURL === undefined ? settings.openaiApiKey : null
    const apiKey = context?.apiKey ?? ownKey
    const baseURL = context?.baseURL ?? settings.openaiBaseUrl
    if (apiKey === null && baseURL === null) {
      throw new ConfigurationError(
        'No model can be asked: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that wants none.',
      )
    }
    const made = () =>
      openAiClient({ apiKey: apiKey ?? '', ...(baseURL === null ? {} : { baseURL }), organization, project })
    if (context !== null) return made()
    openai ??= made()
    return openai
  }
}

/** The tools that the model is offered: those that the chat names, else all of its agent. */
function offered(
  chat: { readonly id: string; readonly names: readonly string[] | undefined },
  agent: Agent,
  known: ReadonlyMap<string, Tool>,
): ReadonlyMap<string, Tool> {
  const { id, names } = chat
  if (names === undefined) return toolRegistry(agent)
  const missing = names.filter((name) => !known.has(name))
  if (missing.length > 0) {
    throw new MissingAgentError(
      `This process has no tool ${missing.join(', ')}, which chat ${id} was given. Pass it to connect({ tools }); ` +
        'a worker that has it can go on.',
      { chatId: id },
    )
  }
  return new Map([...known].filter(([name]) => names.includes(name)))
}
