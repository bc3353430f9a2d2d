import fc from 'fast-check'

// What happens to a chat, drawn at random: what its people do, and what its model and tools answer.

/** What one call of an answer is to. */
export type CallKind = 'free' | 'gated' | 'reports' | 'raises' | 'unknown' | 'malformed'

export type Reply =
  | { readonly kind: 'text' }
  | { readonly kind: 'calls'; readonly calls: readonly CallKind[]; readonly alsoText: boolean }
  | { readonly kind: 'empty' }
  /** The provider fails: in a way that passes, or for good. */
  | { readonly kind: 'error'; readonly retryable: boolean }

/** What people do that needs no claim; `pick` chooses one of what there is. */
export type Act =
  | { readonly kind: 'queue'; readonly steer: boolean }
  | { readonly kind: 'unqueue'; readonly pick: number }
  | { readonly kind: 'decide'; readonly pick: number; readonly approval: 'approved' | 'remembered' | 'denied' }
  | { readonly kind: 'cancel' }

export type Event =
  | Act
  | { readonly kind: 'ask' }
  | { readonly kind: 'run'; readonly verb: 'complete' | 'step' | 'generate' | 'runTools' }
  /** A worker was rung for. */
  | { readonly kind: 'job' }

export interface History {
  readonly events: readonly Event[]
  /** One a request; after the last of them the model answers with text. */
  readonly replies: readonly { readonly reply: Reply; readonly meanwhile: Act | null }[]
  /** What happens while a tool runs, one an execution. */
  readonly duringTools: readonly (Act | null)[]
  readonly concurrency: number
}

const pick = fc.nat({ max: 9 })
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('queue' as const), steer: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unqueue' as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('decide' as const),
      pick,
      approval: fc.constantFrom('approved' as const, 'remembered' as const, 'denied' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const) }) },
)
const verb = fc.constantFrom('complete' as const, 'step' as const, 'generate' as const, 'runTools' as const)
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: act },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('ask' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('run' as const), verb }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('job' as const) }) },
)
const callKind = fc.constantFrom<CallKind>(
  'free',
  'free',
  'gated',
  'gated',
  'reports',
  'raises',
  'unknown',
  'malformed',
)
const reply: fc.Arbitrary<Reply> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('text' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      calls: fc.array(callKind, { minLength: 1, maxLength: 4 }),
      alsoText: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('empty' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('error' as const), retryable: fc.boolean() }) },
)
const maybe = fc.option(act, { freq: 3, nil: null })

export const history: fc.Arbitrary<History> = fc.record({
  events: fc.array(event, { minLength: 1, maxLength: 12 }),
  replies: fc.array(fc.record({ reply, meanwhile: maybe }), { maxLength: 8 }),
  duringTools: fc.array(maybe, { maxLength: 6 }),
  concurrency: fc.constantFrom(1, 3),
})
