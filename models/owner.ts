import { whyUnstorable } from './storable.ts'

/** Who or what something belongs to, in the application's words: a text, or the type and the id of a record. Never interpreted. */
export type Owner =
  | string
  | {
      /** What kind of thing it is: a model's name, say. */
      readonly type: string
      /** Which one of them. */
      readonly id: string
    }

/** What the text of an owner with type and id begins with; one that is a text itself can't begin so. */
const TYPED = '{"type":'

/** Characters of the text that is stored, at most. */
export const OWNER_LIMIT = 255

/** The one text that an owner is stored by: for queries of `mill.models` by `owner`, to compare two owners, for a header. */
export function ownerKey(owner: Owner): string {
  return typeof owner === 'string' ? owner : JSON.stringify({ type: owner.type, id: owner.id })
}

/** The owner of a stored text, in the form in which it was given. */
export function ownerOf(key: string): Owner
export function ownerOf(key: string | null): Owner | null
export function ownerOf(key: string | null): Owner | null {
  if (key === null || !key.startsWith(TYPED)) return key
  try {
    const value: unknown = JSON.parse(key)
    return isTyped(value) && ownerKey(value) === key ? value : key
  } catch {
    return key
  }
}

/** Whether a value can be stored as an owner, and comes back as it is. */
export function isOwner(value: unknown): value is Owner {
  if (whyUnstorable(value) !== null) return false
  if (typeof value === 'string') return value !== '' && value.length <= OWNER_LIMIT && !value.startsWith(TYPED)
  return isTyped(value) && ownerKey(value).length <= OWNER_LIMIT
}

function isTyped(value: unknown): value is Exclude<Owner, string> {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false
  const { type, id } = value as { type?: unknown; id?: unknown }
  return typeof type === 'string' && type !== '' && typeof id === 'string' && id !== ''
}
