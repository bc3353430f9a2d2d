import type { Model, ModelStatic, Sequelize } from 'sequelize'
import { idColumn, jsonColumn, numberColumn, timeColumn, wordColumn } from './attributes.ts'
import { defineTable, plainModel } from './define.ts'
import type { ModelRow } from './rows.ts'

/** A row of `models` as Sequelize gives it. */
export type ModelRecord = Model<ModelRow, Partial<ModelRow>> & ModelRow

export function defineModel(sequelize: Sequelize, tableName: string): ModelStatic<ModelRecord> {
  const model = plainModel()
  defineTable(
    model,
    {
      id: idColumn(),
      provider: wordColumn(),
      modelId: wordColumn(),
      name: wordColumn(),
      family: wordColumn(),
      contextWindow: numberColumn(),
      maxOutputTokens: numberColumn(),
      modalities: jsonColumn(),
      capabilities: jsonColumn(),
      pricing: jsonColumn(),
      metadata: jsonColumn(),
      unlistedAt: timeColumn(),
      createdAt: timeColumn(),
      updatedAt: timeColumn(),
    },
    { sequelize, name: 'Model', tableName, own: undefined },
  )
  return model as ModelStatic<ModelRecord>
}
