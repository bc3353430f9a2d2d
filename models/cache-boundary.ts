import { z } from 'zod'
import type { CacheBoundary } from './rows.ts'

const optionsSchema = z.strictObject({
  ttl: z
    .string()
    .regex(/^[1-9][0-9]*[smhd]$/)
    .optional(),
})

/** What the options of `cacheUntilHere` are stored as; null = they are none. What a provider can't read would fail each request. */
export function cacheBoundaryOf(options: unknown): CacheBoundary | null {
  const parsed = optionsSchema.safeParse(options)
  if (!parsed.success) return null
  const { ttl } = parsed.data
  return ttl === undefined ? true : { ttl }
}

/** What they are instead. */
export const boundaryWords = 'takes { ttl } as its options, as { ttl: "1h" }'
