import type { JsonObject } from './rows.ts'

/** One row of `models`: a model that some chat names. */
export interface ModelRow {
  /** A UUIDv7. */
  id: string
  /** Who serves it. */
  provider: string
  /** What the provider calls it; unique with `provider`. */
  modelId: string
  /** What people call it. */
  name: string
  /** Which family it is of; null where nobody knows. */
  family: string | null
  /** Tokens of a request and its answer together; null where nobody knows. */
  contextWindow: number | null
  /** Tokens of one answer at most; null where nobody knows. */
  maxOutputTokens: number | null
  /** What goes in and comes out; null where nobody knows. */
  modalities: JsonObject | null
  /** What it can do; null where nobody knows. */
  capabilities: string[] | null
  /** USD per million tokens; null where nobody knows. */
  pricing: JsonObject | null
  /** Whatever the application keeps with it. */
  metadata: JsonObject | null
  /** Since when the provider no longer lists it; null = it does, or nobody looked. */
  unlistedAt: Date | null
  /** When the row was written. */
  createdAt: Date
  /** When the row was last written. */
  updatedAt: Date
}
