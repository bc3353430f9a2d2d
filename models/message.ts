import type { Model, ModelStatic, Sequelize } from 'sequelize'
import { idColumn, idReference, jsonColumn, numberColumn, textColumn, timeColumn, wordColumn } from './attributes.ts'
import { defineTable, type OwnParts, plainModel } from './define.ts'
import type { MessageExtension } from './extension.ts'
import type { MessageRow } from './rows.ts'
import type { ToolCallRecord } from './tool-call.ts'

/** A row of `messages` as Sequelize gives it; `toolCalls` and `parentToolCall` are there when they were included. */
export type MessageRecord = Model<MessageRow & MessageExtension, Partial<MessageRow & MessageExtension>> &
  MessageRow &
  MessageExtension & {
    /** The calls that this assistant message requested. */
    toolCalls?: ToolCallRecord[]
    /** The call that this tool message answers. */
    parentToolCall?: ToolCallRecord | null
  }

export function defineMessage(sequelize: Sequelize, tableName: string, own?: OwnParts): ModelStatic<MessageRecord> {
  const model = plainModel()
  defineTable(
    model,
    {
      id: idColumn(),
      chatId: idReference(),
      position: numberColumn(),
      role: wordColumn(),
      content: textColumn(),
      thinkingText: textColumn(),
      thinkingSignature: textColumn(),
      rawReasoning: jsonColumn(),
      citations: jsonColumn(),
      finishReason: wordColumn(),
      outcome: wordColumn(),
      encoding: wordColumn(),
      cacheUntilHere: jsonColumn(),
      summaryThrough: numberColumn(),
      createdAt: timeColumn(),
      updatedAt: timeColumn(),
    },
    { sequelize, name: 'Message', tableName, own },
  )
  return model as ModelStatic<MessageRecord>
}
