import * as z from 'zod'
import type { WhileRunning } from '../../models/posting.ts'
import type { Json } from '../../models/rows.ts'
import { whyUnstorable } from '../../models/storable.ts'
import { ArgumentError } from '../errors.ts'
import type { WakeOptions } from './chat-decisions.ts'
import type { InTransaction } from './chat-handle.ts'
import type { WithAttachments } from './stored-files.ts'

/** How a message is posted. */
export interface PostOptions extends WakeOptions, InTransaction, WithAttachments {
  /**
   * What happens to it while a process runs the chat, or while calls of its last answer are open:
   *
   * - `queue` (default): it waits, and starts the next turn.
   * - `steer`: it joins the running turn before its next model call, once open calls have their results.
   * - `interrupt`: the turn is cancelled, and the message starts the next one.
   * - `reject`: it is refused.
   */
  readonly whileRunning?: WhileRunning | undefined
  /** Any JSON value; kept with a message that waits in the queue. One that goes straight into the transcript has no place for it. */
  readonly owner?: Json | undefined
}

const schema = z.strictObject({
  whileRunning: z
    .enum(['queue', 'steer', 'interrupt', 'reject'], 'whileRunning is one of queue, steer, interrupt, reject')
    .default('queue'),
  wake: z.boolean('wake is true or false').default(true),
  owner: z.json('owner is a JSON value').default(null),
  attachments: z.unknown().optional(),
  transaction: z.unknown().optional(),
})

/**
 * What was left out is as it is by default.
 * @throws {ArgumentError} for options that there are not.
 */
export function postOptions(
  options: PostOptions,
  chatId: string,
): { readonly whileRunning: WhileRunning; readonly wake: boolean; readonly owner: Json } {
  const why = whyUnstorable((options as PostOptions | null)?.owner ?? null)
  if (why !== null) throw new ArgumentError(`The owner of a message for chat ${chatId} ${why}.`, { chatId })
  const parsed = schema.safeParse(options)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(({ message }) => message).join('; ')
  throw new ArgumentError(`A message can't be posted to chat ${chatId} so. ${problems}.`, { chatId })
}
