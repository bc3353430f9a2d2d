import * as z from 'zod'
import { ArgumentError } from '../errors.ts'
import type { ProbeOptions } from '../observability/probe.ts'
import type { IsolateOptions, WorkersOptions } from '../start-workers.ts'
import { LONGEST_WAIT_MS } from '../tools/definition.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from '../tools/text-limit.ts'
import type { ApproveOptions, DecideOptions, DeciderOptions } from './chat-decisions.ts'
import type { EditOptions, RegenerateOptions } from './chat-edits.ts'
import type { ModelOptions } from './chat-model.ts'
import type { AskLaterOptions } from './chat-posts.ts'
import type { QueueOptions } from './chat-requests.ts'
import type { CreateOptions, ForkOptions } from './chats.ts'

const flag = z.boolean('must be true or false').optional()
/** Looked at by what uses it: a transaction, files, the text that somebody gave as a reason. */
const later = z.unknown().optional()
const json = later.refine((value) => value === undefined || isStorable(value), {
  error: `must be JSON of ${TEXT_LIMIT_BYTES} bytes at most`,
})
/** BullMQ's. */
const PRIORITY_LIMIT = 2_097_152

const asked = { attachments: later, enqueue: flag, transaction: later }
const decider = {
  by: later,
  reason: later.refine((reason) => typeof reason !== 'string' || isWithinLimit(reason), {
    error: `may have ${TEXT_LIMIT_BYTES} bytes at most`,
  }),
  wake: flag,
  transaction: later,
}
const decision = { ...decider, ifUndecided: flag, argumentsHash: z.string('must be a text').optional() }
const again = { enqueue: flag, waitMs: later }
const count = z.int('must be a whole number').min(0, 'must be 0 or more').optional()

/** Knows every option of a type: one that is added there has to be added here. */
const strict = <Options extends object>(shape: { readonly [Key in keyof Required<Options>]: z.ZodType }) =>
  z.strictObject(shape)

const shapes = {
  ask: strict<AskLaterOptions>(asked),
  askLater: strict<AskLaterOptions>(asked),
  queue: strict<QueueOptions>({ attachments: later, steer: flag, owner: json, wake: flag, transaction: later }),
  cancel: z.strictObject({ turn: z.int('must be the number of a turn').min(0).optional() }),
  approve: strict<ApproveOptions>({ ...decision, remember: flag, arguments: json }),
  deny: strict<DecideOptions>(decision),
  answer: strict<DeciderOptions>(decider),
  decline: strict<DeciderOptions>(decider),
  edit: strict<EditOptions>(again),
  regenerate: strict<RegenerateOptions>({ ...again, at: later }),
  withModel: strict<ModelOptions>({ provider: later, protocol: later, assumeModelExists: flag }),
  'chats.create': strict<CreateOptions>({ transaction: later, agentElsewhere: flag }),
  'chats.fork': strict<ForkOptions>({ at: later, transaction: later }),
  enqueue: z.strictObject({
    delayMs: z
      .number('must be a number of ms')
      .min(0, 'must be 0 or more')
      .max(LONGEST_WAIT_MS, 'must be ten years at most')
      .optional(),
    priority: z.int('must be a whole number').min(0, 'must be 0 or more').max(PRIORITY_LIMIT).optional(),
    transaction: later,
  }),
  purgeAttachments: z.strictObject({ unusedForMs: later }),
  board: z.strictObject({
    writable: flag,
    chatUrl: z.custom((value) => typeof value === 'function', 'must be a function').optional(),
  }),
  serveProbe: strict<ProbeOptions>({
    port: z.int('must be a port').min(0, 'must be a port').max(65_535, 'must be a port'),
    host: z.string('must be a text').min(1, 'must not be empty').optional(),
  }),
  startWorkers: strict<WorkersOptions>({
    complete: count,
    runTools: count,
    compact: count,
    isolate: strict<IsolateOptions>({
      app: z.string('must be a file').min(1, 'must be a file'),
      logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent'], 'must be a level').optional(),
      databaseUrl: z.string('must be a text').optional(),
      redisUrl: z.string('must be a text').optional(),
    }).optional(),
  }),
}

/**
 * Refuses options that a verb does not have, and wrong values: a misspelt option would be taken for none, and a wrong value for
 * whatever it happens to do.
 * @throws {ArgumentError} that names the verb and the options, without their values.
 */
export function requireOptions(verb: keyof typeof shapes, options: unknown, chatId?: string): void {
  const parsed = shapes[verb].safeParse(options)
  if (parsed.success) return
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'options'}: ${message}`)
  throw refused(`${verb}() can't take this. ${problems.join('; ')}`, chatId)
}

/** @throws {ArgumentError} for what can't be called; left out, nothing is. */
export function requireCallback(verb: string, callback: unknown, chatId: string): void {
  if (callback === undefined || typeof callback === 'function') return
  throw refused(`What ${verb}() is to call must be a function`, chatId)
}

/** @throws {ArgumentError} for what no row can hold: no JSON, or too much of it. */
export function requireJson(name: string, value: unknown, chatId: string): void {
  if (isStorable(value)) return
  throw refused(`${name} must be JSON of ${TEXT_LIMIT_BYTES} bytes at most`, chatId)
}

function isStorable(value: unknown): boolean {
  try {
    const text: string | undefined = JSON.stringify(value)
    return text !== undefined && isWithinLimit(text)
  } catch {
    return false
  }
}

function refused(problem: string, chatId: string | undefined): ArgumentError {
  return chatId === undefined
    ? new ArgumentError(`${problem}.`)
    : new ArgumentError(`${problem} (chat ${chatId}).`, { chatId })
}
