import type { JsonObject } from '../../models/rows.ts'
import { ArgumentError } from '../errors.ts'
import { pathText, type Segment, valueAt } from './argument-path.ts'
import { isJsonObject, tidySchema } from './json-schema.ts'
import { compileSchema, schemaProblems } from './json-validator.ts'
import { isStandardSchema, jsonSchemaOf, type StandardIssue, type StandardSchema } from './standard-schema.ts'
import type { ValidatedArguments } from './tool.ts'
import { unknownArguments } from './unknown-arguments.ts'

/** What describes a tool's arguments: a Zod schema, any Standard Schema that yields JSON Schema, or JSON Schema itself. */
export type ToolParameters = StandardSchema | Readonly<Record<string, unknown>>

/** What `execute` gets: the schema's output, or plain JSON for a JSON Schema. */
export type ArgumentsOf<S> = S extends StandardSchema<infer Output> ? Output : JsonObject

/** A tool's parameters, read once. */
export interface Parameters {
  /** The JSON Schema that the model gets. Frozen. */
  readonly schema: JsonObject
  /** Never throws. */
  validate(args: JsonObject): Promise<ValidatedArguments>
}

/** What a schema is for: the arguments of a tool, or the inputs of an agent. */
type Purpose = 'parameters' | 'inputs'

/**
 * Reads the schema of a definition.
 * @throws {ArgumentError} without the name of what is defined, if it can't describe an object.
 */
export function readParameters(given: unknown, purpose: Purpose = 'parameters'): Parameters {
  if (isStandardSchema(given)) return readStandardSchema(given, purpose)
  if (isJsonObject(given)) return readJsonSchema(given, purpose)
  throw new ArgumentError(`${purpose} must be a Zod schema, a Standard Schema or a JSON Schema object`)
}

/** The same for a definition that errors call by its `label`. @throws {ArgumentError} */
export function parametersOf(given: unknown, label: string, purpose: Purpose = 'parameters'): Parameters {
  try {
    return readParameters(given, purpose)
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error
    throw new ArgumentError(`${label}: ${error.message}.`, { cause: error.cause })
  }
}

function readStandardSchema(source: StandardSchema, purpose: Purpose): Parameters {
  const generated = attempt(`${purpose} can not be written as JSON Schema`, () => jsonSchemaOf(source))
  if (generated === null) {
    const vendor = source['~standard'].vendor
    throw new ArgumentError(
      `${purpose} yield no JSON Schema: use a version of ${vendor} with Standard JSON Schema support, or pass JSON Schema`,
    )
  }
  const schema = describesObject(tidySchema(jsonCopy(generated), { closeNested: true }), purpose)
  const check = async (args: JsonObject): Promise<ValidatedArguments> => {
    const unknown = unknownArguments(schema, args)
    const result = await source['~standard'].validate(args)
    const problems = issueProblems(result.issues ?? [], args)
    if (result.issues === undefined && unknown.length === 0) return { ok: true, value: result.value }
    return refusal([...unknown.map((path) => `${path} is unknown`), ...problems], schema, purpose)
  }
  return { schema, validate: (args) => neverThrows(() => check(args)) }
}

function readJsonSchema(source: JsonObject, purpose: Purpose): Parameters {
  const copy = attempt(`${purpose} are not JSON`, () => jsonCopy(source))
  const schema = describesObject(tidySchema(copy, { closeNested: false }), purpose)
  const compiled = attempt(`${purpose} are not a valid JSON Schema`, () => compileSchema(schema, copy.$schema))
  const check = async (args: JsonObject): Promise<ValidatedArguments> => {
    // A copy, since defaults are written into what is checked.
    const value = structuredClone(args)
    if (await compiled(value)) return { ok: true, value }
    return refusal(schemaProblems(compiled.errors ?? [], args), schema, purpose)
  }
  return { schema, validate: (args) => neverThrows(() => check(args)) }
}

function issueProblems(issues: readonly StandardIssue[], args: JsonObject): string[] {
  return issues.flatMap((issue) => {
    const path = (issue.path ?? []).map(segmentOf)
    // Zod names the keys apart from the path.
    if ('keys' in issue && Array.isArray(issue.keys)) {
      return issue.keys.map((key) => `${pathText([...path, String(key)])} is unknown`)
    }
    if (path.length > 0 && valueAt(args, path) === undefined) return [`${pathText(path)} is missing`]
    const text = `${issue.message}${branchesText(issue)}`
    return [path.length > 0 ? `${pathText(path)}: ${text}` : text]
  })
}

// Zod says of a union only that nothing fits, and why each branch did not beside it.
function branchesText(issue: StandardIssue): string {
  if (!('errors' in issue) || !Array.isArray(issue.errors)) return ''
  const branches: readonly (readonly StandardIssue[])[] = issue.errors
  const texts = branches.map((inner) =>
    inner
      .map(({ path = [], message }) => {
        const where = pathText(path.map(segmentOf))
        return where === '' ? message : `${where}: ${message}`
      })
      .join(', '),
  )
  return texts.length === 0 ? '' : ` (${texts.join(' | ')})`
}

function segmentOf(part: PropertyKey | { readonly key: PropertyKey }): Segment {
  const key = typeof part === 'object' ? part.key : part
  return typeof key === 'number' ? key : String(key)
}

function refusal(problems: readonly string[], schema: JsonObject, purpose: Purpose): ValidatedArguments {
  const names = isJsonObject(schema.properties) ? Object.keys(schema.properties) : []
  const [whose, what] = purpose === 'inputs' ? ['The agent', 'inputs'] : ['The tool', 'arguments']
  const takes = names.length === 0 ? `${whose} takes no ${what}.` : `${whose}'s ${what}: ${names.join(', ')}.`
  const list = [...new Set(problems)].join('; ') || 'they do not match the schema'
  return { ok: false, message: `${list}. ${takes}` }
}

async function neverThrows(check: () => Promise<ValidatedArguments>): Promise<ValidatedArguments> {
  try {
    return await check()
  } catch (error) {
    return { ok: false, message: `the arguments could not be checked: ${textOf(error)}` }
  }
}

function describesObject(schema: JsonObject | null, purpose: Purpose): JsonObject {
  if (schema === null) {
    throw new ArgumentError(`${purpose} must describe an object: put anything else, unions too, into a property`)
  }
  return deepFreeze(schema)
}

function attempt<T>(what: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw new ArgumentError(`${what}: ${textOf(error)}`, { cause: error })
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function jsonCopy(value: unknown): JsonObject {
  const copy: unknown = JSON.parse(JSON.stringify(value))
  if (!isJsonObject(copy)) throw new ArgumentError('a JSON Schema must be an object')
  return copy
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
