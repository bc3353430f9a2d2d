import * as z from 'zod'
import type { JsonObject, OutputSchema } from '../../models/rows.ts'
import { ArgumentError } from '../errors.ts'
import { isJsonObject } from './json-schema.ts'
import { readParameters } from './parameters.ts'
import { isStandardSchema, type StandardSchema } from './standard-schema.ts'

/** A JSON Schema with the name that the provider gets it under. */
export interface NamedSchema {
  /** Default `response`. Characters that providers do not take become `_`. */
  readonly name?: string | undefined
  /** What it describes, for the model. */
  readonly description?: string | undefined
  /** A Zod schema, any Standard Schema that yields JSON Schema, or JSON Schema of an object. */
  readonly schema: StandardSchema | Readonly<Record<string, unknown>>
  /** True: the provider guarantees the shape, and takes a part of JSON Schema only. Default: not asked for. */
  readonly strict?: boolean | undefined
}

/** What an answer has to look like: a schema, or one with a name. */
export type SchemaInput = StandardSchema | NamedSchema | Readonly<Record<string, unknown>>

const DEFAULT_NAME = 'response'
const named = z.strictObject({
  name: z.string().min(1).optional(),
  description: z.string().optional(),
  schema: z.custom<object>((value) => typeof value === 'object' && value !== null),
  strict: z.boolean().optional(),
})

/**
 * A schema as it is stored and sent.
 * @throws {ArgumentError} for what describes no object.
 */
export function readOutputSchema(input: unknown): OutputSchema {
  const given = isStandardSchema(input) ? { schema: input } : named.safeParse(input).data
  if (given === undefined) {
    if (!isJsonObject(input))
      throw new ArgumentError('a schema must be a Zod schema, a Standard Schema or a JSON Schema')
    const { title } = input
    return stored({ schema: input, name: typeof title === 'string' ? title : undefined })
  }
  return stored(given)
}

function stored({ name, description, schema, strict }: z.infer<typeof named>): OutputSchema {
  return {
    name: (name ?? DEFAULT_NAME).replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 64),
    ...(description === undefined ? {} : { description }),
    schema: plain(schema),
    ...(strict === undefined ? {} : { strict }),
  }
}

function plain(schema: object): JsonObject {
  try {
    return structuredClone(readParameters(schema).schema)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^parameters /, '') : String(error)
    throw new ArgumentError(`a schema ${reason}`, { cause: error })
  }
}
