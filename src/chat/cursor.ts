import { ArgumentError } from '../errors.ts'

// Where the next page of a list begins, as an opaque text: what the last row of a page is sorted by.

/** A place in a list that is sorted by a time, then by id. */
export interface Place {
  readonly at: Date
  readonly id: string
}

export function cursorOf({ at, id }: Place): string {
  return `${at.getTime()}_${id}`
}

/**
 * @param verb who was given it, for the error.
 * @throws {ArgumentError} for a text that no page gave.
 */
export function placeOf(cursor: string, verb: string): Place {
  const [, at = '', id = ''] = /^(\d{1,15})_([0-9a-f-]{36})$/.exec(cursor) ?? []
  if (id !== '') return { at: new Date(Number(at)), id }
  throw new ArgumentError(
    `${verb} takes the next of an earlier page as before, not ${JSON.stringify(cursor.slice(0, 60))}.`,
  )
}
