import { type Association, Model, type ModelStatic, type Sequelize } from 'sequelize'
import { ArgumentError } from '../src/errors.ts'
import { idColumn, idReference, jsonColumn, numberColumn, textColumn, timeColumn, wordColumn } from './attributes.ts'
import { boundaryWords, cacheBoundaryOf } from './cache-boundary.ts'
import { defineTable, type OwnParts } from './define.ts'
import type { MessageExtension } from './extension.ts'
import type { Json, JsonObject, MessageRow, Role, ToolCallRow, ToolEncoding, UsageRow } from './rows.ts'
import { type ToolCallRecord, type ToolCallValue, toValue } from './tool-call.ts'
import { type ChatCost, type ChatTokens, sumCost, sumTokens } from './usage-totals.ts'

/** A message as a plain value, without its row: `chat.addMessage(record)` copies it by this. */
export interface MessageValue {
  /** Whose message it is. */
  readonly role: Role
  /** Its text; null for an answer of tool calls only. */
  readonly content: string | null
  /** Reasoning that the provider showed. */
  readonly thinking?: string | null
  /** Why the answer ended, in the provider's words. */
  readonly finishReason?: string | null
  /** The calls that it requested, in the model's order; a copy in another chat gets ids of its own. */
  readonly toolCalls?: readonly {
    /** The call's public id. */
    readonly id: string
    /** The tool's name. */
    readonly name: string
    /** What is passed. */
    readonly arguments: JsonObject
  }[]
  /** Of a result: the public id of the call that it answers. */
  readonly toolCallId?: string
  /** Of a result: whether the call failed. */
  readonly isError?: boolean
  /** Of a result: how it is to be read back. */
  readonly encoding?: ToolEncoding
}

/** A row of `messages` as Sequelize gives it. What was not included is read where a method needs it. */
export interface MessageRecord
  extends Model<MessageRow & MessageExtension, Partial<MessageRow & MessageExtension>>,
    MessageRow,
    MessageExtension {
  /** The calls that this assistant message requested, when they were included. */
  toolCalls?: ToolCallRecord[]
  /** The call that this tool message answers, when it was included. */
  parentToolCall?: ToolCallRecord | null
  /** The message as a plain value. */
  toLlm(): Promise<MessageValue>
  /** The calls that it requested as plain values by their public ids, in the model's order. */
  callsById(): Promise<Readonly<Record<string, ToolCallValue>>>
  /** The results of its calls, in the order in which they came. */
  toolResults(): Promise<MessageRecord[]>
  /** Whether it asks for tools. */
  toolCall(): Promise<boolean>
  /** Whether it is the result of a tool. */
  toolResult(): boolean
  /** The reasoning behind it; null where the provider showed none. */
  thinking(): {
    /** What it says. */
    readonly text: string | null
    /** The provider's proof of it. */
    readonly signature: string | null
  } | null
  /** What its text says as JSON, as answers to a schema do; null where it is none. */
  parsed(): Json | null
  /** Of a result: the `error` of its text, where that is a JSON object with one; else null. */
  toolErrorMessage(): string | null
  /** Tokens of all attempts that led to it; null where none was reported. (S89) */
  tokens(): Promise<ChatTokens>
  /** USD of all attempts that led to it; null where any is unknown. */
  cost(): Promise<ChatCost>
  /**
   * Marks it as the end of a part of the prompt that the provider is to keep in its cache; `ttl` as `5m` or `1h`.
   * @throws {ArgumentError} for another `ttl`.
   */
  cacheUntilHere(options?: {
    /** How long it is to be kept, in the provider's words. */
    readonly ttl?: string
  }): Promise<MessageRecord>
  /** Whether it is marked so. */
  cachedUntilHere(): boolean
}

class MessageModel extends Model<MessageRow, Partial<MessageRow>> {
  async toLlm(): Promise<MessageValue> {
    const { role, content, outcome, encoding } = this.row
    if (role === 'tool') {
      const [call] = await this.related<ToolCallRow>('parentToolCall', { resultId: this.row.id })
      const isError = outcome !== null && outcome !== 'succeeded'
      return {
        role,
        content: content ?? '',
        toolCallId: call?.toolCallId ?? '',
        isError,
        ...(encoding === null ? {} : { encoding }),
      }
    }
    if (role !== 'assistant') return { role, content: content ?? '' }
    const calls = await this.calls()
    const { thinkingText: thinking, finishReason } = this.row
    return {
      role,
      content,
      thinking,
      finishReason,
      toolCalls: calls.map(({ toolCallId: id, name, arguments: passed }) => ({ id, name, arguments: passed })),
    }
  }

  async callsById(): Promise<Readonly<Record<string, ToolCallValue>>> {
    return Object.fromEntries((await this.calls()).map((call) => [call.toolCallId, toValue(call)]))
  }

  async toolResults(): Promise<Model[]> {
    const answered = (await this.calls()).flatMap(({ resultId }) => resultId ?? [])
    const messages = this.constructor as ModelStatic<Model>
    return messages.findAll({ where: { id: answered }, order: [['position', 'ASC']] })
  }

  async toolCall(): Promise<boolean> {
    return (await this.calls()).length > 0
  }

  toolResult(): boolean {
    return this.row.role === 'tool'
  }

  thinking() {
    const { thinkingText: text, thinkingSignature: signature } = this.row
    return text === null && signature === null ? null : { text, signature }
  }

  parsed(): Json | null {
    return jsonOf(this.row.content)
  }

  toolErrorMessage(): string | null {
    const parsed = this.row.role === 'tool' ? jsonOf(this.row.content) : null
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed) || parsed.error === undefined)
      return null
    return typeof parsed.error === 'string' ? parsed.error : JSON.stringify(parsed.error)
  }

  async tokens(): Promise<ChatTokens> {
    return sumTokens(await this.related<UsageRow>('usages', { messageId: this.row.id }))
  }

  async cost(): Promise<ChatCost> {
    return sumCost(await this.related<UsageRow>('usages', { messageId: this.row.id }))
  }

  async cacheUntilHere(options: { readonly ttl?: string } = {}): Promise<this> {
    const cacheBoundary = cacheBoundaryOf(options)
    if (cacheBoundary !== null) return this.update({ cacheBoundary })
    const { chatId } = this.row
    throw new ArgumentError(`cacheUntilHere ${boundaryWords} (chat ${chatId}).`, { chatId })
  }

  cachedUntilHere(): boolean {
    return this.row.cacheBoundary !== null
  }

  private get row(): MessageRow {
    return this.get() as MessageRow
  }

  private async calls(): Promise<ToolCallRow[]> {
    const calls = await this.related<ToolCallRow>('toolCalls', { messageId: this.row.id })
    return calls.toSorted((a, b) => a.position - b.position)
  }

  /** The rows of an association: those that were included, else what is read now. */
  private async related<Row>(name: string, where: Record<string, string>): Promise<Row[]> {
    const included: unknown = (this as unknown as Record<string, unknown>)[name]
    const found = included ?? (await associationOf(this, name).findAll({ where, useMaster: true }))
    return (Array.isArray(found) ? found : [found]).map((record: Model) => record.get() as Row)
  }
}

function associationOf(record: Model, name: string): ModelStatic<Model> {
  const association = (record.constructor as ModelStatic<Model>).associations[name]
  // They are tied together before any record exists.
  return (association as Association).target
}

function jsonOf(text: string | null): Json | null {
  try {
    return JSON.parse(text ?? '') as Json
  } catch {
    return null
  }
}

export function defineMessage(sequelize: Sequelize, tableName: string, own?: OwnParts): ModelStatic<MessageRecord> {
  // A class of its own for each connection.
  const model = class extends MessageModel {}
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
      attachments: jsonColumn(),
      cacheBoundary: { ...jsonColumn(), field: 'cache_until_here' },
      summaryThrough: numberColumn(),
      createdAt: timeColumn(),
      updatedAt: timeColumn(),
    },
    { sequelize, name: 'Message', tableName, own },
  )
  return model as unknown as ModelStatic<MessageRecord>
}
