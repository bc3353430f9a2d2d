import * as z from 'zod'
import { type ChatListing, listChats } from '../../models/listing.ts'
import { type ChatState, chatStates } from '../../models/overview.ts'
import { type Owner, ownerKey } from '../../models/owner.ts'
import type { ChatRow } from '../../models/rows.ts'
import { ArgumentError } from '../errors.ts'
import type { ChatDependencies } from './chat-handle.ts'
import { cursorOf, placeOf } from './cursor.ts'
import { ownerInput } from './owner-input.ts'

/** Which chats are listed. */
export interface ChatsListOptions {
  /** Of this owner. Default: of all. */
  readonly owner?: Owner | undefined
  /** Of the agent of this name. Default: of all, and those without one. */
  readonly agent?: string | undefined
  /** Those that stand so, by the database's clock. Default: however they stand. */
  readonly state?: ChatState | undefined
  /** Behind this page: its `next`. */
  readonly before?: string | undefined
  /** At most so many; 1 to 200, default 50. */
  readonly limit?: number | undefined
}

/** Which chats are searched. */
export interface ChatsSearchOptions extends ChatsListOptions {
  /** Of this owner: its chats are read one by one. */
  readonly owner: Owner
}

const schema = z.strictObject({
  owner: ownerInput.optional(),
  agent: z.string().min(1).max(255).optional(),
  state: z.enum(chatStates).optional(),
  before: z.string().optional(),
  limit: z.int().min(1).max(200).default(50),
})
const searchSchema = z.object({ owner: ownerInput, text: z.string().min(1).max(1_000) })

/** Rows of a page, and the cursor of the next one. */
export interface ChatRows {
  readonly rows: readonly ChatRow[]
  readonly next: string | null
}

/**
 * @param text what the chats have in them, which needs an owner; null = all chats.
 * @throws {ArgumentError} for options that there are not, or a `before` that no page gave.
 */
export async function readChats(
  { db }: ChatDependencies,
  verb: string,
  options: ChatsListOptions,
  text: string | null,
): Promise<ChatRows> {
  const parsed = schema.safeParse(options)
  const searched = text === null ? null : searchSchema.safeParse({ ...options, text })
  if (!parsed.success || searched?.success === false) {
    const issues = [...(parsed.error?.issues ?? []), ...(searched?.error?.issues ?? [])]
    const problems = new Set(issues.map((issue) => `${issue.path.join('.') || 'options'}: ${issue.message}`))
    throw new ArgumentError(`${verb} can't list that. ${[...problems].join('; ')}`)
  }
  const { owner, agent = null, state = null, before, limit } = parsed.data
  const place = before === undefined ? null : placeOf(before, verb)
  const listing: ChatListing = {
    owner: owner === undefined ? null : ownerKey(owner),
    agent,
    state,
    text,
    before: place === null ? null : { createdAt: place.at, id: place.id },
    limit: limit + 1,
  }
  const found = await listChats(db, listing)
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return { rows, next: last === undefined ? null : cursorOf({ at: last.createdAt, id: last.id }) }
}
