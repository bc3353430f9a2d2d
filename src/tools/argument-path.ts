/** One step into a value: a key of an object or an index of an array. */
export type Segment = string | number

/** A path the way that people and models write it: `order.lines[0].sku`. Empty for the whole value. */
export function pathText(path: readonly Segment[]): string {
  let text = ''
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`
    else text += text === '' ? segment : `.${segment}`
  }
  return text
}

/** What stands at a path of a value; undefined where nothing does. */
export function valueAt(value: unknown, path: readonly Segment[]): unknown {
  let current = value
  for (const segment of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, segment)) return undefined
    current = (current as Record<Segment, unknown>)[segment]
  }
  return current
}
