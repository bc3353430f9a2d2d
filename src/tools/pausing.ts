import * as z from 'zod'
import type { JsonObject, ToolCallRow } from '../../models/rows.ts'
import { whyUnstorable } from '../../models/storable.ts'
import type { NewSubChat } from '../../models/sub-chats.ts'
import { type InputField, type PauseState, pauseOf, type RequestState, type TaskState } from '../../models/waiting.ts'
import { ArgumentError, ConfigurationError, InputDeclinedError } from '../errors.ts'
import { waitMs } from './definition.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from './text-limit.ts'
import type { Delegated, QuestionOptions, Task, TaskOptions } from './tool.ts'

/** How a tool leaves its call to wait: thrown by `ask`, returned by `task` and `delegate`. */
export class Pause implements Task, Delegated {
  readonly id: string
  readonly state: PauseState
  /** The chat that is to be made along with it; null = none. */
  readonly subChat: NewSubChat | null

  constructor(id: string, state: PauseState, subChat: NewSubChat | null = null) {
    this.id = id
    this.state = state
    this.subChat = subChat
  }
}

const word = z.string().min(1).max(255)
const field = z.strictObject({
  name: word,
  type: z.enum(['string', 'number', 'integer', 'boolean']).optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  choices: z
    .array(z.union([z.string(), z.number(), z.boolean()]))
    .min(1)
    .optional(),
  default: z.json().optional(),
  required: z.boolean().optional(),
})
const askSchema = z.strictObject({
  message: z.string().min(1),
  fields: z
    .array(
      field.refine((one) => one.default == null || fits(one as InputField, one.default), {
        error: 'the default is none of the values that the field takes',
      }),
    )
    .min(1)
    .refine((fields) => new Set(fields.map(({ name }) => name)).size === fields.length, 'two fields have one name'),
  key: word.optional(),
  expiresMs: waitMs.optional(),
  onExpired: z.enum(['decline', 'default']).optional(),
})
const taskSchema = z.strictObject({
  id: word,
  data: z.json().optional(),
  pollMs: waitMs,
  message: z.string().optional(),
  expiresMs: waitMs.optional(),
})

/** What one execution of a call knows of its questions. */
export class Asking {
  readonly #call: ToolCallRow
  readonly #now: () => Date
  #asked = 0
  /** Set once the tool asked what nobody has answered: it waits, whatever the tool does then. */
  pause: Pause | null = null

  constructor(call: Readonly<ToolCallRow>, now: () => Date) {
    this.#call = call
    this.#now = now
  }

  /** The answer, once there is one; until then it throws, which ends this execution. */
  async ask(options: QuestionOptions): Promise<JsonObject> {
    const given = parsed(askSchema, options, 'ask')
    const key = given.key ?? `ask-${++this.#asked}`
    const { requests = [] } = pauseOf(this.#call)
    const known = requests.find((request) => request.key === key)
    if (known?.answer !== undefined) return known.answer
    if (known?.declined === true) {
      throw new InputDeclinedError(`The user declined to answer: ${known.message}`, { chatId: this.#call.chatId })
    }
    const request: RequestState = {
      key,
      message: given.message,
      fields: given.fields as InputField[],
      expiresAt: later(this.#now(), given.expiresMs),
      onExpired: given.onExpired ?? 'decline',
    }
    // Beside what was asked before in this execution: a tool may ask several things at once.
    const { requests: open = requests, task } = this.pause?.state ?? pauseOf(this.#call)
    const isOpen = open.some((one) => one.key === key)
    const state = { requests: isOpen ? open : [...open, request], ...(task === undefined ? {} : { task }) }
    this.#requireRoom(state)
    this.pause = new Pause(key, state)
    throw this.pause
  }

  task(options: TaskOptions, canResume: boolean): Pause {
    if (!canResume) {
      throw new ConfigurationError(
        `Tool ${this.#call.name} began a task and has no resume(): give it one, which looks how the task stands.`,
        { chatId: this.#call.chatId },
      )
    }
    const { id, data = null, pollMs, message = null, expiresMs } = parsed(taskSchema, options, 'task')
    const before = pauseOf(this.#call).task
    const now = this.#now()
    const nextPollAt = new Date(now.getTime() + pollMs).toISOString()
    // Of a task that goes on, the time that it has does not begin anew.
    const expiresAt = before?.id === id && expiresMs === undefined ? before.expiresAt : later(now, expiresMs)
    const task = { id, data, pollMs, message, nextPollAt, expiresAt } as TaskState
    const { requests } = pauseOf(this.#call)
    const state = { ...(requests === undefined ? {} : { requests }), task }
    this.#requireRoom(state)
    return new Pause(id, state)
  }

  /** @throws {ArgumentError} for more than every database takes in one statement. (E178) */
  #requireRoom(state: PauseState): void {
    if (isWithinLimit(JSON.stringify(state))) return
    const { name, chatId } = this.#call
    throw new ArgumentError(
      `What tool ${name} waits for has more than ${TEXT_LIMIT_BYTES} bytes as JSON: shorten what it asks, or keep its data elsewhere.`,
      { chatId },
    )
  }
}

/** @throws {ArgumentError} that names what the tool called. */
export function parsed<S extends z.ZodType>(schema: S, given: unknown, what: string): z.output<S> {
  const result = schema.safeParse(given)
  const why = result.success ? whyUnstorable(result.data) : null
  if (why !== null) throw new ArgumentError(`The tool called ${what}() with what can't be stored: it ${why}.`)
  if (result.success) return result.data
  const problems = result.error.issues.map((issue) => `${issue.path.join('.') || what}: ${issue.message}`).join('; ')
  throw new ArgumentError(`The tool called ${what}() with what it does not take. ${problems}`)
}

/** ISO 8601; null = never. */
export function later(now: Date, ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(now.getTime() + ms).toISOString()
}

/**
 * Makes an answer complete: what was left out takes its default.
 * @throws {ArgumentError} naming every field that is wrong, unknown or missing.
 */
export function completedAnswer(request: RequestState, values: unknown, chatId: string): JsonObject {
  const given = typeof values === 'object' && values !== null && !Array.isArray(values) ? values : null
  const problems: string[] = given === null ? ['an answer is an object of fields'] : []
  const names = new Set(request.fields.map(({ name }) => name))
  const unknown = Object.keys(given ?? {}).filter((name) => !names.has(name))
  if (unknown.length > 0) problems.push(`there is no field ${unknown.join(', ')}`)
  const answer: JsonObject = {}
  for (const one of request.fields) {
    const value = (given as Record<string, unknown> | null)?.[one.name] ?? one.default
    if (value === undefined || value === null) {
      if (one.required !== false && one.default === undefined) problems.push(`${one.name} is missing`)
      continue
    }
    if (!fits(one, value)) problems.push(`${one.name} must be ${expected(one)}`)
    else answer[one.name] = value as JsonObject[string]
  }
  if (problems.length === 0) return answer
  throw new ArgumentError(`Chat ${chatId} can't take this answer: ${problems.join('; ')}.`, { chatId })
}

function fits({ type = 'string', choices }: InputField, value: unknown): boolean {
  if (choices !== undefined) return choices.some((choice) => choice === value)
  return type === 'integer' ? Number.isSafeInteger(value) : typeof value === type && !Number.isNaN(value)
}

function expected({ type = 'string', choices }: InputField): string {
  if (choices !== undefined) return `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`
  return type === 'integer' ? 'a whole number' : `a ${type}`
}

/** A call's pause once the questions that have expired are settled; null = none has. */
export function settledRequests(call: ToolCallRow, now: Date): PauseState | null {
  const pause = pauseOf(call)
  const isDue = ({ expiresAt, answer, declined }: RequestState) =>
    answer === undefined && declined !== true && expiresAt !== null && Date.parse(expiresAt) <= now.getTime()
  if (!(pause.requests ?? []).some(isDue)) return null
  const requests = (pause.requests ?? []).map((request) => (isDue(request) ? expiredRequest(request) : request))
  return { ...pause, requests }
}

/** Defaults stand in for an answer where every field that is needed has one. */
function expiredRequest(request: RequestState): RequestState {
  const { fields } = request
  const complete = fields.every((one) => one.default !== undefined || one.required === false)
  if (request.onExpired === 'decline' || !complete) return { ...request, declined: true }
  const given = fields.filter((one) => one.default !== undefined && one.default !== null)
  return { ...request, answer: Object.fromEntries(given.map((one) => [one.name, one.default ?? null])) }
}
