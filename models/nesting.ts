/** How many levels of lists and objects JSON may have to be stored: MariaDB refuses more. */
export const STORED_NESTING = 31

/** Whether a parsed JSON value has more levels than that. It does not call itself: the value may have a million of them. */
export function isNestedDeeperThan(levels: number, value: unknown): boolean {
  let level: unknown[] = [value].filter(isContainer)
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= levels) return true
    // Each once: in what an application passes, one may hold another in many places, or itself.
    level = [...new Set(level.flatMap((one) => Object.values(one as object).filter(isContainer)))]
  }
  return false
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}
