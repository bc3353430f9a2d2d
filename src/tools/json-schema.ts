import type { JsonObject } from '../../models/rows.ts'

/** True for anything that JSON would write as an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Keywords whose values are schemas, by how they hold them. Everything else (enum, default, const ...) is data.
const SCHEMA = ['items', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'contains', 'not', 'if']
const BRANCH = ['then', 'else', 'propertyNames', 'additionalItems']
const LIST = ['anyOf', 'oneOf', 'prefixItems', 'items']
const MAP = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']
// A schema in these says a part of what another schema says as a whole: closing it would shut out the other part.
const PARTIAL = ['allOf']
const IN_PLACE = ['allOf', 'anyOf', 'oneOf', 'if', '$ref', 'dependentSchemas']

export interface TidyOptions {
  /** Also close objects inside the arguments. For generated schemas, whose libraries drop unknown keys without a word. */
  readonly closeNested: boolean
}

/**
 * The schema as a model gets it: of type object, closed where the author did not say otherwise, without `$schema` and
 * without titles that only repeat a name. A copy; null if the schema does not describe an object.
 */
export function tidySchema(schema: JsonObject, options: TidyOptions): JsonObject | null {
  const root = inlineRoot(structuredClone(schema))
  const older = typeof root.$schema === 'string' && /draft-0[67]/.test(root.$schema)
  delete root.$schema
  delete root.title
  if (root.type === undefined && isJsonObject(root.properties)) root.type = 'object'
  if (root.type !== 'object') return null
  root.properties ??= {}
  const open = root.additionalProperties === undefined && root.unevaluatedProperties === undefined
  if (open && IN_PLACE.every((keyword) => root[keyword] === undefined)) root.additionalProperties = false
  else if (open && !older) root.unevaluatedProperties = false
  tidyInside(root, options.closeNested)
  return root
}

// Recursive schemas come as a reference to one of their own definitions, which no provider takes at the top.
function inlineRoot(schema: JsonObject): JsonObject {
  const target = typeof schema.$ref === 'string' ? resolveRef(schema, schema.$ref) : null
  if (target === null || target === schema) return schema
  const { $ref: _, ...rest } = schema
  return { ...structuredClone(target), ...rest }
}

/** The schema that a local reference (`#`, `#/$defs/x`) points to; null where it points elsewhere or nowhere. */
export function resolveRef(root: JsonObject, ref: string): JsonObject | null {
  if (ref === '#') return root
  if (!ref.startsWith('#/')) return null
  let current: unknown = root
  for (const part of ref.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!isJsonObject(current) || !Object.hasOwn(current, key)) return null
    current = current[key]
  }
  return isJsonObject(current) ? current : null
}

function tidyInside(schema: JsonObject, close: boolean): void {
  for (const keyword of [...SCHEMA, ...BRANCH]) tidy(schema[keyword], '', close && !isCondition(keyword))
  for (const keyword of LIST) for (const item of listOf(schema[keyword])) tidy(item, '', close)
  for (const keyword of PARTIAL) for (const item of listOf(schema[keyword])) tidy(item, '', false)
  for (const keyword of MAP) {
    const map = schema[keyword]
    if (isJsonObject(map)) for (const [name, item] of Object.entries(map)) tidy(item, name, close)
  }
}

function tidy(schema: unknown, name: string, close: boolean): void {
  if (!isJsonObject(schema)) return
  if (typeof schema.title === 'string' && plain(schema.title) === plain(name)) delete schema.title
  const open = schema.additionalProperties === undefined && IN_PLACE.every((keyword) => schema[keyword] === undefined)
  if (close && open && schema.type === 'object' && isJsonObject(schema.properties)) schema.additionalProperties = false
  tidyInside(schema, close)
}

function isCondition(keyword: string): boolean {
  return keyword === 'not' || keyword === 'if' || keyword === 'then' || keyword === 'else'
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** `Order Id`, `order_id` and `orderId` say the same. */
function plain(name: string): string {
  return name.replace(/[^\p{L}\p{N}]/gu, '').toLowerCase()
}
