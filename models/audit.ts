import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import { decisionColumns } from './columns.ts'
import type { Database } from './database.ts'
import type { DecisionRow, ToolCallRow } from './rows.ts'

/** Keeps what was decided, in the transaction that decides. */
export async function audit(
  db: Database,
  call: Pick<ToolCallRow, 'id' | 'chatId'>,
  decision: Pick<DecisionRow, 'action'> & Partial<DecisionRow>,
  transaction: Transaction,
): Promise<void> {
  const row: DecisionRow = {
    id: uuid(),
    chatId: call.chatId,
    toolCallId: call.id,
    decidedBy: null,
    reason: null,
    requestKey: null,
    value: null,
    createdAt: new Date(),
    ...decision,
  }
  await db.insert<DecisionRow>(db.tables.decisions, decisionColumns, [row], { transaction })
}
