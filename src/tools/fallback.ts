import * as z from 'zod'
import type { FallbackModel, FallbackSettings } from '../../models/rows.ts'
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

/** When another model is asked. */
export interface FallbackOptions {
  /**
   * Codes of errors after which the next model is asked. Default: rate limits, overload, server errors, time limits, and
   * connections that failed or broke.
   */
  readonly on?: readonly string[] | undefined
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
const on = z.array(z.string().min(1), { error: 'must be a list of error codes' }).min(1, 'must name an error code')

/** Reads models in the order in which they are tried, with what they follow. */
export const fallbacksSchema: z.ZodType<FallbackSettings> = z
  .strictObject({ models: z.array(model).min(1, 'must name a model'), on: on.optional() })
  .transform(({ models, on: codes }) => (codes === undefined ? { models } : { models, on: codes }))
