import * as z from 'zod'
import { whyUnstorable } from '../../models/storable.ts'
import type { AttachmentConverter } from '../attachments/convert.ts'
import { ConfigurationError } from '../errors.ts'
import type { ModelClient, Prices } from '../providers/provider.ts'
import type { Agent, Broadcast } from './agent.ts'
import { checkDefinition, definitionLabel, LONGEST_TIMEOUT_MS } from './definition.ts'
import { headersSchema } from './headers.ts'
import { type HookDefinitions, hooksSchema } from './hooks.ts'
import type { RenderInstructions } from './instructions.ts'
import { isClient } from './model-context.ts'
import { type ArgumentsOf, parametersOf, type ToolParameters } from './parameters.ts'
import { concurrencyOf } from './settings.ts'
import { type SettingsInput, settingsOf, settingsShape } from './settings-input.ts'
import { TEXT_LIMIT_BYTES } from './text-limit.ts'
import type { Tool } from './tool.ts'
import type { OnTurnEnd } from './turn-end.ts'

/** What `defineAgent` takes. `Chat` is what its hooks are given. */
export interface AgentDefinition<Chat = never, Inputs extends ToolParameters = Record<never, never>>
  extends SettingsInput {
  /** What chats refer to it by. At most 255 characters. */
  readonly name: string
  /** The model to ask; the configured default if left out. */
  readonly model?: string | null | undefined
  /** Which provider to ask. Default: that of `client`, else `openai`. */
  readonly provider?: string | null | undefined
  /** A way to ask models that the agent brings itself. */
  readonly client?: ModelClient | null | undefined
  /**
   * What its chats are given (`chats.create({ inputs })`), for `instructions` to be made of: a Zod schema, any Standard Schema that
   * yields JSON Schema, or JSON Schema. It must describe an object. Default: nothing. (E94)
   */
  readonly inputs?: Inputs | null | undefined
  /**
   * What the system message says, or a function that makes it of the chat and its inputs; left out = no system message of the
   * agent's. A chat that has instructions of its own is not sent these. (E94)
   */
  readonly instructions?: string | RenderInstructions<ArgumentsOf<Inputs>> | null | undefined
  /**
   * `run` (default): instructions are made anew for each run, so that they are always those of the deployed agent. `create`: they are
   * made when a chat is, and stored as its own system message, which stays as it is. (E95)
   */
  readonly instructionsAt?: 'run' | 'create' | undefined
  /** Made by `defineTool`, each name once. */
  readonly tools?: readonly Tool[] | undefined
  /** False asks for whole answers instead of streams. Default true. */
  readonly streaming?: boolean | undefined
  /**
   * Which text of answers viewers get while it is made: all of it (`auto`, default), the chunks whose `broadcast()` was called
   * (`manual`), or none (`off`). All other events are published in any case.
   */
  readonly broadcast?: Broadcast | undefined
  /** Sent with each request beside those of the protocol. Never stored or logged; values must not hold line breaks. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined
  /** Most tool rounds of one turn. Default 50. */
  readonly rounds?: number | undefined
  /** From so many calls of one tool in a row on, its results hold a warning to the model. Default: none. (M36) */
  readonly repetitionLimit?: number | null | undefined
  /** How many calls of one round may run at the same time. Default 1, also for false; true means 8. */
  readonly concurrency?: boolean | number | undefined
  /** Where tools run: in the worker that asked the model (`inline`, default), or in the runTools workers (`queue`). */
  readonly toolExecution?: 'inline' | 'queue' | undefined
  /** Physical retries of one model call within one run. Default 3; 0 = none. */
  readonly retries?: number | undefined
  /** How many runs a turn gets before its failure is final; later ones come by themselves after a growing delay. Default 5. */
  readonly attempts?: number | undefined
  /** USD per million tokens, where the agent knows better than the catalogue. */
  readonly prices?: Prices | null | undefined
  /** Tokens that the model takes in one request and its answer, where the catalogue does not know it or is wrong. */
  readonly contextWindow?: number | null | undefined
  /** Limit on one attempt at the model, in ms. Default 15 minutes. */
  readonly timeoutMs?: number | undefined
  /** Limit on silence within a stream, in ms. Default 60 s. */
  readonly idleMs?: number | undefined
  /**
   * Limit on text, reasoning and tool arguments of one answer together, in bytes of UTF-8: a model that sends more is cut off with
   * an `AnswerTooLargeError`, and so is one that sends without end what never becomes an answer. Default 4 MiB, at most 8 MiB,
   * which is what databases take. (E100, E101)
   */
  readonly maxAnswerBytes?: number | undefined
  /**
   * Makes something of a file that a model can't take, a text or another file; null = not by this. Several are tried in their order.
   */
  readonly convertUnsupportedAttachments?: AttachmentConverter | readonly AttachmentConverter[] | undefined
  /**
   * What is called while its chats are run, by every process that runs them: for each hook a function, or a list of them.
   */
  readonly hooks?: HookDefinitions<Chat> | undefined
  /**
   * Called when a turn of one of the agent's chats was answered, failed for good or was cancelled, in the process that ran
   * it and while it holds the chat: read the chat, tell others, enqueue other work; what it writes to the chat itself is
   * queued for the next turn. At least once: a process that dies before it gave the chat back is followed by one that
   * calls it again. What it throws is logged, and after a minute nobody waits for it any longer; neither changes the turn. (E01)
   */
  readonly onTurnEnd?: OnTurnEnd<Chat> | null | undefined
}

/** Runs that a turn gets before its failure is final, where its agent says nothing else. */
export const defaultAttempts = 5

const text = z.string({ error: 'must be a string' })
const name = text.min(1, 'must not be empty').max(255, 'must be at most 255 characters')
const count = (least: number) => z.int({ error: 'must be a whole number' }).min(least, `must be at least ${least}`)
const milliseconds = count(1).max(LONGEST_TIMEOUT_MS, `must be at most ${LONGEST_TIMEOUT_MS} ms`)
const flag = z.boolean({ error: 'must be true or false' })
const converter = z.custom<AttachmentConverter>((value) => typeof value === 'function', 'must be a function')
const price = z.number({ error: 'must be a number' }).nonnegative('must not be negative')

const definitionSchema = z.strictObject(
  {
    name,
    model: name.nullish(),
    provider: name.nullish(),
    client: z.custom<ModelClient>(isClient, 'must have a provider name and an attempt() method').nullish(),
    inputs: z.unknown().optional(),
    instructions: z
      .custom<string | RenderInstructions>(
        (value) => typeof value === 'string' || typeof value === 'function',
        'must be a text or a function',
      )
      .refine((value) => whyUnstorable(value) === null, 'must not have half of a character in it')
      .nullish(),
    instructionsAt: z.enum(['run', 'create'], { error: 'must be "run" or "create"' }).default('run'),
    tools: z.array(z.custom<Tool>(isTool, 'must be made by defineTool'), { error: 'must be an array' }).default([]),
    ...settingsShape,
    headers: headersSchema.nullish(),
    streaming: flag.default(true),
    broadcast: z.enum(['auto', 'manual', 'off'], { error: 'must be "auto", "manual" or "off"' }).default('auto'),
    rounds: count(1).default(50),
    repetitionLimit: count(2).nullish(),
    concurrency: z
      .custom<boolean | number>(isConcurrency, 'must be true, false or a whole number from 1 on')
      .default(1),
    toolExecution: z.enum(['inline', 'queue'], { error: 'must be "inline" or "queue"' }).default('inline'),
    retries: count(0).default(3),
    attempts: count(1).default(defaultAttempts),
    prices: z
      .strictObject(
        { input: price, output: price, cacheRead: price.optional(), cacheWrite: price.optional() },
        { error: (issue) => (issue.code === 'invalid_type' ? 'must be an object of prices' : undefined) },
      )
      .nullish(),
    contextWindow: count(1).nullish(),
    timeoutMs: milliseconds.default(900_000),
    idleMs: milliseconds.default(60_000),
    maxAnswerBytes: count(1)
      .max(TEXT_LIMIT_BYTES, `must be at most ${TEXT_LIMIT_BYTES} bytes`)
      .default(4 * 1024 * 1024),
    convertUnsupportedAttachments: z.union([converter, z.array(converter)]).default([]),
    hooks: hooksSchema.default({}),
    onTurnEnd: z.custom<OnTurnEnd<never>>((value) => typeof value === 'function', 'must be a function').nullish(),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'the definition must be an object' : undefined) },
)

const agreeingSchema = definitionSchema.refine(
  ({ client, provider }) => !client || !provider || client.provider === provider,
  { path: ['provider'], error: 'must be the provider of the client: leave it out' },
)

/**
 * Makes an agent: a named configuration that chats refer to. The result is frozen; every process that runs its chats
 * needs it.
 * @throws {ArgumentError} that names the agent and everything that is wrong with its definition.
 * @throws {ConfigurationError} if two of its tools have one name.
 */
export function defineAgent<Chat, Inputs extends ToolParameters = Record<never, never>>(
  definition: AgentDefinition<Chat, Inputs>,
): Agent {
  const label = definitionLabel('Agent', definition)
  const checked = checkDefinition(agreeingSchema, definition, label)
  const clashes = repeated(checked.tools.map((tool) => tool.name))
  if (clashes.length > 0) {
    throw new ConfigurationError(`${label} has more than one tool named ${clashes.join(', ')}: rename all but one.`)
  }
  return Object.freeze({
    name: checked.name,
    model: checked.model ?? null,
    provider: checked.provider ?? checked.client?.provider ?? 'openai',
    client: checked.client ?? null,
    instructions: checked.instructions ?? null,
    instructionsAt: checked.instructionsAt,
    inputs: inputsOf(checked.inputs, label),
    tools: Object.freeze([...checked.tools]),
    ...settingsOf(checked),
    headers: checked.headers ? Object.freeze(checked.headers) : null,
    streaming: checked.streaming,
    broadcast: checked.broadcast,
    rounds: checked.rounds,
    repetitionLimit: checked.repetitionLimit ?? null,
    concurrency: concurrencyOf({ concurrency: checked.concurrency }, 1),
    toolExecution: checked.toolExecution,
    retries: checked.retries,
    attempts: checked.attempts,
    prices: checked.prices ? Object.freeze(pricesOf(checked.prices)) : null,
    contextWindow: checked.contextWindow ?? null,
    timeoutMs: checked.timeoutMs,
    idleMs: checked.idleMs,
    maxAnswerBytes: checked.maxAnswerBytes,
    converters: Object.freeze([checked.convertUnsupportedAttachments].flat()),
    hooks: checked.hooks,
    onTurnEnd: checked.onTurnEnd ?? null,
  })
}

function inputsOf(inputs: unknown, label: string): Agent['inputs'] {
  return inputs === undefined || inputs === null ? null : parametersOf(inputs, label, 'inputs')
}

/** The values that stand more than once in a list, each once. */
export function repeated(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))]
}

// A bucket that is undefined must read as missing: its price is unknown.
function pricesOf(prices: {
  input: number
  output: number
  cacheRead?: number | undefined
  cacheWrite?: number | undefined
}): Prices {
  const { input, output, cacheRead, cacheWrite } = prices
  return {
    input,
    output,
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
  }
}

function isConcurrency(value: unknown): boolean {
  return typeof value === 'boolean' || (Number.isSafeInteger(value) && Number(value) >= 1)
}

function isTool(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const tool = value as Partial<Record<keyof Tool, unknown>>
  return typeof tool.name === 'string' && typeof tool.execute === 'function' && typeof tool.validate === 'function'
}
