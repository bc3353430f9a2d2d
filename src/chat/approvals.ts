import * as z from 'zod'
import type { Database } from '../../models/database.ts'
import { readInbox } from '../../models/inbox.ts'
import { type Models, recordOf } from '../../models/index.ts'
import { type Owner, ownerKey, ownerOf } from '../../models/owner.ts'
import type { ToolCallRecord } from '../../models/tool-call.ts'
import { ArgumentError } from '../errors.ts'
import { cursorOf, placeOf } from './cursor.ts'
import { ownerInput } from './owner-input.ts'

/** A call that waits for a decision. */
export interface PendingApproval {
  /** The chat that waits: `mill.chats.find(chatId)`, then `approve` or `deny`. */
  readonly chatId: string
  /** The chat that people see, where that is a sub-chat: its `approve` and `deny` take the call too. `chatId` of any other. (E91) */
  readonly rootChatId: string
  /** The chat's agent; null for one without. */
  readonly agent: string | null
  /** What the chat belongs to; null where the application did not say. */
  readonly owner: Owner | null
  /** The call. */
  readonly toolCall: ToolCallRecord
  /** Since when it waits. */
  readonly askedAt: Date
  /** When nobody waits for a decision any longer; null = never. */
  readonly expiresAt: Date | null
}

/** Which calls are listed. */
export interface ApprovalsOptions {
  /** Of chats of this owner. Default: of all. */
  readonly owner?: Owner | undefined
  /** Behind this page: its `next`. */
  readonly before?: string | undefined
  /** At most so many; 1 to 200, default 50. */
  readonly limit?: number | undefined
}

/** One page of the inbox. */
export interface ApprovalsPage {
  /** Newest first. */
  readonly approvals: readonly PendingApproval[]
  /** For `before` of the next page; null after the last one. */
  readonly next: string | null
}

const schema = z.strictObject({
  owner: ownerInput.optional(),
  before: z.string().optional(),
  limit: z.int().min(1).max(200).default(50),
})

/** An inbox over all chats: `mill.approvals`. */
export class Approvals {
  readonly #db: Database
  readonly #models: Models

  /** @internal */
  constructor(db: Database, models: Models) {
    this.#db = db
    this.#models = models
  }

  /**
   * Calls that wait for a decision, newest first, a page at a time. A call is listed once a run has found that it needs one. (E44)
   * @throws {ArgumentError} for options that there are not, or a `before` that no page gave.
   */
  async list(options: ApprovalsOptions = {}): Promise<ApprovalsPage> {
    const parsed = schema.safeParse(options)
    if (!parsed.success) {
      const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'options'}: ${issue.message}`)
      throw new ArgumentError(`approvals.list() can't list that. ${problems.join('; ')}`)
    }
    const { owner, before, limit } = parsed.data
    const place = before === undefined ? null : placeOf(before, 'approvals.list()')
    const rows = await readInbox(this.#db, {
      owner: owner === undefined ? null : ownerKey(owner),
      before: place === null ? null : { askedAt: place.at, id: place.id },
      limit: limit + 1,
    })
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1)?.call : undefined
    return {
      approvals: page.map(({ call, chat }) => ({
        chatId: chat.id,
        rootChatId: chat.rootId ?? chat.id,
        agent: chat.agent,
        owner: ownerOf(chat.owner),
        toolCall: recordOf(this.#models.ToolCall, call),
        askedAt: call.askedAt ?? call.createdAt,
        expiresAt: call.expiresAt,
      })),
      next: last?.askedAt ? cursorOf({ at: last.askedAt, id: last.id }) : null,
    }
  }
}
