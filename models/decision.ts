import type { Model, ModelStatic, Sequelize } from 'sequelize'
import { idColumn, idReference, jsonColumn, textColumn, timeColumn, wordColumn } from './attributes.ts'
import { defineTable, plainModel, refuseWrites } from './define.ts'
import type { DecisionRow } from './rows.ts'

/** A row of `decisions` as Sequelize gives it. Query it freely; Threadmill alone writes it. */
export type DecisionRecord = Model<DecisionRow, Partial<DecisionRow>> & DecisionRow

export function defineDecision(sequelize: Sequelize, tableName: string): ModelStatic<DecisionRecord> {
  const model = plainModel()
  defineTable(
    model,
    {
      id: idColumn(),
      chatId: idReference(),
      toolCallId: idReference(),
      action: wordColumn(),
      decidedBy: wordColumn(),
      reason: textColumn(),
      requestKey: wordColumn(),
      value: jsonColumn(),
      createdAt: timeColumn(),
    },
    { sequelize, name: 'Decision', tableName, own: undefined, updatedAt: false },
  )
  refuseWrites(model, 'Decisions are a record of what was decided: nothing of it is changed. Query it as you like.')
  return model as ModelStatic<DecisionRecord>
}
