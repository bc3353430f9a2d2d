import { ownerOf } from '../../models/owner.ts'
import type { JsonObject } from '../../models/rows.ts'
import { whyUnstorable } from '../../models/storable.ts'
import { ArgumentError, ConfigurationError, ThreadmillError } from '../errors.ts'
import type { Agent } from './agent.ts'
import type { ToolContext } from './tool.ts'

/** What instructions are made of. */
export interface InstructionContext<Inputs = never> {
  /** What the chat was given, as the agent's `inputs` schema reads it; `{}` without one. */
  readonly inputs: Inputs
  /** The chat that they are for. */
  readonly chat: ToolContext['chat']
}

/** Makes the instructions of one chat; null = none. It should only read: it may be called again at any time. */
export type RenderInstructions<Inputs = never> = (
  context: InstructionContext<Inputs>,
) => string | null | undefined | Promise<string | null | undefined>

/**
 * What is given to an agent's instructions, as it is stored: JSON, as the caller wrote it.
 * @throws {ArgumentError} for what the agent's schema does not take, and for anything where the agent takes nothing.
 */
export async function checkInputs(agent: Agent, inputs: JsonObject | null, what: string): Promise<void> {
  if (agent.inputs === null) {
    if (inputs === null) return
    throw new ArgumentError(`${what}: agent ${JSON.stringify(agent.name)} takes no inputs. Leave them out.`)
  }
  const read = await agent.inputs.validate(inputs ?? {})
  if (read.ok) return
  throw new ArgumentError(`${what}: agent ${JSON.stringify(agent.name)} can't take these inputs: ${read.message}`)
}

/** What is stored with a new chat of this agent as its system message; null = nothing. @throws as {@link renderInstructions} */
export async function storedInstructions(
  agent: Agent,
  { id, owner, inputs }: { readonly id: string; readonly owner: string | null; readonly inputs: JsonObject | null },
  isPassable: (error: unknown) => boolean,
): Promise<string | null> {
  if (agent.instructionsAt === 'run') return null
  return renderInstructions(agent, { id, agent: agent.name, owner: ownerOf(owner), inputs }, isPassable)
}

/**
 * The agent's instructions for one chat; null = none.
 * @throws {ConfigurationError} for stored inputs that the agent does not take (any more), for instructions that are no text, and
 *   for what the function threw, as its cause; errors that are Threadmill's or the database's come out as they are.
 */
export async function renderInstructions(
  agent: Agent,
  { inputs, ...chat }: ToolContext['chat'] & { readonly inputs: JsonObject | null },
  isPassable: (error: unknown) => boolean,
): Promise<string | null> {
  const { instructions } = agent
  if (typeof instructions !== 'function') return instructions
  const at = { chatId: chat.id }
  const read = agent.inputs === null ? { ok: true as const, value: {} } : await agent.inputs.validate(inputs ?? {})
  if (!read.ok) {
    throw new ConfigurationError(
      `The inputs of chat ${chat.id} are none that agent ${JSON.stringify(agent.name)} takes: ${read.message} Set others by withInputs().`,
      at,
    )
  }
  const said = await called(instructions, { inputs: read.value as never, chat }, isPassable, agent.name)
  const why = typeof said === 'string' ? whyUnstorable(said) : null
  if (why !== null) {
    throw new ConfigurationError(
      `The text that agent ${JSON.stringify(agent.name)} is instructed with for chat ${chat.id} ${why}.`,
      at,
    )
  }
  if (said === null || said === undefined || typeof said === 'string') return said ?? null
  throw new ConfigurationError(
    `The instructions of agent ${JSON.stringify(agent.name)} for chat ${chat.id} are no text: return a string or null.`,
    at,
  )
}

async function called(
  render: RenderInstructions,
  context: InstructionContext,
  isPassable: (error: unknown) => boolean,
  agent: string,
): Promise<unknown> {
  try {
    return await render(context)
  } catch (error) {
    // A failure is stored with its text, which may hold what it looked for.
    if (error instanceof ThreadmillError || isPassable(error)) throw error
    throw new ConfigurationError(
      `The instructions of agent ${JSON.stringify(agent)} could not be made for chat ${context.chat.id}; the cause of this error says why.`,
      { chatId: context.chat.id, cause: error },
    )
  }
}
