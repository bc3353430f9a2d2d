import type { JsonObject } from '../../models/rows.ts'
import type { Instruction } from '../../models/settings.ts'

/** What the setters of a chat object changed since it was stored. */
export interface Changes {
  readonly model?: string | null
  readonly provider?: string | null
  readonly settings?: true
  readonly inputs?: JsonObject | null
  /** The system messages that there are to be; undefined = those that are stored. */
  readonly replaced?: readonly Instruction[]
  readonly appended: readonly Instruction[]
}

/** Nothing. */
export const none: Changes = { appended: [] }

/** The columns among them; without those that were not set. */
export function assignedIn({ model, provider, inputs }: Changes): Pick<Changes, 'model' | 'provider' | 'inputs'> {
  return Object.fromEntries(Object.entries({ model, provider, inputs }).filter(([, value]) => value !== undefined))
}

/** Two lots of changes, one after the other. */
export function together(older: Changes, newer: Changes): Changes {
  const appended = newer.replaced === undefined ? [...older.appended, ...newer.appended] : newer.appended
  return { ...older, ...newer, appended }
}
