/** What the worker of a queue does about its next job. */
export type FetchPhase =
  /** It waits for a ring, in a call that ends by itself after so many ms at most. */
  | { readonly kind: 'waiting'; readonly atMostMs: number }
  /** It asks Redis for a job. */
  | { readonly kind: 'asking' }
  /** Redis said that the queue's rate is reached; it asks again by itself. */
  | { readonly kind: 'limited' }
  /** None of these, which lasts for a moment. */
  | { readonly kind: 'between' }

/** One look at the worker of a queue. Times are those of a running event loop: what stood still did not wait. */
export interface FetchLook {
  readonly phase: FetchPhase
  readonly hasFreeSlot: boolean
  /** Ms since something last happened: a phase, or a job, began or ended. */
  readonly quietMs: number
}

/** BullMQ gives a wait up a second after its end, and has to connect anew then. In ms. */
const waitGraceMs = 5_000

/**
 * Whether a worker should have been heard of: it can take a job, and has neither asked for one nor got an answer for longer than
 * the limit. Whether there are jobs does not matter, since it has to ask all the same; nor whether the queue is paused.
 */
export function isLate({ phase, hasFreeSlot, quietMs }: FetchLook, limitMs: number): boolean {
  if (!hasFreeSlot) return false
  switch (phase.kind) {
    case 'waiting':
      return quietMs > phase.atMostMs + waitGraceMs + limitMs
    case 'asking':
    case 'between':
      return quietMs > limitMs
    case 'limited':
      return false
    default:
      return phase satisfies never
  }
}

/**
 * How a worker stands: `taking` jobs; `renewed`, since it was late, and not heard of yet; `stuck`, late again; `refused`: Redis
 * answers it with errors.
 */
export type Standing = 'taking' | 'renewed' | 'stuck' | 'refused'

export interface FetchRecord {
  /** How often it was made anew since Redis last gave it an answer. */
  readonly renewals: number
  /** How long Redis has given it nothing but errors, in ms. */
  readonly refusedMs: number
}

export function standing({ renewals, refusedMs }: FetchRecord, limitMs: number): Standing {
  if (renewals > 1) return 'stuck'
  if (renewals > 0) return 'renewed'
  return refusedMs > limitMs ? 'refused' : 'taking'
}
