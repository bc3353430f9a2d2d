import type { CreationAttributes, Model, ModelStatic, Sequelize } from 'sequelize'
import { type ChatRecord, defineChat } from './chat.ts'
import { tableNames } from './database.ts'
import { defineMessage, type MessageRecord } from './message.ts'
import { defineQueuedMessage, type QueuedMessageRecord } from './queued-message.ts'
import { defineToolCall, type ToolCallRecord } from './tool-call.ts'
import { defineUsage, type UsageRecord } from './usage.ts'

/** The tables as Sequelize models, for an application's own queries. */
export interface Models {
  readonly Chat: ModelStatic<ChatRecord>
  readonly Message: ModelStatic<MessageRecord>
  readonly ToolCall: ModelStatic<ToolCallRecord>
  readonly QueuedMessage: ModelStatic<QueuedMessageRecord>
  readonly Usage: ModelStatic<UsageRecord>
}

/** Defines the models on a connection and ties them together. */
export function defineModels(sequelize: Sequelize, tablePrefix: string): Models {
  const tables = tableNames(tablePrefix)
  const Chat = defineChat(sequelize, tables.chats)
  const Message = defineMessage(sequelize, tables.messages)
  const ToolCall = defineToolCall(sequelize, tables.toolCalls)
  const QueuedMessage = defineQueuedMessage(sequelize, tables.queuedMessages)
  const Usage = defineUsage(sequelize, tables.usages)

  Chat.hasMany(Message, { as: 'messages', foreignKey: 'chatId' })
  Message.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  Message.hasMany(ToolCall, { as: 'toolCalls', foreignKey: 'messageId' })
  ToolCall.belongsTo(Message, { as: 'message', foreignKey: 'messageId' })
  Message.hasOne(ToolCall, { as: 'parentToolCall', foreignKey: 'resultId' })
  ToolCall.belongsTo(Message, { as: 'result', foreignKey: 'resultId' })
  Chat.hasMany(QueuedMessage, { as: 'queuedMessages', foreignKey: 'chatId' })
  QueuedMessage.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  Chat.hasMany(Usage, { as: 'usages', foreignKey: 'chatId' })
  Usage.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  Message.hasMany(Usage, { as: 'usages', foreignKey: 'messageId' })
  Usage.belongsTo(Message, { as: 'message', foreignKey: 'messageId' })
  return { Chat, Message, ToolCall, QueuedMessage, Usage }
}

/** A stored row, read by other means, as its model's record. Raw: otherwise Sequelize leaves its times out. */
export function recordOf<Stored extends Model>(model: ModelStatic<Stored>, row: CreationAttributes<Stored>): Stored {
  return model.build({ ...row }, { isNewRecord: false, raw: true })
}
