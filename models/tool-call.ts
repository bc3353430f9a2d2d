import { Model, type ModelStatic, type Sequelize } from 'sequelize'
import { ReadOnlyModelError } from '../src/errors.ts'
import { argumentsHash } from './arguments-hash.ts'
import {
  countColumn,
  flagColumn,
  idColumn,
  idReference,
  jsonColumn,
  textColumn,
  timeColumn,
  wordColumn,
} from './attributes.ts'
import { defineTable, type OwnParts } from './define.ts'
import type { ToolCallExtension } from './extension.ts'
import type { MessageRecord } from './message.ts'
import type { JsonObject, ToolCallRow } from './rows.ts'
import { asObject } from './transcript.ts'

/** A tool call as a plain value, without its row. */
export interface ToolCallValue {
  /** The id that is unique here. */
  readonly id: string
  /** The id that the provider sent, where it is another one. */
  readonly providerCallId: string | null
  /** The tool's name, as the model wrote it. */
  readonly name: string
  /** Where the tool comes from, for tools that have such a place; else null. */
  readonly namespace: string | null
  /** What the model passed; `{}` when that was not one JSON object. */
  readonly arguments: JsonObject
  /** The text that was not one JSON object; else null. */
  readonly malformedArguments: string | null
  /** The provider's proof of the reasoning behind the call; else null. */
  readonly thoughtSignature: string | null
  /** Whether the provider itself executes it. */
  readonly remote: boolean
}

/** A row of `tool_calls` as Sequelize gives it. Query it freely; Threadmill alone writes it. */
export interface ToolCallRecord
  extends Model<ToolCallRow & ToolCallExtension, Partial<ToolCallRow & ToolCallExtension>>,
    ToolCallRow,
    ToolCallExtension {
  /** The assistant message that requested the call, when it was included. */
  message?: MessageRecord
  /** The tool message that answers it, when it was included; null while there is none. */
  result?: MessageRecord | null
  /** Whether a process is executing this call, by this process's clock: it has no result and its claim has not expired. */
  running(): boolean
  /** Whether the call waits on a task or on questions that it asked. */
  paused(): boolean
  /** The call as a plain value. */
  toLlm(): ToolCallValue
  /**
   * What `approve(call, { argumentsHash })` takes: SHA-256, as hex, of the tool and of what the call would run with. Show it with the
   * call, and a decision about other arguments than those is refused.
   */
  argumentsHash(): string
}

export function defineToolCall(sequelize: Sequelize, tableName: string, own?: OwnParts): ModelStatic<ToolCallRecord> {
  class ToolCall extends Model<ToolCallRow, Partial<ToolCallRow>> {
    running(): boolean {
      const until = this.getDataValue('claimedUntil')
      return this.getDataValue('resultId') === null && until != null && until.getTime() > Date.now()
    }

    paused(): boolean {
      return Object.keys(asObject(this.getDataValue('mcpState'))).length > 0
    }

    toLlm(): ToolCallValue {
      return toValue(this.get() as ToolCallRow)
    }

    argumentsHash(): string {
      return argumentsHash(this.get() as ToolCallRow)
    }
  }
  defineTable(
    ToolCall,
    {
      id: idColumn(),
      chatId: idReference(),
      messageId: idReference(),
      resultId: idReference(),
      position: countColumn(),
      toolCallId: wordColumn(),
      providerCallId: textColumn(),
      name: wordColumn(),
      namespace: wordColumn(),
      arguments: {
        ...jsonColumn(),
        get(this: ToolCall) {
          return asObject(this.getDataValue('arguments'))
        },
      },
      malformedArguments: textColumn(),
      thoughtSignature: textColumn(),
      approval: wordColumn(),
      remote: flagColumn(),
      offered: flagColumn(),
      claimedBy: wordColumn(),
      claimedUntil: timeColumn(),
      startedAt: timeColumn(),
      mcpState: jsonColumn(),
      editedArguments: jsonColumn(),
      decidedBy: wordColumn(),
      decisionReason: textColumn(),
      askedAt: timeColumn(),
      expiresAt: timeColumn(),
      createdAt: timeColumn(),
      updatedAt: timeColumn(),
    },
    { sequelize, name: 'ToolCall', tableName, own },
  )
  for (const hook of ['beforeSave', 'beforeBulkCreate', 'beforeBulkUpdate', 'beforeUpsert'] as const) {
    ToolCall.addHook(hook, 'readOnly', refuseWrite)
  }
  // No hook tells of these; Sequelize's other ways to count up and down come down to this one.
  Object.assign(ToolCall, { increment: async () => refuseWrite() })
  return ToolCall as unknown as ModelStatic<ToolCallRecord>
}

/** A row as a plain value. */
export function toValue(row: ToolCallRow): ToolCallValue {
  return {
    id: row.toolCallId,
    providerCallId: row.providerCallId,
    name: row.name,
    namespace: row.namespace,
    arguments: row.arguments,
    malformedArguments: row.malformedArguments,
    thoughtSignature: row.thoughtSignature,
    remote: row.remote,
  }
}

function refuseWrite(): never {
  throw new ReadOnlyModelError(
    'Tool calls are written by Threadmill alone. Decide about them with chat.approve() and chat.deny(); query them as you like.',
  )
}
