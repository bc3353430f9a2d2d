/** How many different values a label can have; a model or a tool can be named at will, a time series is for ever. */
const valuesPerLabel = 100

/** Lets the first values of a label through, and calls all later ones `other`. */
export function capped(most = valuesPerLabel): (value: string) => string {
  const known = new Set<string>()
  return (value) => {
    if (known.has(value)) return value
    if (known.size >= most) return 'other'
    known.add(value)
    return value
  }
}
