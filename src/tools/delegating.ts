import * as z from 'zod'
import type { ChatRow, JsonObject, ToolCallRow } from '../../models/rows.ts'
import { pauseOf } from '../../models/waiting.ts'
import { ArgumentError, ConfigurationError } from '../errors.ts'
import type { Agent } from './agent.ts'
import { waitMs } from './definition.ts'
import { checkInputs, storedInstructions } from './instructions.ts'
import { later, Pause, parsed } from './pausing.ts'
import { jsonObject } from './settings.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from './text-limit.ts'
import type { DelegateOptions, TransferOptions, Transferring } from './tool.ts'

/** Chats above a sub-chat, at most: an agent that delegates to itself would never end. */
const MOST_ABOVE = 8

/** What a call that delegates or transfers needs of the run around it. */
export interface DelegationContext {
  readonly agentNamed: (name: string) => Agent | null
  /** The chat of the call. */
  readonly parent: Pick<ChatRow, 'id' | 'owner' | 'rootId' | 'depth'>
  readonly newId: () => string
  readonly now: () => Date
  /** Errors of an agent's own functions that come out as they are. */
  readonly isPassable: (error: unknown) => boolean
}

const word = z.string().min(1).max(255)
const agentOrName = z
  .union([word, z.looseObject({ name: word })])
  .transform((agent) => (typeof agent === 'string' ? agent : agent.name))
const delegateSchema = z.strictObject({
  agent: agentOrName,
  message: z.string().min(1).refine(isWithinLimit, `at most ${TEXT_LIMIT_BYTES} bytes`),
  inputs: jsonObject.nullish(),
  expiresMs: waitMs.optional(),
})

const transferSchema = z.strictObject({
  agent: agentOrName,
  inputs: jsonObject.nullish(),
  message: z.string().min(1).optional(),
})

/** What a tool returned for its chat to go to another agent. */
export class TransferResult implements Transferring {
  readonly agent: string
  readonly inputs: JsonObject | null
  readonly message: string

  constructor(agent: string, inputs: JsonObject | null, message: string) {
    this.agent = agent
    this.inputs = inputs
    this.message = message
  }
}

/** The result of a call that transfers its chat. */
export async function transfer(
  call: Readonly<ToolCallRow>,
  options: TransferOptions,
  context: DelegationContext,
): Promise<TransferResult> {
  const { agent: name, inputs = null, message } = parsed(transferSchema, options, 'transfer')
  await takeInputs(requireAgent(name, call, context), inputs, call)
  return new TransferResult(name, inputs, message ?? `Agent ${name} goes on with the conversation.`)
}

/** The pause of a call that another agent is to answer, with the chat that it is to do so in. */
export async function delegate(
  call: Readonly<ToolCallRow>,
  options: DelegateOptions,
  context: DelegationContext,
): Promise<Pause> {
  const { agent: name, message, inputs = null, expiresMs } = parsed(delegateSchema, options, 'delegate')
  const { parent } = context
  const agent = requireAgent(name, call, context)
  requireRoom(name, call, parent.depth)
  await takeInputs(agent, inputs, call)
  const id = context.newId()
  const instructions = await storedInstructions(agent, { id, owner: parent.owner, inputs }, context.isPassable)
  const { requests } = pauseOf(call)
  const subChat = { id, agent: name, expiresAt: later(context.now(), expiresMs) }
  const state = { ...(requests === undefined ? {} : { requests }), subChat }
  return new Pause(id, state, {
    ...{ id, agent: name, messageId: context.newId(), message, inputs, instructions, parent },
  })
}

function requireAgent(name: string, { chatId, name: tool }: ToolCallRow, { agentNamed }: DelegationContext): Agent {
  const agent = agentNamed(name)
  if (agent !== null) return agent
  throw new ConfigurationError(
    `Tool ${tool} names agent ${JSON.stringify(name)}, which this process does not have: give it to the tool's \`agents\`, or to connect({ agents }).`,
    { chatId },
  )
}

function requireRoom(name: string, { chatId, name: tool }: ToolCallRow, depth: number): void {
  if (depth < MOST_ABOVE) return
  throw new ConfigurationError(
    `Tool ${tool} can't delegate to agent ${JSON.stringify(name)}: chat ${chatId} has ${MOST_ABOVE} chats above it already. Does an agent delegate to itself?`,
    { chatId },
  )
}

async function takeInputs(agent: Agent, inputs: JsonObject | null, { chatId, name }: ToolCallRow): Promise<void> {
  try {
    await checkInputs(agent, inputs, `Tool ${name}`)
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error
    throw new ArgumentError(error.message, { chatId })
  }
}
