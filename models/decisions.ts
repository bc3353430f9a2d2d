import type { Transaction } from 'sequelize'
import { selectList, toolCallColumns } from './columns.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import type { Approval, ToolCallRow } from './rows.ts'
import { readToolCall } from './transcript.ts'
import { wakeUp } from './wishes.ts'

export type DecisionOutcome =
  /** Recorded; the chat is wanted. */
  | 'recorded'
  /** The call has its result: nothing was changed. */
  | 'answered'
  /** Somebody decided before, and only a first decision was to be recorded: nothing was changed. */
  | 'decided'
  /** A process is executing the call right now: nothing was changed. */
  | 'running'
  /** The chat has no such call. */
  | 'unknown'

/** Records a person's decision about a call, from any process, unless the call was answered or is being executed. */
export async function decide(
  db: Database,
  decision: {
    readonly chatId: string
    /** The row's id or the call's public id. */
    readonly call: string
    readonly approval: Exclude<Approval, 'pending'>
    readonly wake: boolean
    /** Only if nobody has decided yet. */
    readonly ifUndecided: boolean
  },
  transaction: Transaction,
): Promise<{ readonly outcome: DecisionOutcome; readonly call: ToolCallRow | null }> {
  const { claimed, chat } = await lockChat(db, decision.chatId, transaction)
  const call = await findToolCall(db, decision.chatId, decision.call, transaction)
  if (call === null) return { outcome: 'unknown', call }
  if (call.resultId !== null) return { outcome: 'answered', call }
  if (decision.ifUndecided && call.approval !== null && call.approval !== 'pending') return { outcome: 'decided', call }
  const rows = await db.write(
    `UPDATE ${db.tables.toolCalls} SET approval = $approval, updated_at = ${db.dialect.now} WHERE id = $id AND result_id IS NULL ` +
      `AND (claimed_until IS NULL OR claimed_until <= ${db.dialect.now} OR claimed_by IS NULL OR claimed_by <> $holder)`,
    // Under the lock of the chat row nobody can start the call between this look and the write.
    { id: call.id, approval: decision.approval, holder: claimed ? (chat.claimedBy ?? '') : '' },
    transaction,
  )
  if (rows === 0) return { outcome: 'running', call }
  await db.write(
    `UPDATE ${db.tables.chats} SET ${wakeUp(db, decision.wake)}, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId: decision.chatId },
    transaction,
  )
  return { outcome: 'recorded', call: { ...call, approval: decision.approval } }
}

/** A call of one chat by either of its ids; null where the chat has none such. */
export async function findToolCall(
  db: Database,
  chatId: string,
  call: string,
  transaction?: Transaction,
): Promise<ToolCallRow | null> {
  const [raw] = await db.read(
    `SELECT ${selectList(toolCallColumns, 't')} FROM ${db.tables.toolCalls} t ` +
      'WHERE t.chat_id = $chatId AND (t.id = $call OR t.tool_call_id = $call)',
    { chatId, call },
    transaction,
  )
  return raw === undefined ? null : readToolCall(db, raw)
}
