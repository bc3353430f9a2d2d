import type { Model, ModelStatic, Sequelize } from 'sequelize'
import { countColumn, idColumn, idReference, moneyColumn, numberColumn, timeColumn, wordColumn } from './attributes.ts'
import { defineTable, type OwnParts, plainModel } from './define.ts'
import type { UsageExtension } from './extension.ts'
import type { UsageRow } from './rows.ts'

/** A row of `usages` as Sequelize gives it: one physical attempt at a model. */
export type UsageRecord = Model<UsageRow & UsageExtension, Partial<UsageRow & UsageExtension>> &
  UsageRow &
  UsageExtension

export function defineUsage(sequelize: Sequelize, tableName: string, own?: OwnParts): ModelStatic<UsageRecord> {
  const model = plainModel()
  defineTable(
    model,
    {
      id: idColumn(),
      chatId: idReference(),
      owner: wordColumn(),
      messageId: idReference(),
      answerId: idReference(),
      operation: wordColumn(),
      provider: wordColumn(),
      model: wordColumn(),
      status: wordColumn(),
      claimToken: countColumn(),
      inputTokens: numberColumn(),
      outputTokens: numberColumn(),
      cacheReadTokens: numberColumn(),
      cacheWriteTokens: numberColumn(),
      thinkingTokens: numberColumn(),
      inputCost: moneyColumn(),
      outputCost: moneyColumn(),
      cacheReadCost: moneyColumn(),
      cacheWriteCost: moneyColumn(),
      totalCost: moneyColumn(),
      errorCode: wordColumn(),
      createdAt: timeColumn(),
      updatedAt: timeColumn(),
    },
    { sequelize, name: 'Usage', tableName, own },
  )
  return model as ModelStatic<UsageRecord>
}
