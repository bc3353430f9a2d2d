import type { Transaction } from 'sequelize'
import { audit } from './audit.ts'
import { type ClaimKey, fence } from './claims.ts'
import type { Database } from './database.ts'
import type { Approval, JsonObject } from './rows.ts'
import { storableJson } from './storable.ts'
import { insertSubChat, type NewSubChat } from './sub-chats.ts'
import { findToolCall } from './transcript.ts'
import { newlyClosed, openRequests, type PauseState } from './waiting.ts'

// What the run that holds a chat writes about calls that wait, each in one fenced transaction.

/** What a run found about a call's approval. */
export interface FoundApproval {
  readonly id: string
  readonly from: Approval | null
  readonly to: Approval
  readonly interrupted?: boolean
  /** When the question expires; null = never. */
  readonly expiresAt?: Date | null
  /** Set where it has expired: what is said of that. */
  readonly expired?: string
}

/** What a call that waits for something outside goes on with. */
export interface NewPause {
  readonly id: string
  readonly state: PauseState
  /** The chat that is to answer the call, made along with it. */
  readonly subChat?: NewSubChat
  /** Set where questions expired. */
  readonly expired?: {
    readonly reason: string
    /** The keys of the questions that were open when that was found: an answer that came since counts. */
    readonly seen: readonly string[]
  }
}

/**
 * Leaves a call to wait for what its tool asked for, or for a task: it is executed no more, and no result is stored. False = it has
 * one, or a question that was to expire was answered meanwhile: look again.
 */
export async function pauseToolCall(db: Database, key: ClaimKey, pause: NewPause): Promise<boolean> {
  return db.transaction(async (transaction) => {
    await fence(db, transaction, key, { moved: true })
    const { expired, state } = pause
    if (expired !== undefined && !(await isUnanswered(db, key, pause.id, expired.seen, transaction))) return false
    const rows = await db.write(
      `UPDATE ${db.tables.toolCalls} SET mcp_state = $state, claimed_by = NULL, claimed_until = NULL, started_at = NULL, ` +
        `updated_at = ${db.dialect.now} WHERE id = $id AND result_id IS NULL`,
      { id: pause.id, state: storableJson('what the tool waits for', state as JsonObject) },
      transaction,
    )
    if (rows === 1 && pause.subChat !== undefined) {
      await insertSubChat(db, pause.id, pause.subChat, transaction)
    }
    if (rows === 1 && expired !== undefined) {
      for (const { key: requestKey, answer = null } of newlyClosed(state, expired.seen)) {
        const decision = { action: 'expired', reason: expired.reason, requestKey, value: answer } as const
        await audit(db, { id: pause.id, chatId: key.chatId }, decision, transaction)
      }
    }
    return rows === 1
  })
}

/** Under the lock of the chat row, which every answer takes first, what is read here stays so. */
async function isUnanswered(
  db: Database,
  { chatId }: ClaimKey,
  callId: string,
  seen: readonly string[],
  transaction: Transaction,
): Promise<boolean> {
  const call = await findToolCall(db, chatId, callId, transaction)
  const open = new Set(call === null ? [] : openRequests(call).map(({ key }) => key))
  return seen.every((key) => open.has(key))
}

/** Records what a run found about a call's approval. False = someone decided meanwhile, or the call was answered. */
export async function setApproval(db: Database, key: ClaimKey, call: FoundApproval): Promise<boolean> {
  const { expiresAt = null, expired } = call
  return db.transaction(async (transaction) => {
    await fence(db, transaction, key)
    const rows = await db.write(
      `UPDATE ${db.tables.toolCalls} SET approval = $to, asked_at = ${expired ? 'NULL' : 'COALESCE(asked_at, $askedAt)'}, ` +
        `expires_at = $expiresAt, decision_reason = $reason, updated_at = ${db.dialect.now}` +
        // An interrupted call keeps its start: only a person may let it run again.
        (call.interrupted ? ', claimed_by = NULL, claimed_until = NULL' : '') +
        ` WHERE id = $callId AND result_id IS NULL AND COALESCE(approval, '') = $from`,
      {
        callId: call.id,
        from: call.from ?? '',
        to: call.to,
        ...(expired ? {} : { askedAt: db.dialect.time(new Date()) }),
        expiresAt: expiresAt === null ? null : db.dialect.time(expiresAt),
        reason: expired ?? null,
      },
      transaction,
    )
    if (rows === 1 && expired) {
      await audit(db, { id: call.id, chatId: key.chatId }, { action: 'expired', reason: expired }, transaction)
    }
    return rows === 1
  })
}
