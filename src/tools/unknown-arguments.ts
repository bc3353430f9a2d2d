import type { JsonObject } from '../../models/rows.ts'
import type { Segment } from './argument-path.ts'
import { pathText } from './argument-path.ts'
import { isJsonObject, resolveRef } from './json-schema.ts'

/**
 * The paths of keys that a closed object schema does not know, in the order that the model wrote them. In a union a key
 * counts as unknown when no branch knows it.
 */
export function unknownArguments(schema: JsonObject, value: unknown): string[] {
  return unknownIn(schema, value, schema, [])
}

function unknownIn(unresolved: unknown, value: unknown, root: JsonObject, path: readonly Segment[]): string[] {
  const schema = resolve(unresolved, root)
  if (schema === null) return []
  const union = schema.anyOf ?? schema.oneOf
  if (Array.isArray(union)) return unknownToAll(union, value, root, path)
  if (Array.isArray(value)) {
    const prefix = Array.isArray(schema.prefixItems) ? schema.prefixItems : []
    return value.flatMap((item, index) => unknownIn(prefix[index] ?? schema.items, item, root, [...path, index]))
  }
  if (!isJsonObject(value)) return []
  return Object.keys(value).flatMap((key) => {
    const known = schemaOfKey(schema, key)
    if (known === false) return [pathText([...path, key])]
    return unknownIn(known, value[key], root, [...path, key])
  })
}

function unknownToAll(union: readonly unknown[], value: unknown, root: JsonObject, path: readonly Segment[]): string[] {
  const kind = Array.isArray(value) ? 'array' : 'object'
  const branches = union.map((branch) => resolve(branch, root)).filter((branch) => branch?.type === kind)
  const [first = [], ...others] = branches.map((branch) => unknownIn(branch, value, root, path))
  return first.filter((key) => others.every((unknown) => unknown.includes(key)))
}

/** False = the schema shuts the key out. */
function schemaOfKey(schema: JsonObject, key: string): unknown {
  if (isJsonObject(schema.properties) && Object.hasOwn(schema.properties, key)) return schema.properties[key]
  const patterns = isJsonObject(schema.patternProperties) ? Object.entries(schema.patternProperties) : []
  const match = patterns.find(([pattern]) => new RegExp(pattern, 'u').test(key))
  return match === undefined ? schema.additionalProperties : match[1]
}

// A chain of references that never ends in a schema is cut: it describes nothing.
function resolve(unresolved: unknown, root: JsonObject): JsonObject | null {
  let schema = unresolved
  for (let hop = 0; hop < 16; hop++) {
    if (!isJsonObject(schema)) return null
    if (typeof schema.$ref !== 'string') return schema
    schema = resolveRef(root, schema.$ref)
  }
  return null
}
