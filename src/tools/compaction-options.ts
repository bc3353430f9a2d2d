import * as z from 'zod'
import type { CompactionSettings } from '../../models/rows.ts'

/** When and how the history of a chat is summarised by itself. */
export interface CompactionOptions {
  /**
   * How full the context may get before the next request: from 0 to 1 a share of the model's context window, above 1 a
   * number of tokens. Default 0.8.
   */
  readonly at?: number | undefined
  /** What the summary has to keep, in place of the standing instruction. */
  readonly instructions?: string | undefined
  /** True: the run ends once the summary is stored, and the next complete or job goes on with the turn. Default false. */
  readonly pauseAfter?: boolean | undefined
  /** The model that writes the summary, of the same provider. Default: the chat's own, whose prompt cache is reused. */
  readonly model?: string | undefined
  /** How many of the latest messages stay as they are; rounds are never parted, and a running turn always stays. Default 0. */
  readonly keep?: number | undefined
}

/** What one `chat.compact()` is asked for; what is left out is as the chat's or its agent's `compaction` says. */
export type CompactOptions = Pick<CompactionOptions, 'instructions' | 'model' | 'keep'>

const DEFAULT_SHARE = 0.8

const shape = {
  instructions: z.string('instructions must be a text').min(1, 'instructions must not be empty').optional(),
  model: z.string('model must be the id of a model').min(1, 'model must not be empty').max(255).optional(),
  keep: z.int('keep must be a whole number').min(0, 'keep must be at least 0').optional(),
}

/** For `chat.compact()`. */
export const compactOptions = z.strictObject(shape)

/** False for off, true for the defaults. */
export const compactionOptions: z.ZodType<CompactionSettings | false, CompactionOptions | boolean> = z
  .union(
    [
      z.boolean(),
      z.strictObject({
        ...shape,
        at: z
          .number('at must be a number')
          .positive('at must be above 0')
          .refine((at) => at <= 1 || Number.isSafeInteger(at), 'at must be a share up to 1 or a whole number of tokens')
          .optional(),
        pauseAfter: z.boolean('pauseAfter must be true or false').optional(),
      }),
    ],
    { error: 'must be true, false, or { at, instructions, pauseAfter, model, keep }' },
  )
  .transform((given): CompactionSettings | false => {
    if (typeof given === 'boolean') return given && { at: DEFAULT_SHARE }
    const { at = DEFAULT_SHARE, ...rest } = given
    const known = Object.entries(rest).filter(([, value]) => value !== undefined)
    return { at, ...Object.fromEntries(known) }
  })

/** What is wrong with options, in words. */
export function problemsOf(error: z.ZodError): string {
  return error.issues.flatMap(wordsOf).join('; ')
}

function wordsOf(issue: z.core.$ZodIssue): string[] {
  // A union says only that nothing fits; what the object lacks is inside.
  const inner =
    issue.code === 'invalid_union'
      ? issue.errors.flat().filter((one) => one.code !== 'invalid_type' || one.path.length > 0)
      : []
  return inner.length > 0 ? inner.flatMap(wordsOf) : [issue.message]
}
