import * as z from 'zod'
import type { FallbackModel, FallbackSettings } from '../../models/rows.ts'
import * as errors from '../errors.ts'
import type { Answer } from '../providers/provider.ts'

/** One change from a model that failed to the next one. */
export interface Fallback {
  /** A UUIDv7: the same in `beforeFallback` and `afterFallback`. */
  readonly id: string
  /** The provider that is asked now. */
  readonly provider: string
  /** The model that is asked now. */
  readonly model: string
  /** The model that failed. */
  readonly from: FallbackModel
  /** The model that is asked now, with its provider. */
  readonly to: FallbackModel
  /** What the model failed with. */
  readonly error: Error
  /** Counts the fallbacks of one answer from 1. */
  readonly attempt: number
  /** The answer, in `afterFallback`, where there is one. */
  readonly response?: Answer
  /** What the fallback failed with, in `afterFallback`, where it did. */
  readonly fallbackError?: unknown
  /** Whether answers are streamed. */
  streaming(): boolean
  /** Whether chunks of the failed answer were shown: viewers are told to drop them. */
  chunksYielded(): boolean
}

/** A class of errors of the model's side; {@link errors.ProviderError} itself stands for all that Threadmill has. */
export type ProviderErrorClass = abstract new (message: string) => errors.ProviderError

/** When another model is asked. */
export interface FallbackOptions {
  /**
   * Errors after which the next model is asked, by code or by class; they are stored by their codes. Default: rate limits,
   * overload, server errors, time limits, and connections that failed or broke. (E33)
   */
  readonly on?: readonly (string | ProviderErrorClass)[] | undefined
}

/** What fallbacks follow unless they say otherwise. */
export const defaultTriggers: readonly string[] = [
  'provider.rate_limit',
  'provider.server_error',
  'provider.overloaded',
  'provider.timeout',
  'provider.connection',
  'provider.stream_cut',
  'provider.stream_idle',
]

const name = z.string({ error: 'must be the id of a model' }).min(1, 'must not be empty').max(255, 'is too long')
const model = z
  .union([name, z.strictObject({ model: name, provider: name.optional() })], {
    error: 'must be the id of a model, or { model, provider }',
  })
  .transform((given): FallbackModel => {
    if (typeof given === 'string') return { model: given }
    return given.provider === undefined ? { model: given.model } : { model: given.model, provider: given.provider }
  })
const anError = 'must be the code of an error, or a class of ProviderError that names one'
const errorClass = z.custom<ProviderErrorClass>(
  (given) => isProviderErrorClass(given) && codesOf(given).length > 0,
  anError,
)
const on = z
  .array(z.union([z.string().min(1), errorClass], { error: anError }), {
    error: 'must be a list of error codes or classes',
  })
  .min(1, 'must name an error')
  .transform((given) => [...new Set(given.flatMap((one) => (typeof one === 'string' ? one : codesOf(one))))])

function isProviderErrorClass(given: unknown): given is ProviderErrorClass {
  if (typeof given !== 'function') return false
  return given === errors.ProviderError || given.prototype instanceof errors.ProviderError
}

/** The codes of the errors that are instances of a class: a code is a property of instances, so one is made of each. */
function codesOf(given: ProviderErrorClass): string[] {
  const known: readonly unknown[] = Object.values(errors)
  const classes = [...known.filter(isProviderErrorClass), given].filter(
    (one) => one === given || one.prototype instanceof given,
  )
  return classes.flatMap(codeOf)
}

/** None for an abstract class, and for one of an application's whose errors need more than a message. */
function codeOf(one: ProviderErrorClass): string[] {
  try {
    const { code } = Reflect.construct(one, ['']) as { readonly code?: string }
    return code === undefined ? [] : [code]
  } catch {
    return []
  }
}

/** Reads models in the order in which they are tried, with what they follow. */
export const fallbacksSchema: z.ZodType<FallbackSettings> = z
  .strictObject({ models: z.array(model).min(1, 'must name a model'), on: on.optional() })
  .transform(({ models, on: codes }) => (codes === undefined ? { models } : { models, on: codes }))
