import * as z from 'zod'
import type { JsonObject } from '../../models/rows.ts'
import type { Agent } from './agent.ts'
import { defineTool, type ToolDefinition } from './define-tool.ts'
import { checkDefinition, definitionLabel, waitMs } from './definition.ts'
import type { ArgumentsOf, ToolParameters } from './parameters.ts'
import type { StandardSchema } from './standard-schema.ts'
import type { Tool, ToolContext } from './tool.ts'

const limits = z.object({ expiresMs: waitMs.optional() })
const question = z.object({ message: z.string().describe('What it is to do, with all that it needs to know.') })

/** What a model passes to an agent unless that says otherwise. */
export interface AgentQuestion {
  /** The first message of the agent's chat. */
  readonly message: string
}

/** What every tool can say of itself beside what it does. */
type Common<S extends ToolParameters> = Pick<
  ToolDefinition<S>,
  'description' | 'requiresApproval' | 'approvalExpiresMs' | 'onExpired'
>

/** How an agent is offered as a tool. */
export interface AgentToolOptions<S extends ToolParameters = StandardSchema<AgentQuestion>> extends Common<S> {
  /** What the model calls it by. Default: the agent's name. */
  readonly name?: string | undefined
  /** What the model passes. Default: `{ message }`. */
  readonly parameters?: S | undefined
  /** The first message of the agent's chat. Default: the argument `message`, or all arguments as JSON. */
  readonly message?: ((args: ArgumentsOf<S>) => string) | undefined
  /** What the agent's instructions are made with. Default: nothing. */
  readonly inputs?: ((args: ArgumentsOf<S>, chat: ToolContext['chat']) => JsonObject) | undefined
  /** How long it may take, in ms; ten years at most. Default: for ever. */
  readonly expiresMs?: number | undefined
}

/**
 * A tool by which a model has another agent answer a question, in a sub-chat: `tools: [agentTool(researcher, { description })]`. The agent
 * comes along with the tool; one that is named by text has to be given to `connect`. (E90)
 * @throws {ArgumentError} as `defineTool`.
 */
export function agentTool<S extends ToolParameters = StandardSchema<AgentQuestion>>(
  agent: Agent | string,
  options: AgentToolOptions<S>,
): Tool {
  const { name = nameOf(agent), parameters, message, inputs, expiresMs, ...common } = options
  checkDefinition(limits, { expiresMs }, definitionLabel('Tool', { name }))
  return defineTool({
    ...common,
    name,
    parameters: (parameters ?? question) as ToolParameters as S,
    agents: typeof agent === 'string' ? [] : [agent],
    execute: (args, context) =>
      context.delegate({
        agent,
        message: message?.(args) ?? messageIn(args),
        inputs: inputs?.(args, context.chat),
        expiresMs,
      }),
  })
}

/** How a conversation is offered to another agent. */
export interface TransferToolOptions extends Common<ToolParameters> {
  /** What the model calls it by. Default: `transfer_to_` and the agent's name. */
  readonly name?: string | undefined
  /** What the agent's instructions are made with. Default: nothing. */
  readonly inputs?: ((chat: ToolContext['chat']) => JsonObject) | undefined
}

/**
 * A tool by which a model gives the conversation to another agent, which goes on in the same turn: `tools: [transferTool('billing',
 * { description })]`. Two agents that transfer to each other name each other by text, and are both given to `connect`. (E97)
 * @throws {ArgumentError} as `defineTool`.
 */
export function transferTool(agent: Agent | string, options: TransferToolOptions): Tool {
  const { name = `transfer_to_${nameOf(agent)}`, inputs, ...common } = options
  return defineTool({
    ...common,
    name,
    parameters: z.object({}),
    agents: typeof agent === 'string' ? [] : [agent],
    execute: (_, context) => context.transfer({ agent, inputs: inputs?.(context.chat) }),
  })
}

function nameOf(agent: Agent | string): string {
  return typeof agent === 'string' ? agent : agent.name
}

function messageIn(args: unknown): string {
  const { message } = (args ?? {}) as { readonly message?: unknown }
  return typeof message === 'string' ? message : JSON.stringify(args)
}
