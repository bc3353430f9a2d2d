import fc from 'fast-check'
import type { WhileRunning } from '../../models/posting.ts'

// What a simulation is made of, drawn at random; fast-check makes a failing one as small as it can.

/** What one call of an answer is to. */
export type CallKind =
  | 'free'
  | 'slow'
  | 'gated'
  | 'reports'
  | 'raises'
  /** Its tool says that an interrupted call is not to run again. */
  | 'once'
  /** Its tool says that a person decides about an interrupted call. */
  | 'unsure'
  /** Its tool asks its user. */
  | 'question'
  /** Its tool ends its process, until the chat is set aside for it. */
  | 'deadly'
  /** Its tool has another agent answer, in a sub-chat. */
  | 'delegates'
  | 'unknown'
  | 'malformed'

export type Reply = { readonly ms: number } & (
  | { readonly kind: 'text' | 'empty' }
  | { readonly kind: 'calls'; readonly calls: readonly CallKind[] }
  /** The provider fails: at once, or in the middle of the answer; in a way that passes, or for good. */
  | { readonly kind: 'error' | 'cut'; readonly retryable: boolean }
)

/** What applications do. `pick` chooses one of what there is; `lost`: whether the reply, or the whole statement, fails. */
export type Act = { readonly at: number; readonly chat: number; readonly lost: When | null } & (
  | { readonly kind: 'ask' | 'cancel' | 'want' }
  /** Stored and wanted in two transactions; `dies`: the application does not live to do the second. */
  | { readonly kind: 'ask-later'; readonly dies: boolean }
  | { readonly kind: 'post'; readonly how: WhileRunning }
  | { readonly kind: 'queue'; readonly steer: boolean }
  | { readonly kind: 'unqueue'; readonly pick: number }
  | { readonly kind: 'decide'; readonly pick: number; readonly approval: 'approved' | 'remembered' | 'denied' }
  | { readonly kind: 'answer'; readonly pick: number; readonly declines: boolean }
  /** A process runs the chat for a caller. */
  | { readonly kind: 'run'; readonly verb: 'complete' | 'step'; readonly process: number }
)

/** Before or after the effect of a statement, or of whatever is waited for. */
export type When = 'before' | 'after'

/** What a process waits for, where things that go wrong tell most. */
export type Wait = (typeof waits)[number]

/** What goes wrong: at the so many-th wait of a process, or of those of one kind (`wait`), or at a time. */
export type Fault =
  | {
      readonly kind: 'crash'
      readonly process: number
      readonly step: number
      readonly wait: Wait | null
      readonly when: When
    }
  /** The whole process stands still, or its main thread alone. */
  | {
      readonly kind: 'freeze' | 'block'
      readonly process: number
      readonly step: number
      readonly wait: Wait | null
      readonly when: When
      readonly ms: number
    }
  /** So many statements in a row fail. */
  | {
      readonly kind: 'fail'
      readonly process: number
      readonly step: number
      readonly wait: Wait | null
      readonly when: When
      readonly times: number
    }
  /** Another transaction holds the row until this one gives up. */
  | { readonly kind: 'lock'; readonly process: number; readonly step: number; readonly wait: Wait | null }
  | { readonly kind: 'flush'; readonly at: number }
  | { readonly kind: 'away'; readonly at: number; readonly ms: number }
  | { readonly kind: 'late-sweeps'; readonly process: number; readonly at: number; readonly ms: number }
  | { readonly kind: 'deploy'; readonly process: number; readonly at: number }
  /** Somebody sets the wall clock of a process, so many ms on or back. */
  | { readonly kind: 'set-clock'; readonly process: number; readonly at: number; readonly ms: number }

/** What becomes of a ring. */
export type Ring = 'rung' | 'lost' | 'doubled' | 'late'

export interface Plan {
  /** Seeds how long everything takes. */
  readonly noise: number
  readonly processes: number
  readonly chats: number
  readonly acts: readonly Act[]
  /** One a request of a chat; after the last of them the model answers with text. */
  readonly replies: readonly Reply[]
  /** The same for sub-chats, whichever asks first. */
  readonly repliesBelow: readonly Reply[]
  /** Whether calls are run by workers of their own. */
  readonly toolQueue: boolean
  readonly faults: readonly Fault[]
  /** Those of the first rings; the others are heard. */
  readonly rings: readonly Ring[]
}

/** Ms in which applications act, and in which Redis and sweepers fail. */
export const busyMs = 120_000
export const mostProcesses = 3

const at = fc.integer({ min: 0, max: busyMs })
const pick = fc.nat({ max: 5 })
const process = fc.nat({ max: mostProcesses - 1 })
const step = fc.oneof(fc.integer({ min: 1, max: 25 }), fc.integer({ min: 1, max: 70 }))
const waits = [
  ...(['take', 'look', 'transcript', 'openUsage', 'closeUsage', 'commitAnswer', 'startToolCall'] as const),
  ...(['commitToolResult', 'takeQueued', 'settleCancelled', 'release', 'renewChat'] as const),
  ...(['pauseToolCall', 'reportToParent'] as const),
] as const
const wait = fc.option(
  fc.constantFrom(...waits, 'take', 'take', 'startToolCall', 'startToolCall', 'commitToolResult'),
  {
    freq: 2,
    nil: null,
  },
)
const when = fc.constantFrom<When>('before', 'after')
/** Some shorter than a claim, some longer. */
const standstill = fc.oneof(
  { weight: 1, arbitrary: fc.integer({ min: 1_000, max: 50_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 40_000, max: 110_000 }) },
)

const clockJump = fc.integer({ min: -100_000, max: 100_000 })

const one = <const Kind extends string>(kind: Kind) => fc.record({ kind: fc.constant(kind) })

const kinds = fc.oneof(
  { weight: 5, arbitrary: one('ask') },
  { weight: 2, arbitrary: one('cancel') },
  { weight: 1, arbitrary: one('want') },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('ask-later' as const), dies: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      how: fc.constantFrom<WhileRunning>('queue', 'steer', 'interrupt', 'reject'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('queue' as const), steer: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unqueue' as const), pick }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('decide' as const),
      pick,
      approval: fc.constantFrom('approved' as const, 'remembered' as const, 'denied' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('answer' as const), pick, declines: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('run' as const),
      verb: fc.constantFrom('complete' as const, 'complete' as const, 'step' as const),
      process,
    }),
  },
)

const act: fc.Arbitrary<Act> = fc
  .tuple(fc.record({ at, chat: fc.nat({ max: 1 }), lost: fc.option(when, { freq: 8, nil: null }) }), kinds)
  .map(([where, what]) => ({ ...where, ...what }))

const callKind = fc.constantFrom<CallKind>(
  ...(['free', 'free', 'slow', 'gated', 'gated', 'reports', 'raises'] as const),
  ...(['once', 'once', 'unsure', 'question', 'delegates', 'deadly', 'unknown', 'malformed'] as const),
)
const replyKinds = fc.oneof(
  { weight: 3, arbitrary: one('text') },
  { weight: 1, arbitrary: one('empty') },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      calls: fc.array(callKind, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('error' as const, 'cut' as const), retryable: fc.boolean() }),
  },
)
const replyMs = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 100, max: 8_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 8_000, max: 70_000 }) },
)
const reply: fc.Arbitrary<Reply> = fc.tuple(replyMs, replyKinds).map(([ms, what]) => ({ ms, ...what }))

const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('crash' as const), process, step, wait, when }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('freeze' as const, 'freeze' as const, 'block' as const),
      process,
      step,
      wait,
      when,
      ms: standstill,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('fail' as const),
      process,
      step,
      wait,
      when,
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lock' as const), process, step, wait }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const), at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('away' as const), at, ms: standstill }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('late-sweeps' as const), process, at, ms: standstill }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deploy' as const), process, at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('set-clock' as const), process, at, ms: clockJump }) },
)

export const plan: fc.Arbitrary<Plan> = fc.record({
  noise: fc.integer({ min: 0, max: 2 ** 30 }),
  processes: fc.integer({ min: 1, max: mostProcesses }),
  chats: fc.constantFrom(1, 1, 1, 2),
  acts: fc.array(act, { minLength: 1, maxLength: 12 }),
  replies: fc.array(reply, { maxLength: 8 }),
  repliesBelow: fc.array(reply, { maxLength: 4 }),
  toolQueue: fc.constantFrom(false, false, true),
  faults: fc.array(fault, { maxLength: 6 }),
  rings: fc.array(fc.constantFrom<Ring>('rung', 'rung', 'lost', 'doubled', 'late'), { maxLength: 8 }),
})
