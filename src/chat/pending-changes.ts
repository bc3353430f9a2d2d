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
  return withoutUndefined({ model, provider, inputs })
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

/** What was to be stored at one moment, and what the object's settings said then. */
export interface Snapshot {
  readonly changes: PendingChanges
  readonly settings: ChatSettings
}

/** What was set, or set anew, since a snapshot of the same object. */
export function changedSince(before: Snapshot, now: Snapshot): PendingChanges {
  const { settings: keys = [], replaced, appended } = now.changes
  const isOther = <Key extends 'model' | 'provider' | 'inputs'>(key: Key) => now.changes[key] !== before.changes[key]
  const settings = keys.filter((key) => now.settings[key] !== before.settings[key])
  const others = withoutUndefined({
    model: isOther('model') ? now.changes.model : undefined,
    provider: isOther('provider') ? now.changes.provider : undefined,
    inputs: isOther('inputs') ? now.changes.inputs : undefined,
    settings: settings.length > 0 ? settings : undefined,
    replaced: replaced !== before.changes.replaced ? replaced : undefined,
  })
  const added = appended.filter((one) => !before.changes.appended.includes(one))
  return Object.keys(others).length > 0 || added.length > 0 ? { ...others, appended: added } : unchanged
}

function withoutUndefined<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>
  }
}
