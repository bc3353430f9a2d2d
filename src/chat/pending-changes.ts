import type { ChatSettings, JsonObject } from '../../models/rows.ts'
import type { Instruction } from '../../models/settings.ts'

/** What the setters of a chat object changed since it was stored. */
export interface PendingChanges {
  readonly model?: string | null
  readonly provider?: string | null
  readonly inputs?: JsonObject | null
  /** Which settings; what they say stands in the object's settings. */
  readonly settings?: readonly (keyof ChatSettings)[]
  /** The system messages that there are to be; undefined = those that are stored. */
  readonly replaced?: readonly Instruction[]
  readonly appended: readonly Instruction[]
}

/** What is stored in columns of its own. */
export type AssignedChanges = Pick<PendingChanges, 'model' | 'provider' | 'inputs'>

/** Nothing was changed. */
export const unchanged: PendingChanges = { appended: [] }

/** The columns among them; without those that were not set. */
export function assignedIn({ model, provider, inputs }: PendingChanges): AssignedChanges {
  return Object.fromEntries(Object.entries({ model, provider, inputs }).filter(([, value]) => value !== undefined))
}

/** Both, the newer over the older. */
export function together(older: PendingChanges, newer: PendingChanges): PendingChanges {
  const appended = newer.replaced === undefined ? [...older.appended, ...newer.appended] : newer.appended
  const settings = [...(older.settings ?? []), ...(newer.settings ?? [])]
  return { ...older, ...newer, appended, ...(settings.length > 0 ? { settings } : {}) }
}

/** All but a model and a provider. */
export function withoutModel({ model: _, provider: __, ...others }: PendingChanges): PendingChanges {
  const { inputs, settings, replaced, appended } = others
  const said = [inputs, settings, replaced].some((one) => one !== undefined)
  return said || appended.length > 0 ? others : unchanged
}
