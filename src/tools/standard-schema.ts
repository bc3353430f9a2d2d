import * as z from 'zod'
import { isJsonObject } from './json-schema.ts'

/** What Threadmill needs of a Standard Schema (version 1), whichever library made it. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** True for a schema of any library that follows the standard; some libraries' schemas are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as { '~standard'?: unknown })['~standard']
  return typeof standard === 'object' && standard !== null && 'validate' in standard
}

/**
 * The JSON Schema of what a Standard Schema takes in, or null if it can't yield one.
 * @throws whatever the library throws for a schema that JSON Schema can't express.
 */
export function jsonSchemaOf(schema: StandardSchema): unknown {
  const standard: StandardSchema['~standard'] & { readonly jsonSchema?: unknown } = schema['~standard']
  if (!hasInput(standard.jsonSchema)) {
    // Zod's small variant has no converter on the schema itself.
    return schema instanceof z.core.$ZodType ? z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' }) : null
  }
  try {
    return standard.jsonSchema.input({ target: 'draft-2020-12' })
  } catch {
    // The standard asks for both dialects, but a library may know the older one only.
    return {
      $schema: 'http://json-schema.org/draft-07/schema#',
      ...toObject(standard.jsonSchema.input({ target: 'draft-07' })),
    }
  }
}

type Converter = { input(options: { readonly target: string }): unknown }

function hasInput(value: unknown): value is Converter {
  return typeof value === 'object' && value !== null && typeof (value as { input?: unknown }).input === 'function'
}

function toObject(value: unknown): object {
  return isJsonObject(value) ? value : {}
}
