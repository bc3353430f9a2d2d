import type { Model, ModelStatic, Sequelize } from 'sequelize'
import { idColumn, idReference, timeColumn, wordColumn } from './attributes.ts'
import { defineTable, plainModel, refuseWrites } from './define.ts'
import type { ReceiptRow } from './rows.ts'

/** A row of `receipts` as Sequelize gives it. Query it freely; Threadmill alone writes it. */
export type ReceiptRecord = Model<ReceiptRow, Partial<ReceiptRow>> & ReceiptRow

export function defineReceipt(sequelize: Sequelize, tableName: string): ModelStatic<ReceiptRecord> {
  const model = plainModel()
  defineTable(
    model,
    {
      id: idColumn(),
      chatId: idReference(),
      status: wordColumn(),
      messageId: idReference(),
      queuedAt: timeColumn(),
      settledAt: timeColumn(),
    },
    { sequelize, name: 'Receipt', tableName, own: undefined, createdAt: false, updatedAt: false },
  )
  refuseWrites(
    model,
    'Receipts are a record of what became of messages: nothing of it is changed. Query it as you like.',
  )
  return model as ModelStatic<ReceiptRecord>
}
