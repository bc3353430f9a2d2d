import type { Model, ModelStatic, Sequelize } from 'sequelize'
import {
  countColumn,
  flagColumn,
  idColumn,
  idReference,
  jsonColumn,
  numberColumn,
  timeColumn,
  wordColumn,
} from './attributes.ts'
import { defineTable, type OwnParts, plainModel } from './define.ts'
import type { ChatExtension } from './extension.ts'
import type { ChatRow } from './rows.ts'

/** A row of `chats` as Sequelize gives it. */
export type ChatRecord = Model<ChatRow & ChatExtension, Partial<ChatRow & ChatExtension>> & ChatRow & ChatExtension

export function defineChat(sequelize: Sequelize, tableName: string, own?: OwnParts): ModelStatic<ChatRecord> {
  const model = plainModel()
  defineTable(
    model,
    {
      id: idColumn(),
      agent: wordColumn(),
      model: wordColumn(),
      provider: wordColumn(),
      modelRowId: idReference(),
      owner: wordColumn(),
      forkedFrom: idReference(),
      forkedPosition: numberColumn(),
      parentId: idReference(),
      parentCallId: idReference(),
      rootId: idReference(),
      depth: countColumn(),
      transferTo: jsonColumn(),
      inputs: jsonColumn(),
      settings: { ...jsonColumn(), allowNull: false, defaultValue: {} },
      nextPosition: countColumn(),
      nextQueuePosition: countColumn(),
      claimedBy: wordColumn(),
      claimedUntil: timeColumn(),
      claimToken: countColumn(),
      wantedAt: timeColumn(),
      wantedSeq: countColumn(),
      wantedQueue: wordColumn(),
      attempts: countColumn(),
      deaths: countColumn(),
      lastDeath: wordColumn(),
      putOff: countColumn(),
      rounds: countColumn(),
      failure: jsonColumn(),
      turn: countColumn(),
      cancelTurn: numberColumn(),
      cancelSeq: numberColumn(),
      cancelledTurn: numberColumn(),
      endedTurn: numberColumn(),
      compactAt: timeColumn(),
      compactSeq: countColumn(),
      compactAttempts: countColumn(),
      compactions: countColumn(),
      parked: { ...flagColumn(), defaultValue: false },
      createdAt: timeColumn(),
      updatedAt: timeColumn(),
    },
    { sequelize, name: 'Chat', tableName, own },
  )
  return model as ModelStatic<ChatRecord>
}
