import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as z from 'zod'
import type { Chat } from '../../chat/chat.ts'
import { ArgumentError } from '../../errors.ts'
import type { ConnectOptions, Threadmill } from '../../threadmill.ts'
import type { Reply, ReplyFunction } from '../reply.ts'
import type { CrashOutcome, TurnWrite } from './report.ts'

/** Settings of `connect` that a scenario may need; the others keep the crashes apart from each other, and from everything else. */
export type CrashSettings = Pick<
  ConnectOptions,
  | 'databaseUrl'
  | 'redisUrl'
  | 'model'
  | 'claimTtlMs'
  | 'claimRenewMs'
  | 'sweepEveryMs'
  | 'eventCoalesceMs'
  | 'completeConcurrency'
  | 'runToolsConcurrency'
  | 'compactConcurrency'
  | 'databasePool'
>

/** What `drive` works with beside the chat. */
export interface DriveTools {
  /** The connection that the chat is of, in the test's own process. It runs no workers. */
  readonly mill: Threadmill
  /**
   * Resolves once `condition` gives something true, with that; asks it every 25 ms.
   * @throws {AssertionError} that says what was waited for, when `limitMs` of the scenario are over.
   */
  until<T>(what: string, condition: () => T | Promise<T>): Promise<T>
}

/** A chat that is to be run again and again, with a worker process that dies at another place each time. */
export interface CrashScenario {
  /**
   * The application's file, TypeScript or JavaScript, whose default export is `{ agents, tools, contextFor }`, as of `threadmill worker
   * --app`. Each worker process loads it, and the test's own process once.
   */
  readonly app: string | URL
  /** Whose chat it is, by name. Default: the app's agent, where it has one. */
  readonly agent?: string | undefined
  /** Makes the chat, in place of `mill.chats.create({ agent })`. */
  readonly create?: ((mill: Threadmill) => Promise<Chat>) | undefined
  /**
   * How the model answers. Of a list, the nth reply is for a request with n-1 answers in it, so that an answer that died with its process is
   * given again; a function decides by the request alone, and has to do the same.
   */
  readonly model: readonly Reply[] | ReplyFunction
  /**
   * What the users of the chat do, in the test's own process: they ask (`askLater(…, { enqueue: true })`), approve, cancel. Called once for
   * each crash, with a chat of its own, while a worker process runs it, dies, and is followed by another.
   */
  readonly drive: (chat: Chat, tools: DriveTools) => Promise<unknown>
  /**
   * What else must hold of each outcome, that without a crash too: throws, or rejects, when it does not. The chat is there still.
   */
  readonly check?:
    | ((outcome: CrashOutcome, tools: { readonly chat: Chat; readonly mill: Threadmill }) => unknown)
    | undefined
  /** Which writes to die at. Default: all. */
  readonly only?: ((write: TurnWrite) => boolean) | undefined
  /**
   * Settings of the connections: `databaseUrl` and `redisUrl` of a server of the application's own, for one. What is left out is of the
   * environment, then embedded. `claimTtlMs` is 2000 here, and `sweepEveryMs` 100, so that takeovers are quick.
   */
  readonly connect?: CrashSettings | undefined
  /** Variables of the worker processes, beside those of this one. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Arguments for `node` of the worker processes. Default: those of this one that load and resolve modules. */
  readonly execArgv?: readonly string[] | undefined
  /** How many processes die at the same time, each with tables of its own. Default: one for each processor, 2 to 4. */
  readonly concurrency?: number | undefined
  /** How long a chat has from the death of its worker to its end, in ms. Default: 30000, and 10 times `claimTtlMs` where that is more. */
  readonly limitMs?: number | undefined
}

/** A scenario with everything that was left out. */
export interface CheckedScenario extends CrashScenario {
  readonly app: string
  readonly connect: CrashSettings & { readonly claimTtlMs: number }
  readonly limitMs: number
}

const callable = z.custom((value) => typeof value === 'function', 'must be a function')
const object = (what: string) => ({
  error: (issue: { readonly code: string; readonly keys?: unknown }) =>
    issue.code === 'unrecognized_keys' ? `there is no ${String(issue.keys)}; ${what}` : 'must be an object',
})
/** Looked at by what uses it. */
const later = z.unknown().optional()
const settings: Record<keyof CrashSettings, z.ZodType> = {
  databaseUrl: later,
  redisUrl: later,
  model: later,
  claimTtlMs: later,
  claimRenewMs: later,
  sweepEveryMs: later,
  eventCoalesceMs: later,
  completeConcurrency: later,
  runToolsConcurrency: later,
  compactConcurrency: later,
  databasePool: later,
}
const connect = z.strictObject(settings, object(`the settings are ${Object.keys(settings).join(', ')}`))
const schema = z.strictObject(
  {
    app: z.union([z.string().min(1), z.instanceof(URL)], 'must be the path or the file URL of a module'),
    agent: z.string('must be the name of an agent').optional(),
    create: callable.optional(),
    model: z.union([z.array(z.looseObject({ kind: z.string() })), callable], 'must be a list of replies or a function'),
    drive: callable,
    check: callable.optional(),
    only: callable.optional(),
    connect: connect.optional(),
    env: z.record(z.string(), z.string('must be a text'), 'must be an object of texts').optional(),
    execArgv: z.array(z.string('must be a text'), 'must be a list of texts').optional(),
    concurrency: z.int('must be a whole number').min(1, 'must be at least 1').max(16, 'must be at most 16').optional(),
    limitMs: z.int('must be a whole number of ms').min(1, 'must be at least 1 ms').optional(),
  },
  object('see CrashScenario'),
)

const defaultTtlMs = 2_000

/** @throws {ArgumentError} that names everything that is wrong. */
export function checkedScenario(scenario: CrashScenario): CheckedScenario {
  const parsed = schema.safeParse(scenario)
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'scenario'}: ${message}`)
    throw new ArgumentError(`killAtEveryWrite() can't take this. ${problems.join('; ')}.`)
  }
  if (scenario.agent !== undefined && scenario.create !== undefined) {
    throw new ArgumentError('killAtEveryWrite() was given both agent and create: create() says whose chat it is.')
  }
  const { app, connect = {} } = scenario
  const claimTtlMs = connect.claimTtlMs ?? defaultTtlMs
  return {
    ...scenario,
    app: resolve(app instanceof URL || app.startsWith('file:') ? fileURLToPath(app) : app),
    connect: { sweepEveryMs: 100, ...connect, claimTtlMs },
    limitMs: scenario.limitMs ?? Math.max(30_000, 10 * claimTtlMs),
  }
}
