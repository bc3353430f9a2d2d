import * as z from 'zod'
import type { Agent } from './agent.ts'
import { checkDefinition, definitionLabel, LONGEST_TIMEOUT_MS, waitMs } from './definition.ts'
import { type ArgumentsOf, parametersOf, type ToolParameters } from './parameters.ts'
import type { ApprovalResolver, CancelContext, OnInterrupted, PendingTask, Tool, ToolContext } from './tool.ts'

const TEN_MINUTES = 600_000

/** What `defineTool` takes. */
export interface ToolDefinition<S extends ToolParameters> {
  /** Letters, digits, `_` and `-`, at most 64: what every provider takes. */
  readonly name: string
  /** Tells the model what the tool does and when to use it. */
  readonly description: string
  /**
   * A Zod schema, any Standard Schema that yields JSON Schema, or JSON Schema. It must describe an object; keys that it
   * does not name are refused unless it says otherwise.
   */
  readonly parameters: S
  /**
   * Does the work. `args` is what the schema made of the model's arguments, defaults and transforms applied. It may run
   * twice if its process dies: hand `context.idempotencyKey` to whatever must not act twice.
   *
   * A returned `{ error }` or a thrown `ToolError` goes to the model as a failure.
   */
  execute(args: ArgumentsOf<S>, context: ToolContext): unknown
  /** True: a person decides about each call. A function decides itself, or leaves it to a person. Default false. */
  readonly requiresApproval?: boolean | ApprovalResolver | undefined
  /** Limit on one run, in ms. Default 10 minutes. */
  readonly timeoutMs?: number | undefined
  /** What an error other than `ToolError` does: end the run (`raise`, default) or go to the model (`report`). */
  readonly onError?: 'raise' | 'report' | undefined
  /** What becomes of a call that began in a process that is gone. Default `retry`. */
  readonly onInterrupted?: OnInterrupted | undefined
  /** Looks how a task stands that `context.task()` began: returns the result, or the task again. It must only read. (S99) */
  resume?(task: PendingTask, context: ToolContext): unknown
  /** Ends a task whose turn was cancelled. At most a minute; what it throws is logged. (S66) */
  cancelTask?(task: PendingTask, context: CancelContext): unknown
  /** How long a decision about a call is waited for, in ms; ten years at most. Default: for ever. */
  readonly approvalExpiresMs?: number | undefined
  /** What becomes of a call then: it is denied (default), or runs. */
  readonly onExpired?: 'deny' | 'approve' | undefined
  /**
   * Agents that it delegates or transfers to: they need not be given to `connect` beside it. Those that it names by text do. (E90)
   */
  readonly agents?: readonly Agent[] | undefined
}

const isFunction = (value: unknown): boolean => typeof value === 'function'

function isAgent(value: unknown): boolean {
  const { name, tools } = (value ?? {}) as Partial<Record<keyof Agent, unknown>>
  return typeof name === 'string' && Array.isArray(tools)
}

const definitionSchema = z.strictObject(
  {
    name: z
      .string({ error: 'must be a string' })
      .regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"'),
    description: z.string({ error: 'must be a string' }).regex(/\S/, 'must not be blank'),
    parameters: z.unknown().refine((value) => value !== undefined, 'is missing'),
    execute: z.custom(isFunction, 'must be a function'),
    requiresApproval: z
      .custom<boolean | ApprovalResolver>(
        (value) => typeof value === 'boolean' || isFunction(value),
        'must be true, false or a function',
      )
      .default(false),
    timeoutMs: z
      .int({ error: 'must be a whole number of ms' })
      .min(1, 'must be at least 1 ms')
      .max(LONGEST_TIMEOUT_MS, `must be at most ${LONGEST_TIMEOUT_MS} ms`)
      .default(TEN_MINUTES),
    onError: z.enum(['raise', 'report'], { error: 'must be "raise" or "report"' }).default('raise'),
    onInterrupted: z
      .custom<OnInterrupted>(
        (value) => value === 'retry' || value === 'fail' || value === 'ask' || isFunction(value),
        'must be "retry", "fail", "ask" or a function',
      )
      .default('retry'),
    resume: z.custom(isFunction, 'must be a function').optional(),
    cancelTask: z.custom(isFunction, 'must be a function').optional(),
    approvalExpiresMs: waitMs.optional(),
    onExpired: z.enum(['deny', 'approve'], 'must be "deny" or "approve"').default('deny'),
    agents: z
      .array(z.custom<Agent>(isAgent, 'must be made by defineAgent'), { error: 'must be an array of agents' })
      .default([]),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'the definition must be an object' : undefined) },
)

/**
 * Makes a tool that agents and chats can offer to a model. The result is frozen and holds no state, so that any number
 * of chats can share it.
 * @throws {ArgumentError} that names the tool and everything that is wrong with its definition.
 */
export function defineTool<S extends ToolParameters>(definition: ToolDefinition<S>): Tool {
  const label = definitionLabel('Tool', definition)
  const checked = checkDefinition(definitionSchema, definition, label)
  const parameters = parametersOf(checked.parameters, label)
  return Object.freeze({
    name: checked.name,
    description: checked.description,
    parameters: parameters.schema,
    requiresApproval: checked.requiresApproval,
    timeoutMs: checked.timeoutMs,
    onError: checked.onError,
    onInterrupted: checked.onInterrupted,
    validate: parameters.validate,
    // The schema made these arguments, so they are what it says.
    execute: async (args: unknown, context: ToolContext) => definition.execute(args as ArgumentsOf<S>, context),
    resume: definition.resume
      ? async (task: PendingTask, context: ToolContext) => definition.resume?.(task, context)
      : null,
    cancelTask: definition.cancelTask
      ? async (task: PendingTask, context: CancelContext) => definition.cancelTask?.(task, context)
      : null,
    approvalExpiresMs: checked.approvalExpiresMs ?? null,
    onExpired: checked.onExpired,
    agents: Object.freeze([...checked.agents]),
  })
}
