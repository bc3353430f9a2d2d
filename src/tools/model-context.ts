import * as z from 'zod'
import { hasLogin } from '../../config/base-url.ts'
import type { ModelAccess, ModelClient } from '../providers/provider.ts'
import { headersSchema } from './headers.ts'

/**
 * What a chat asks its models with and no row may hold: a tenant's own key, endpoint, headers or client. What is left out is
 * as the process is configured. Never stored, logged or part of an error.
 */
export interface ModelContext extends ModelAccess {
  /** Sent with each request, over those of the agent. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A client, in place of all clients that the process has for its provider. */
  readonly client?: ModelClient | undefined
}

/** Checks what an application gave. Its messages hold no values. */
export const modelContextSchema: z.ZodType<ModelContext> = z.strictObject({
  apiKey: z.string('must be a text').min(1, 'must not be empty').optional(),
  baseURL: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .refine((url) => !hasLogin(url), 'must hold no user name or password')
    .optional(),
  organization: z.string('must be a text').min(1, 'must not be empty').optional(),
  project: z.string('must be a text').min(1, 'must not be empty').optional(),
  headers: headersSchema.optional(),
  client: z.custom<ModelClient>(isClient, 'must have a provider name and an attempt() method').optional(),
})

export function isClient(value: unknown): value is ModelClient {
  if (typeof value !== 'object' || value === null) return false
  const client = value as Partial<Record<keyof ModelClient, unknown>>
  return typeof client.attempt === 'function' && typeof client.provider === 'string' && client.provider !== ''
}
