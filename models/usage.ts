import type { Model, ModelStatic, Sequelize } from 'sequelize'
import { countColumn, idColumn, idReference, moneyColumn, numberColumn, timeColumn, wordColumn } from './attributes.ts'
import type { UsageRow } from './rows.ts'

/** A row of `usages` as Sequelize gives it: one physical attempt at a model. */
export type UsageRecord = Model<UsageRow, Partial<UsageRow>> & UsageRow

export function defineUsage(sequelize: Sequelize, tableName: string): ModelStatic<UsageRecord> {
  return sequelize.define<UsageRecord>(
    'Usage',
    {
      id: idColumn(),
      chatId: idReference(),
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
    { tableName, underscored: true },
  )
}
