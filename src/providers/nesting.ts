/** How many levels of lists and objects JSON of a model may have. MariaDB stores no more than 31. */
export const MAX_NESTING = 30

/** Whether a parsed JSON value is nested deeper than may be. It does not call itself: the value may be nested a million levels. */
export function isNestedTooDeep(value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= MAX_NESTING) return true
    const next: unknown[] = []
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue
      for (const inner of Object.values(one)) if (typeof inner === 'object' && inner !== null) next.push(inner)
    }
    level = next
  }
  return false
}
