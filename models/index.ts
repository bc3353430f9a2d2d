import type { CreationAttributes, ModelStatic, Sequelize, Model as SequelizeModel } from 'sequelize'
import { ConfigurationError } from '../src/errors.ts'
import { type ChatRecord, defineChat } from './chat.ts'
import { tableNames } from './database.ts'
import { type DecisionRecord, defineDecision } from './decision.ts'
import type { OwnParts } from './define.ts'
import { defineMessage, type MessageRecord } from './message.ts'
import { defineModel, type ModelRecord } from './model.ts'
import { defineQueuedMessage, type QueuedMessageRecord } from './queued-message.ts'
import { defineReceipt, type ReceiptRecord } from './receipt.ts'
import { defineToolCall, type ToolCallRecord } from './tool-call.ts'
import { defineUsage, type UsageRecord } from './usage.ts'

/** The tables as Sequelize models, for an application's own queries. */
export interface Models {
  /** One row a conversation. It can be queried and extended; a chat's acts are methods of `Chat`. */
  readonly Chat: ModelStatic<ChatRecord>
  /** One row a message of a transcript, ordered by `position`. */
  readonly Message: ModelStatic<MessageRecord>
  /** One row a tool call. Read only: a write throws `ReadOnlyModelError`. */
  readonly ToolCall: ModelStatic<ToolCallRecord>
  /** One row a user message that waits for its place in a transcript. */
  readonly QueuedMessage: ModelStatic<QueuedMessageRecord>
  /** One row a message that left the queue, and what became of it. Read only. */
  readonly Receipt: ModelStatic<ReceiptRecord>
  /** One row a model that some chat names. */
  readonly Model: ModelStatic<ModelRecord>
  /** One row a decision about a tool call, or an answer to a question of one. Read only. */
  readonly Decision: ModelStatic<DecisionRecord>
  /** One row a physical attempt at a model, failed and cancelled ones included. */
  readonly Usage: ModelStatic<UsageRecord>
}

/** What an application adds to one model; `associate` is called once all models are there. */
export interface ModelExtension<Stored extends SequelizeModel> extends OwnParts {
  /** Ties the model to others. Called once, after all models are defined. */
  readonly associate?: ((model: ModelStatic<Stored>, models: Models) => void) | undefined
}

/** What an application adds to the models. */
export interface Extensions {
  /** Columns, scopes and associations of chats. */
  readonly Chat?: ModelExtension<ChatRecord> | undefined
  /** Columns, scopes and associations of messages. */
  readonly Message?: ModelExtension<MessageRecord> | undefined
  /** Columns, scopes and associations of tool calls; their values are written by SQL, since the model is read only. */
  readonly ToolCall?: ModelExtension<ToolCallRecord> | undefined
  /** Columns, scopes and associations of queued messages. */
  readonly QueuedMessage?: ModelExtension<QueuedMessageRecord> | undefined
  /** Columns, scopes and associations of usage entries. */
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

  const Decision = defineDecision(sequelize, tables.decisions)

  const Receipt = defineReceipt(sequelize, tables.receipts)

  const Model = defineModel(sequelize, tables.models)

  const models: Models = { Chat, Message, ToolCall, QueuedMessage, Receipt, Usage, Decision, Model }
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

function tie({ Chat, Message, ToolCall, QueuedMessage, Receipt, Usage, Decision, Model }: Models): void {
  Chat.hasMany(Message, { as: 'messages', foreignKey: 'chatId' })
  Message.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  Message.hasMany(ToolCall, { as: 'toolCalls', foreignKey: 'messageId' })
  ToolCall.belongsTo(Message, { as: 'message', foreignKey: 'messageId' })
  Message.hasOne(ToolCall, { as: 'parentToolCall', foreignKey: 'resultId' })
  ToolCall.belongsTo(Message, { as: 'result', foreignKey: 'resultId' })
  Chat.hasMany(QueuedMessage, { as: 'queuedMessages', foreignKey: 'chatId' })
  QueuedMessage.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  Chat.hasMany(Receipt, { as: 'receipts', foreignKey: 'chatId' })
  Receipt.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  Receipt.belongsTo(Message, { as: 'message', foreignKey: 'messageId', constraints: false })
  Message.hasOne(Receipt, { as: 'receipt', foreignKey: 'messageId', constraints: false })
  Model.hasMany(Chat, { as: 'chats', foreignKey: 'modelRowId', constraints: false })
  Chat.belongsTo(Model, { as: 'modelRow', foreignKey: 'modelRowId', constraints: false })
  Chat.hasMany(Decision, { as: 'decisions', foreignKey: 'chatId' })
  Decision.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  ToolCall.hasMany(Decision, { as: 'decisions', foreignKey: 'toolCallId' })
  Decision.belongsTo(ToolCall, { as: 'toolCall', foreignKey: 'toolCallId' })
  Chat.hasMany(Usage, { as: 'usages', foreignKey: 'chatId' })
  Usage.belongsTo(Chat, { as: 'chat', foreignKey: 'chatId' })
  Message.hasMany(Usage, { as: 'usages', foreignKey: 'messageId' })
  Usage.belongsTo(Message, { as: 'message', foreignKey: 'messageId' })
}

function associate<Stored extends SequelizeModel>(
  extension: ModelExtension<Stored> | undefined,
  model: ModelStatic<Stored>,
  models: Models,
): void {
  extension?.associate?.(model, models)
}

/** A stored row, read by other means, as its model's record. Raw: otherwise Sequelize leaves its times out. */
export function recordOf<Stored extends SequelizeModel>(
  model: ModelStatic<Stored>,
  row: CreationAttributes<Stored>,
): Stored {
  return model.build({ ...row }, { isNewRecord: false, raw: true })
}
