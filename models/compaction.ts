import type { Transaction } from 'sequelize'
import { type ClaimKey, fence } from './claims.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import { type PendingSettings, savePending } from './settings.ts'
import { insertMessages, linkUsages, type NewMessage, type UsageLink } from './turns.ts'

// Summaries and the wish for one. The wish has columns of its own: it can be set, met and given up without touching the
// wish to have the turn run, and the other way round.

/** Wants a summary: now, or after a delay; of several wishes the earliest wins. It changes nothing about the turn. */
export async function wantCompaction(
  db: Database,
  chatId: string,
  options: { readonly delayMs: number; readonly pending: PendingSettings },
  transaction: Transaction,
): Promise<void> {
  const { chat } = await lockChat(db, chatId, transaction)
  await savePending(db, chat, options.pending, transaction)
  const due = options.delayMs > 0 ? db.dialect.nowPlus('$delayMs') : db.dialect.now
  await db.write(
    `UPDATE ${db.tables.chats} SET compact_at = CASE WHEN compact_at IS NULL OR compact_at > ${due} THEN ${due} ELSE compact_at END, ` +
      `compact_seq = compact_seq + 1, compact_attempts = 0, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId, ...(options.delayMs > 0 ? { delayMs: options.delayMs } : {}) },
    transaction,
  )
}

/** Puts off a chat that this process can't summarise. Changes nothing if it was taken, or is no longer due. */
export async function putOffCompaction(db: Database, chatId: string, delayMs: number): Promise<void> {
  const { now, nowPlus } = db.dialect
  await db.write(
    `UPDATE ${db.tables.chats} SET compact_at = ${nowPlus('$delayMs')}, updated_at = ${now} ` +
      `WHERE id = $chatId AND compact_at <= ${now} AND (claimed_until IS NULL OR claimed_until <= ${now})`,
    { chatId, delayMs },
  )
}

/** Counts a summary that a turn asks for by itself, before it is asked for. False = the turn was cancelled: look again. */
export async function countCompaction(db: Database, key: ClaimKey): Promise<boolean> {
  return db.transaction((transaction) =>
    fence(db, transaction, key, { unlessCancelled: true, also: 'compactions = compactions + 1' }),
  )
}

export interface NewSummary extends UsageLink {
  readonly message: NewMessage
  /** `compact_seq` as read before the summary was planned: a later wish is for another summary. */
  readonly seen: number
}

/** Commits a summary, and meets the wish for it. False = the turn was cancelled, nothing was written. */
export async function commitSummary(db: Database, key: ClaimKey, summary: NewSummary): Promise<boolean> {
  const { message, seen } = summary
  return db.transaction(async (transaction) => {
    const met = `compact_at = CASE WHEN compact_seq <> ${Math.trunc(seen)} THEN compact_at ELSE NULL END`
    if (!(await fence(db, transaction, key, { messages: 1, aside: true, unlessCancelled: true, also: met })))
      return false
    await insertMessages(db, [message], transaction)
    await linkUsages(db, summary, message.id, transaction)
    return true
  })
}

/** What becomes of the wish for a summary, unless a new one was recorded after the run's look. */
export type CompactWishAfter =
  | { readonly kind: 'none' }
  /** Nothing was done about it. */
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'later'; readonly delayMs: number }

/**
 * Gives back a chat that was taken for a summary alone: its turn, its wish, a cancel and what waits stay as they are. False
 * = it was no longer held; nothing changed then.
 */
export async function releaseCompaction(
  db: Database,
  key: ClaimKey,
  { seen, wish, died }: { readonly seen: number; readonly wish: CompactWishAfter; readonly died?: boolean },
): Promise<boolean> {
  const { now, nowPlus } = db.dialect
  const due = { none: 'NULL', unchanged: 'compact_at', later: nowPlus('$delayMs') }[wish.kind]
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET claimed_by = NULL, claimed_until = NULL, ` +
      `compact_at = CASE WHEN compact_seq <> $seen THEN compact_at ELSE ${due} END, ` +
      (wish.kind === 'none' ? 'compact_attempts = 0, ' : '') +
      (died ? 'deaths = deaths + 1, ' : '') +
      `updated_at = ${now} WHERE id = $chatId AND claimed_by = $claimId AND claimed_until > ${now}`,
    {
      chatId: key.chatId,
      claimId: key.claimId,
      seen,
      ...(wish.kind === 'later' ? { delayMs: wish.delayMs } : {}),
    },
  )
  return rows === 1
}

/**
 * Gives back a chat whose summary was cancelled while its turn was at rest: the cancel is met, the turn stays as it ended,
 * and the wish goes unless something newer waits. False = it was no longer held; nothing changed then.
 */
export async function releaseCancelledCompaction(db: Database, key: ClaimKey): Promise<boolean> {
  const { now } = db.dialect
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET claimed_by = NULL, claimed_until = NULL, ` +
      'wanted_at = CASE WHEN wanted_seq <= cancel_seq AND NOT EXISTS ' +
      `(SELECT 1 FROM ${db.tables.queuedMessages} q WHERE q.chat_id = $chatId) THEN NULL ELSE wanted_at END, ` +
      `cancel_turn = NULL, updated_at = ${now} WHERE id = $chatId AND claimed_by = $claimId AND claimed_until > ${now}`,
    { chatId: key.chatId, claimId: key.claimId },
  )
  return rows === 1
}

/** What the latest answered attempt reported: how much of the context the chat took up then. */
export interface MeasuredContext {
  readonly messageId: string
  /** Input, cached input and output, reasoning included. */
  readonly tokens: number
}

/** Null where no answer is there, or its tokens were not reported. */
export async function readMeasuredContext(db: Database, chatId: string): Promise<MeasuredContext | null> {
  const [raw] = await db.read(
    `SELECT u.message_id AS messageId, u.input_tokens AS input, u.output_tokens AS output, ` +
      `COALESCE(u.cache_read_tokens, 0) + COALESCE(u.cache_write_tokens, 0) AS cached FROM ${db.tables.usages} u ` +
      `WHERE u.chat_id = $chatId AND u.operation = 'chat' AND u.status = 'succeeded' AND u.message_id IS NOT NULL ` +
      'ORDER BY u.id DESC LIMIT 1',
    { chatId },
  )
  if (raw === undefined || raw.input === null || raw.output === null) return null
  return {
    messageId: raw.messageId as string,
    tokens: Number(raw.input) + Number(raw.cached) + Number(raw.output),
  }
}
