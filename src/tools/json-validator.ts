import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { JsonObject } from '../../models/rows.ts'
import { ArgumentError } from '../errors.ts'
import { pathText, type Segment, valueAt } from './argument-path.ts'
import { isJsonObject } from './json-schema.ts'

/** Tools are defined synchronously, so what only JSON Schema needs is loaded so, and when it is first needed. */
const load = createRequire(import.meta.url)

const OPTIONS = {
  allErrors: true,
  useDefaults: true,
  strict: false,
  logger: false,
  // Two tools may bring schemas with the same $id: they have nothing to do with each other.
  addUsedSchema: false,
} as const

type Dialect = 'draft-07' | '2019-09' | '2020-12'

/** A compiler, and how many schemas it has compiled. */
interface Compiler {
  readonly ajv: Ajv
  compiled: number
}

const compilers = new Map<Dialect, Compiler>()

/**
 * A compiler keeps all that it made, removed or not, so it is replaced after so many schemas: an application may bring a schema with each
 * message. Making one takes about as long as compiling a few schemas.
 */
const SCHEMAS_A_COMPILER = 50

/**
 * Compiles a JSON Schema.
 * @param dialect the schema's `$schema`; 2020-12 where it has none.
 * @throws {ArgumentError} for a dialect that is not known.
 * @throws whatever the compiler throws for a schema that is wrong.
 */
export function compileSchema(schema: JsonObject, dialect: unknown): ValidateFunction {
  const ajv = compilerOf(dialectOf(dialect))
  const validate = ajv.compile(schema)
  ajv.removeSchema(schema)
  return validate
}

/** One sentence part for each thing that is wrong, each naming its argument. */
export function schemaProblems(errors: readonly ErrorObject[], args: JsonObject): string[] {
  return errors.map((error) => {
    const path = segmentsOf(error.instancePath, args)
    const where = pathText(path) || 'the arguments'
    const params: Record<string, unknown> = error.params
    switch (error.keyword) {
      case 'required':
        return `${pathText([...path, String(params.missingProperty)])} is missing`
      case 'additionalProperties':
        return `${pathText([...path, String(params.additionalProperty)])} is unknown`
      case 'unevaluatedProperties':
        return `${pathText([...path, String(params.unevaluatedProperty)])} is unknown`
      case 'type':
        return `${where} must be ${[params.type].flat().join(' or ')}, not ${kindOf(valueAt(args, path))}`
      case 'enum':
        return `${where} must be one of ${[params.allowedValues]
          .flat()
          .map((value) => JSON.stringify(value))
          .join(', ')}`
      case 'const':
        return `${where} must be ${JSON.stringify(params.allowedValue)}`
      default:
        return `${where} ${error.message ?? 'is not valid'}`
    }
  })
}

function dialectOf(dialect: unknown): Dialect {
  if (dialect === undefined) return '2020-12'
  for (const known of ['draft-07', '2019-09', '2020-12'] as const) {
    if (typeof dialect === 'string' && dialect.includes(known)) return known
  }
  throw new ArgumentError(`$schema ${JSON.stringify(dialect)} is not known: use draft-07, 2019-09 or 2020-12`)
}

function compilerOf(dialect: Dialect): Ajv {
  const existing = compilers.get(dialect)
  const compiler =
    existing !== undefined && existing.compiled < SCHEMAS_A_COMPILER
      ? existing
      : { ajv: withFormats(dialect), compiled: 0 }
  compilers.set(dialect, compiler)
  compiler.compiled++
  return compiler.ajv
}

function withFormats(dialect: Dialect): Ajv {
  const made = newAjv(dialect)
  const formats: typeof import('ajv-formats') = load('ajv-formats')
  formats.default(made)
  return made
}

function newAjv(dialect: Dialect): Ajv {
  switch (dialect) {
    case 'draft-07': {
      const { Ajv }: typeof import('ajv') = load('ajv')
      return new Ajv(OPTIONS)
    }
    case '2019-09': {
      const { Ajv2019 }: typeof import('ajv/dist/2019.js') = load('ajv/dist/2019.js')
      return new Ajv2019(OPTIONS)
    }
    case '2020-12': {
      const { Ajv2020 }: typeof import('ajv/dist/2020.js') = load('ajv/dist/2020.js')
      return new Ajv2020(OPTIONS)
    }
    default:
      return dialect satisfies never
  }
}

// A JSON pointer does not say whether `0` is a key or an index: the value does.
function segmentsOf(pointer: string, args: JsonObject): Segment[] {
  const path: Segment[] = []
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    path.push(Array.isArray(valueAt(args, path)) ? Number(key) : key)
  }
  return path
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return isJsonObject(value) ? 'object' : typeof value
}
