import { isNestedDeeperThan, STORED_NESTING } from '../../models/nesting.ts'

/** How many levels of lists and objects JSON of a model may have: what is taken out of it can then be stored. */
export const MAX_NESTING = STORED_NESTING - 1

/** Whether a parsed JSON value has more. */
export function isNestedTooDeep(value: unknown): boolean {
  return isNestedDeeperThan(MAX_NESTING, value)
}
