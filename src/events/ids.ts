const GREATEST_PART = 2n ** 64n - 1n

/** The id of events that were made from rows: no entry of a stream can have it. */
export const NOWHERE = '0-0'

/** Whether a text can be the id of a stream's entry: a number, or two with a dash between them. */
export function isEntryId(text: unknown): text is string {
  if (typeof text !== 'string' || !/^\d{1,20}(-\d{1,20})?$/.test(text)) return false
  return text.split('-').every((part) => BigInt(part) <= GREATEST_PART)
}

/** Whether an entry comes after another one. Both are ids as Redis writes them; null = before every entry. */
export function isAfter(id: string, other: string | null): boolean {
  if (other === null) return true
  const [ms = '', part = ''] = id.split('-')
  const [otherMs = '', otherPart = ''] = other.split('-')
  return ms === otherMs ? isGreater(part, otherPart) : isGreater(ms, otherMs)
}

// Both are too big for a number, and have no leading zeros.
function isGreater(digits: string, others: string): boolean {
  return digits.length === others.length ? digits > others : digits.length > others.length
}
