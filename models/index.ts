import type { CreationAttributes, Model, ModelStatic, Sequelize } from 'sequelize'
import { ConfigurationError } from '../src/errors.ts'
import { type ChatRecord, defineChat } from './chat.ts'
import { tableNames } from './database.ts'
import type { OwnParts } from './define.ts'
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

/** What an application adds to one model; `associate` is called once all models are there. */
export interface ModelExtension<Stored extends Model> extends OwnParts {
  readonly associate?: ((model: ModelStatic<Stored>, models: Models) => void) | undefined
}

/** What an application adds to the models. */
export interface Extensions {
  readonly Chat?: ModelExtension<ChatRecord> | undefined
  readonly Message?: ModelExtension<MessageRecord> | undefined
  readonly ToolCall?: ModelExtension<ToolCallRecord> | undefined
  readonly QueuedMessage?: ModelExtension<QueuedMessageRecord> | undefined
  readonly Usage?: ModelExtension<UsageRecord> | undefined
}

/**
 * Defines the models on a connection and ties them together.
 * @throws {ConfigurationError} when the application's own parts clash with ours.
 */
export function defineModels(sequelize: Sequelize, tablePrefix: string, extend: Extensions = {}): Models {
  const tables = tableNames(tablePrefix)
  const Chat = defineChat(sequelize, tables.chats, extend.Chat)
  const Message = defineMessage(sequelize, tables.messages, extend.Message)
  const ToolCall = defineToolCall(sequelize, tables.toolCalls, extend.ToolCall)
  const QueuedMessage = defineQueuedMessage(sequelize, tables.queuedMessages, extend.QueuedMessage)
  const Usage = defineUsage(sequelize, tables.usages, extend.Usage)

  const models: Models = { Chat, Message, ToolCall, QueuedMessage, Usage }
  try {
    tie(models)
    associate(extend.Chat, Chat, models)
    associate(extend.Message, Message, models)
    associate(extend.ToolCall, ToolCall, models)
    associate(extend.QueuedMessage, QueuedMessage, models)
    associate(extend.Usage, Usage, models)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigurationError(`connect({ extend }) can't be applied: ${reason}`, { cause: error })
  }
  return models
}

function tie({ Chat, Message, ToolCall, QueuedMessage, Usage }: Models): void {
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
}

function associate<Stored extends Model>(
  extension: ModelExtension<Stored> | undefined,
  model: ModelStatic<Stored>,
  models: Models,
): void {
  extension?.associate?.(model, models)
}

/** A stored row, read by other means, as its model's record. Raw: otherwise Sequelize leaves its times out. */
export function recordOf<Stored extends Model>(model: ModelStatic<Stored>, row: CreationAttributes<Stored>): Stored {
  return model.build({ ...row }, { isNewRecord: false, raw: true })
}
