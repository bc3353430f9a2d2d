/*
 * What is wrong with rows that were read: no JSON where JSON is kept, another shape, times that are none. A run of the library's
 * own never writes such; a restored backup, a script or an old tool may. It is kept beside the row, so that rows stay what they
 * are; who copies one and wants it known of the copy says so.
 */
const damaged = new WeakMap<object, readonly string[]>()

/** The keys of columns that hold what can't be read, and read as null or as empty; none for a sound row. */
export function damageOf(row: object): readonly string[] {
  return damaged.get(row) ?? []
}

/** Notes it of a row; returns the row. */
export function withDamage<Row extends object>(row: Row, keys: readonly string[]): Row {
  if (keys.length > 0) damaged.set(row, keys)
  return row
}
