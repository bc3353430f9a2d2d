/** What a database's driver says of an error. */
export interface DriverError {
  readonly errno?: unknown
  readonly code?: unknown
  readonly sqlState?: unknown
  /** The connection is of no use any more. */
  readonly fatal?: unknown
}

/** An error and those that it wraps, outermost first: Sequelize wraps the driver's error, some errors more than once. */
export function driverErrors(error: unknown): readonly DriverError[] {
  const found: DriverError[] = []
  for (let inner = error; found.length < 4 && inner instanceof Error; inner = (inner as { parent?: unknown }).parent) {
    found.push(inner as DriverError)
  }
  return found
}
