import { isLostConnection } from '../config/lost-connection.ts'
import { isLockConflict } from '../config/transaction.ts'
import { selectList, usageColumns } from './columns.ts'
import type { Database } from './database.ts'
import { readRow } from './read-row.ts'
import type { UsageRow, UsageStatus } from './rows.ts'
import { treeOf } from './tree.ts'

// The only writes of a run that need no fence: money that was spent is recorded whoever holds the chat. Each is one statement
// outside of any transaction, which leaves nothing behind when it loses to another one.

export type NewUsage = Pick<
  UsageRow,
  'id' | 'chatId' | 'owner' | 'answerId' | 'operation' | 'provider' | 'model' | 'claimToken'
>

export type UsageClosing = Pick<
  UsageRow,
  | 'inputTokens'
  | 'outputTokens'
  | 'cacheReadTokens'
  | 'cacheWriteTokens'
  | 'thinkingTokens'
  | 'inputCost'
  | 'outputCost'
  | 'cacheReadCost'
  | 'cacheWriteCost'
  | 'totalCost'
  | 'errorCode'
> & { readonly status: Exclude<UsageStatus, 'pending'> }

/** Opens an entry before the request is sent. */
export async function openUsage(db: Database, usage: NewUsage): Promise<void> {
  const now = new Date()
  const row = { ...usage, status: 'pending', createdAt: now, updatedAt: now } as const
  await db.retried(() => db.insert<UsageRow>(db.tables.usages, usageColumns, [row]))
}

/** Closes an entry with what is known of the attempt; a later word of the process that made it wins. */
export async function closeUsage(db: Database, id: string, closing: UsageClosing): Promise<void> {
  await writeAlone(
    db,
    `UPDATE ${db.tables.usages} SET status = $status, input_tokens = $inputTokens, output_tokens = $outputTokens, ` +
      'cache_read_tokens = $cacheReadTokens, cache_write_tokens = $cacheWriteTokens, thinking_tokens = $thinkingTokens, ' +
      'input_cost = $inputCost, output_cost = $outputCost, cache_read_cost = $cacheReadCost, ' +
      'cache_write_cost = $cacheWriteCost, total_cost = $totalCost, error_code = $errorCode, ' +
      `updated_at = ${db.dialect.now} WHERE id = $id`,
    { id, ...closing },
  )
}

/** Closes what a dead run left open: it may have been billed, so tokens and cost stay unknown. */
export async function closeOrphanedUsages(db: Database, chatId: string, claimToken: number): Promise<void> {
  await writeAlone(
    db,
    `UPDATE ${db.tables.usages} SET status = 'failed', error_code = 'orphaned', updated_at = ${db.dialect.now} ` +
      `WHERE chat_id = $chatId AND status = 'pending' AND claim_token < $claimToken`,
    { chatId, claimToken },
  )
}

/**
 * What says the same however often it is done is also done again on another connection: a process that was frozen wakes up
 * to sessions that the server has ended, and what it spent is known to nobody else.
 */
function writeAlone(db: Database, ...statement: Parameters<Database['write']>): Promise<number> {
  return db.retried(
    () => db.write(...statement),
    (error) => isLockConflict(error) || isLostConnection(error),
  )
}

/** Every attempt of a chat and of the chats below it, in the order in which they began. */
export async function readUsages(db: Database, chatId: string): Promise<UsageRow[]> {
  const rows = await db.read(
    `${treeOf(db)} SELECT ${selectList(usageColumns, 'u')} FROM ${db.tables.usages} u JOIN tree ON tree.id = u.chat_id ` +
      'ORDER BY u.created_at, u.id',
    { chatId },
  )
  return rows.map((raw) => readRow(usageColumns, raw, db.dialect))
}
