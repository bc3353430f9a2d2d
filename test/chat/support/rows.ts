import type { Model, ModelStatic } from 'sequelize'
import { dialectOf } from '../../../models/dialect.ts'
import type { Chat, ChatRecord, Message, Threadmill, ToolCallRow, UsageRecord } from '../../../src/index.ts'

/** The chat's row. */
export function chatRow(mill: Threadmill, chat: { readonly id: string }): Promise<ChatRecord> {
  return mill.models.Chat.findByPk(chat.id, { rejectOnEmpty: true })
}

/** Every attempt at a model, oldest first. */
export function usageRows(mill: Threadmill, chat: { readonly id: string }): Promise<UsageRecord[]> {
  return mill.models.Usage.findAll({ where: { chatId: chat.id }, order: [['id', 'ASC']] })
}

/** Changes a row behind the library's back; the columns go by their names in the table. */
export async function change(
  model: ModelStatic<Model>,
  id: string,
  values: Readonly<Record<string, Date | string | number | null>>,
): Promise<void> {
  const { sequelize } = model
  if (!sequelize) throw new Error('The model has no connection')
  const { time } = dialectOf(sequelize.getDialect())
  const columns = Object.keys(values).map((column) => `${column} = $${column}`)
  const bound = Object.entries(values).map(([key, value]) => [key, value instanceof Date ? time(value) : value])
  const bind = { rowId: id, ...Object.fromEntries(bound) }
  await sequelize.query(`UPDATE ${model.getTableName()} SET ${columns.join(', ')} WHERE id = $rowId`, { bind })
}

/** Makes a wish in the future due, as if its time had passed. */
export async function makeDue(mill: Threadmill, chat: { readonly id: string }): Promise<void> {
  await change(mill.models.Chat, chat.id, { wanted_at: new Date(Date.now() - 60_000) })
}

/**
 * Makes it look as if a process had begun these calls and died: they and the chat are held by a claim that nobody renews
 * and that lapses after `ttlMs`.
 */
export async function abandon(
  mill: Threadmill,
  chat: { readonly id: string },
  calls: readonly { readonly id: string }[],
  ttlMs = 1_000,
): Promise<void> {
  const dead = '00000000-dead-4000-8000-000000000000'
  const until = new Date(Date.now() + ttlMs)
  for (const call of calls) {
    await change(mill.models.ToolCall, call.id, { claimed_by: dead, claimed_until: until, started_at: new Date() })
  }
  await change(mill.models.Chat, chat.id, { claimed_by: dead, claimed_until: until, wanted_at: new Date() })
}

/** The transcript in short: `user`, `assistant`, `tool`. */
export async function roles(chat: Chat): Promise<string> {
  return (await chat.messages()).map((message) => message.role).join(' ')
}

/** The calls of the last message that has any. */
export async function lastCalls(chat: Chat): Promise<ToolCallRow[]> {
  return (await chat.messages()).findLast((message) => message.toolCalls.length > 0)?.toolCalls ?? []
}

/** The only call of the last message that has any. */
export async function lastCall(chat: Chat): Promise<ToolCallRow> {
  const [call, ...more] = await lastCalls(chat)
  if (call === undefined || more.length > 0) throw new Error('The chat has not exactly one open call')
  return call
}

/** The results of a chat by the public id of their call. */
export async function resultsById(chat: Chat): Promise<Record<string, Pick<Message, 'content' | 'outcome'>>> {
  const messages = await chat.messages()
  const calls = messages.flatMap((message) => message.toolCalls)
  return Object.fromEntries(
    calls.flatMap((call) => {
      const result = messages.find((message) => message.id === call.resultId)
      return result === undefined ? [] : [[call.toolCallId, { content: result.content, outcome: result.outcome }]]
    }),
  )
}
