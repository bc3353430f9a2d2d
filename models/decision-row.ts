import type { JsonObject } from './rows.ts'

/** What was done about a tool call, or about a question of it. */
export type DecisionAction = 'approved' | 'remembered' | 'denied' | 'answered' | 'declined' | 'expired'

/** One row of `decisions`: who decided what about a tool call, and when. Never changed. */
export interface DecisionRow {
  /** A UUIDv7. */
  id: string
  /** The chat of the call. */
  chatId: string
  /** The row of the call. */
  toolCallId: string
  /** What was decided. */
  action: DecisionAction
  /** Who, in the application's words; null where nobody said, and for what expired. */
  decidedBy: string | null
  /** Why; null where nobody said. */
  reason: string | null
  /** Of answers: which question of the call. */
  requestKey: string | null
  /** The arguments that were put in place of the model's, or the answer; null where there are none. */
  value: JsonObject | null
  /** When. */
  createdAt: Date
}
