import type { Model, ModelStatic, Sequelize } from 'sequelize'
import {
  flagColumn,
  idColumn,
  idReference,
  jsonColumn,
  numberColumn,
  textColumn,
  timeColumn,
  wordColumn,
} from './attributes.ts'
import { defineTable, type OwnParts, plainModel } from './define.ts'
import type { QueuedMessageExtension } from './extension.ts'
import type { QueuedMessageRow } from './rows.ts'

/** A row of `queued_messages` as Sequelize gives it. */
export type QueuedMessageRecord = Model<
  QueuedMessageRow & QueuedMessageExtension,
  Partial<QueuedMessageRow & QueuedMessageExtension>
> &
  QueuedMessageRow &
  QueuedMessageExtension

export function defineQueuedMessage(
  sequelize: Sequelize,
  tableName: string,
  own?: OwnParts,
): ModelStatic<QueuedMessageRecord> {
  const model = plainModel()
  defineTable(
    model,
    {
      id: idColumn(),
      chatId: idReference(),
      position: numberColumn(),
      content: textColumn(),
      attachments: jsonColumn(),
      steer: flagColumn(),
      owner: jsonColumn(),
      ownerKey: wordColumn(),
      createdAt: timeColumn(),
    },
    { sequelize, name: 'QueuedMessage', tableName, own, updatedAt: false },
  )
  return model as ModelStatic<QueuedMessageRecord>
}
