import * as z from 'zod'
import { ConfigurationError } from '../errors.ts'
import type { ModelClient, Prices } from '../providers/provider.ts'
import type { Agent, Broadcast } from './agent.ts'
import { type CompactionOptions, compactionOptions } from './compaction-options.ts'
import { checkDefinition, definitionLabel, LONGEST_TIMEOUT_MS } from './definition.ts'
import { type FallbackModel, type FallbackOptions, fallbacksSchema } from './fallback.ts'
import { type HookDefinitions, hooksSchema } from './hooks.ts'
import type { Tool } from './tool.ts'
import type { OnTurnEnd } from './turn-end.ts'

/** How many calls of a round `concurrency: true` lets run at the same time. */
export const DEFAULT_CONCURRENCY = 8

/** What `defineAgent` takes. `Chat` is what its hooks are given. */
export interface AgentDefinition<Chat = never> {
  /** What chats refer to it by. At most 255 characters. */
  readonly name: string
  /** The model to ask; the configured default if left out. */
  readonly model?: string | null | undefined
  /** Which provider to ask. Default: that of `client`, else `openai`. */
  readonly provider?: string | null | undefined
  /** A way to ask models that the agent brings itself. */
  readonly client?: ModelClient | null | undefined
  /** What the system message says; left out = no system message of the agent's. */
  readonly instructions?: string | null | undefined
  /** Made by `defineTool`, each name once. */
  readonly tools?: readonly Tool[] | undefined
  /** 0 to 2. Not sent if left out. */
  readonly temperature?: number | null | undefined
  /** Limit on one answer, in tokens. Not sent if left out. */
  readonly maxOutputTokens?: number | null | undefined
  /** False asks for whole answers instead of streams. Default true. */
  readonly streaming?: boolean | undefined
  /**
   * Which text of answers viewers get while it is made: all of it (`auto`, default), the chunks whose `broadcast()` was called
   * (`manual`), or none (`off`). All other events are published in any case.
   */
  readonly broadcast?: Broadcast | undefined
  /** Most tool rounds of one turn. Default 50. */
  readonly rounds?: number | undefined
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
  /**
   * Summarises the history of its chats before it fills the context: true at 0.8 of the context window, or by these options;
   * a chat's own `withCompaction` beats it. Default false.
   */
  readonly compaction?: CompactionOptions | boolean | undefined
  /** Limit on one attempt at the model, in ms. Default 15 minutes. */
  readonly timeoutMs?: number | undefined
  /** Limit on silence within a stream, in ms. Default 60 s. */
  readonly idleMs?: number | undefined
  /**
   * Models that are asked in order where its own fails, ids or `{ model, provider }`; `{ models, on }` says after which
   * errors. A chat's own `withFallbacks` beats it. (S87, S90)
   */
  readonly fallbacks?:
    | readonly (string | FallbackModel)[]
    | ({ readonly models: readonly (string | FallbackModel)[] } & FallbackOptions)
    | null
    | undefined
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

const text = z.string({ error: 'must be a string' })
const name = text.min(1, 'must not be empty').max(255, 'must be at most 255 characters')
const count = (least: number) => z.int({ error: 'must be a whole number' }).min(least, `must be at least ${least}`)
const milliseconds = count(1).max(LONGEST_TIMEOUT_MS, `must be at most ${LONGEST_TIMEOUT_MS} ms`)
const flag = z.boolean({ error: 'must be true or false' })
const price = z.number({ error: 'must be a number' }).nonnegative('must not be negative')

const definitionSchema = z.strictObject(
  {
    name,
    model: name.nullish(),
    provider: name.nullish(),
    client: z.custom<ModelClient>(isClient, 'must have a provider name and an attempt() method').nullish(),
    instructions: text.nullish(),
    tools: z.array(z.custom<Tool>(isTool, 'must be made by defineTool'), { error: 'must be an array' }).default([]),
    temperature: z
      .number({ error: 'must be a number' })
      .min(0, 'must be at least 0')
      .max(2, 'must be at most 2')
      .nullish(),
    maxOutputTokens: count(1).nullish(),
    streaming: flag.default(true),
    broadcast: z.enum(['auto', 'manual', 'off'], { error: 'must be "auto", "manual" or "off"' }).default('auto'),
    rounds: count(1).default(50),
    concurrency: z
      .custom<boolean | number>(isConcurrency, 'must be true, false or a whole number from 1 on')
      .default(1),
    toolExecution: z.enum(['inline', 'queue'], { error: 'must be "inline" or "queue"' }).default('inline'),
    retries: count(0).default(3),
    attempts: count(1).default(5),
    prices: z
      .strictObject(
        { input: price, output: price, cacheRead: price.optional(), cacheWrite: price.optional() },
        { error: (issue) => (issue.code === 'invalid_type' ? 'must be an object of prices' : undefined) },
      )
      .nullish(),
    contextWindow: count(1).nullish(),
    compaction: compactionOptions.default(false),
    timeoutMs: milliseconds.default(900_000),
    idleMs: milliseconds.default(60_000),
    fallbacks: z
      .preprocess((given) => (Array.isArray(given) ? { models: given } : given), fallbacksSchema.nullish())
      .default(null),
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
export function defineAgent<Chat>(definition: AgentDefinition<Chat>): Agent {
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
    tools: Object.freeze([...checked.tools]),
    temperature: checked.temperature ?? null,
    maxOutputTokens: checked.maxOutputTokens ?? null,
    streaming: checked.streaming,
    broadcast: checked.broadcast,
    rounds: checked.rounds,
    concurrency: concurrencyOf(checked.concurrency),
    toolExecution: checked.toolExecution,
    retries: checked.retries,
    attempts: checked.attempts,
    prices: checked.prices ? Object.freeze(pricesOf(checked.prices)) : null,
    contextWindow: checked.contextWindow ?? null,
    compaction: checked.compaction && Object.freeze(checked.compaction),
    timeoutMs: checked.timeoutMs,
    idleMs: checked.idleMs,
    fallbacks: checked.fallbacks ?? null,
    hooks: checked.hooks,
    onTurnEnd: checked.onTurnEnd ?? null,
  })
}

/** The values that stand more than once in a list, each once. */
export function repeated(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))]
}

function concurrencyOf(concurrency: boolean | number): number {
  if (typeof concurrency === 'number') return concurrency
  return concurrency ? DEFAULT_CONCURRENCY : 1
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

function isClient(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const client = value as Partial<Record<keyof ModelClient, unknown>>
  return typeof client.attempt === 'function' && typeof client.provider === 'string' && client.provider !== ''
}

function isTool(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const tool = value as Partial<Record<keyof Tool, unknown>>
  return typeof tool.name === 'string' && typeof tool.execute === 'function' && typeof tool.validate === 'function'
}
