import * as z from 'zod'
import { pageMessages } from '../../models/listing.ts'
import { ArgumentError } from '../errors.ts'
import type { ChatDependencies } from './chat-handle.ts'
import { asMessage, type Message } from './message.ts'

/** Which part of a transcript is read. */
export interface PageOptions {
  /** What comes before this position: the last ones of it. Default: the end of the transcript. */
  readonly before?: number | undefined
  /** What comes after this position, the first ones of it. Not along with `before`. */
  readonly after?: number | undefined
  /** At most so many messages; 1 to 500, default 50. */
  readonly limit?: number | undefined
}

/** Which part of what was found is read. */
export type SearchOptions = Pick<PageOptions, 'before' | 'limit'>

/** A part of a transcript. */
export interface MessagesPage {
  /** In the order of the transcript. */
  readonly messages: Message[]
  /** For the `before` of the next page, or its `after` where this one was asked for so; null after the last one. */
  readonly next: number | null
}

const position = z.int().optional()
const pageSchema = z
  .strictObject({ before: position, after: position, limit: z.int().min(1).max(500).default(50) })
  .refine(({ before, after }) => before === undefined || after === undefined, 'give before or after, not both')
const textSchema = z.string().min(1).max(1_000)

/**
 * @param text what the messages have in them; null = all messages.
 * @throws {ArgumentError} for options that there are not, or no text.
 */
export async function readPage(
  { db, files }: Pick<ChatDependencies, 'db' | 'files'>,
  chatId: string,
  options: PageOptions,
  text: string | null,
): Promise<MessagesPage> {
  const parsed = pageSchema.safeParse(options)
  const searched = textSchema.nullable().safeParse(text)
  if (!parsed.success || !searched.success) {
    const issues = [...(parsed.error?.issues ?? []), ...(searched.error?.issues ?? [])]
    const problems = issues.map(
      (issue) => `${issue.path.join('.') || (parsed.success ? 'text' : 'options')}: ${issue.message}`,
    )
    throw new ArgumentError(`Chat ${chatId} has no such page of messages. ${problems.join('; ')}`, { chatId })
  }
  const { before = null, after = null, limit } = parsed.data
  const listing = { chatId, before, after, text: searched.data, limit: limit + 1 }
  const found = (await pageMessages(db, listing)).map((message) => asMessage(message, files.store))
  const messages = after === null ? found.slice(-limit) : found.slice(0, limit)
  const edge = after === null ? messages.at(0) : messages.at(-1)
  return { messages, next: found.length > limit ? (edge?.position ?? null) : null }
}
