import type { Model, ModelStatic, Sequelize } from 'sequelize'
import { flagColumn, idColumn, idReference, jsonColumn, numberColumn, textColumn, timeColumn } from './attributes.ts'
import type { QueuedMessageRow } from './rows.ts'

/** A row of `queued_messages` as Sequelize gives it. */
export type QueuedMessageRecord = Model<QueuedMessageRow, Partial<QueuedMessageRow>> & QueuedMessageRow

export function defineQueuedMessage(sequelize: Sequelize, tableName: string): ModelStatic<QueuedMessageRecord> {
  return sequelize.define<QueuedMessageRecord>(
    'QueuedMessage',
    {
      id: idColumn(),
      chatId: idReference(),
      position: numberColumn(),
      content: textColumn(),
      steer: flagColumn(),
      owner: jsonColumn(),
      createdAt: timeColumn(),
    },
    { tableName, underscored: true, updatedAt: false },
  )
}
