import type { Model, ModelStatic } from 'sequelize'
import type { Chat, Threadmill } from '../../../src/index.ts'

/** SQL for the numbers from 0 on, ten thousand and up: as a table with the column `n`. */
function numbersBelow(count: number): string {
  const digits =
    '(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)'
  const places = ['a', 'b', 'c', 'd', 'e']
  const sum = places.map((place, at) => `${place}.d * ${10 ** at}`).join(' + ')
  return `(SELECT ${sum} AS n FROM ${places.map((place) => `${digits} ${place}`).join(', ')} WHERE ${sum} < ${count}) numbers`
}

/**
 * Copies a chat so many times (100,000 at most), with its messages and their calls, by a statement a table: rows as the product left them,
 * but for their ids.
 */
export async function copyChat(mill: Threadmill, chat: Chat, count: number): Promise<void> {
  const { sequelize } = mill
  const isSqlite = sequelize.getDialect() === 'sqlite'
  /** An id of the same length, made of the nth copy and of the id of the row that it is a copy of. */
  const idOf = (column: string) =>
    isSqlite ? `(printf('%08d', n) || substr(${column}, 9))` : `CONCAT(LPAD(n, 8, '0'), SUBSTRING(${column}, 9))`
  const copy = async (model: ModelStatic<Model>, changed: Readonly<Record<string, string>>, where: string) => {
    const columns = Object.values(model.getAttributes()).map(({ field }) => String(field))
    const values = columns.map((column) => changed[column] ?? column)
    await sequelize.query(
      `INSERT INTO ${model.getTableName()} (${columns.join(', ')}) SELECT ${values.join(', ')} ` +
        `FROM ${model.getTableName()}, ${numbersBelow(count)} WHERE ${where} = '${chat.id}'`,
    )
  }
  const { Chat: chats, Message: messages, ToolCall: toolCalls } = mill.models
  await copy(chats, { id: idOf('id') }, 'id')
  await copy(messages, { id: idOf('id'), chat_id: idOf('chat_id') }, 'chat_id')
  const call = {
    id: idOf('id'),
    chat_id: idOf('chat_id'),
    message_id: idOf('message_id'),
    tool_call_id: idOf('tool_call_id'),
  }
  await copy(toolCalls, call, 'chat_id')
}
