import type { Chat, Threadmill } from '../../../src/index.ts'

type Bind = Readonly<Record<string, string | number | null>>
/** Writes behind the library's back; `{chats}` and its likes stand for the tables. */
type Write = (sql: string, bind?: Bind) => Promise<unknown>

interface Scene {
  readonly chatId: string
  /** The id of another chat, which is sound. */
  readonly otherId: string
  readonly write: Write
  /** One of the values that are none for a column of JSON; on SQLite also texts that are no JSON. */
  readonly wrong: (...values: readonly string[]) => string
  /** A time that lies far ahead; on SQLite also words. */
  readonly oddTime: string
}

const far = '8000-01-01 00:00:00.000'
const noJson = ['{', '', 'nil', '{"a":1}}', '\u0001']
const ofChat = 'WHERE chat_id = $chatId'
const lastOpen = `${ofChat} AND result_id IS NULL`
const answered = `${ofChat} AND result_id IS NOT NULL`

const kinds = {
  settings: ({ write, chatId, wrong }: Scene) =>
    write('UPDATE {chats} SET settings = $value WHERE id = $chatId', {
      chatId,
      value: wrong(
        '[]',
        '7',
        '"x"',
        'null',
        '{"tools":7}',
        '{"toolOptions":[]}',
        '{"temperature":"hot"}',
        '{"fallbacks":{}}',
      ),
    }),
  inputs: ({ write, chatId, wrong }: Scene) =>
    write('UPDATE {chats} SET inputs = $value WHERE id = $chatId', { chatId, value: wrong('[]', '7', '"x"') }),
  transfer: ({ write, chatId, wrong }: Scene) =>
    write('UPDATE {chats} SET transfer_to = $value WHERE id = $chatId', {
      chatId,
      value: wrong('[]', '{}', '{"agent":7}'),
    }),
  failure: ({ write, chatId, wrong }: Scene) =>
    write('UPDATE {chats} SET failure = $value WHERE id = $chatId', {
      chatId,
      value: wrong('[]', '7', 'null', '{"code":7}'),
    }),
  pause: ({ write, chatId, wrong }: Scene) =>
    write(`UPDATE {tool_calls} SET mcp_state = $value ${lastOpen}`, {
      chatId,
      value: wrong('[]', '7', '{"requests":7}', '{"requests":[7]}', '{"task":{"id":"t"}}', '{"subChat":{}}'),
    }),
  arguments: ({ write, chatId, wrong }: Scene) =>
    write(`UPDATE {tool_calls} SET arguments = $value ${ofChat}`, { chatId, value: wrong('[]', '7', 'null') }),
  'edited arguments': ({ write, chatId, wrong }: Scene) =>
    write(`UPDATE {tool_calls} SET edited_arguments = $value ${ofChat}`, { chatId, value: wrong('[]', '7', '"x"') }),
  attachments: ({ write, chatId, wrong }: Scene) =>
    write(`UPDATE {messages} SET attachments = $value ${ofChat} AND role = 'user'`, {
      chatId,
      value: wrong('{}', '[7]', '[{"digest":"../../x"}]'),
    }),
  reasoning: ({ write, chatId, wrong }: Scene) =>
    write(`UPDATE {messages} SET raw_reasoning = $value, citations = $value, cache_until_here = $value ${ofChat}`, {
      chatId,
      value: wrong('7', '"x"', '[{}]'),
    }),
  'a result that is gone': ({ write, chatId }: Scene) =>
    write(`DELETE FROM {messages} ${ofChat} AND role = 'tool'`, { chatId }),
  'a result without its call': ({ write, chatId }: Scene) => write(`DELETE FROM {tool_calls} ${answered}`, { chatId }),
  'a call without its result': ({ write, chatId }: Scene) =>
    write(`UPDATE {tool_calls} SET result_id = NULL ${answered}`, { chatId }),
  'a result that is a question': ({ write, chatId }: Scene) =>
    write(
      `UPDATE {tool_calls} SET result_id = (SELECT m.id FROM {messages} m WHERE m.chat_id = $chatId AND m.role = 'user' LIMIT 1) ${answered}`,
      { chatId },
    ),
  'the result of another chat': ({ write, chatId, otherId }: Scene) =>
    write(
      `UPDATE {tool_calls} SET result_id = (SELECT m.id FROM {messages} m WHERE m.chat_id = $otherId LIMIT 1) ${answered}`,
      { chatId, otherId },
    ),
  'calls of another chat': ({ write, chatId, otherId }: Scene) =>
    write(`UPDATE {tool_calls} SET chat_id = $otherId ${ofChat}`, { chatId, otherId }),
  'no ids': ({ write, chatId }: Scene) => write(`UPDATE {tool_calls} SET provider_call_id = '' ${ofChat}`, { chatId }),
  'holes in the places': async ({ write, chatId }: Scene) => {
    await write('UPDATE {chats} SET next_position = 5000 WHERE id = $chatId', { chatId })
    await write(`UPDATE {messages} SET position = 100 + position * 7 ${ofChat}`, { chatId })
  },
  'next position': ({ write, chatId }: Scene) =>
    write('UPDATE {chats} SET next_position = 0 WHERE id = $chatId', { chatId }),
  times: async ({ write, chatId, oddTime }: Scene) => {
    await write('UPDATE {chats} SET created_at = $oddTime, updated_at = $oddTime WHERE id = $chatId', {
      chatId,
      oddTime,
    })
    await write(`UPDATE {messages} SET created_at = $oddTime ${ofChat}`, { chatId, oddTime })
    await write(`UPDATE {tool_calls} SET created_at = $oddTime, asked_at = $oddTime, expires_at = $oddTime ${ofChat}`, {
      chatId,
      oddTime,
    })
  },
  'a claim that lasts for ever': ({ write, chatId }: Scene) =>
    write(`UPDATE {tool_calls} SET claimed_by = 'nobody', claimed_until = $far, started_at = $far ${ofChat}`, {
      chatId,
      far,
    }),
  roles: ({ write, chatId }: Scene) =>
    write(`UPDATE {messages} SET role = 'robot' ${ofChat} AND role = 'user'`, { chatId }),
  words: async ({ write, chatId }: Scene) => {
    await write(`UPDATE {messages} SET outcome = 'odd', encoding = 'odd', finish_reason = '' ${ofChat}`, { chatId })
    await write(`UPDATE {tool_calls} SET name = '' ${answered}`, { chatId })
    await write(`UPDATE {chats} SET wanted_queue = 'nowhere' WHERE id = $chatId`, { chatId })
  },
  'a decision of no kind': ({ write, chatId }: Scene) =>
    write(`UPDATE {tool_calls} SET approval = 'maybe' ${lastOpen}`, { chatId }),
  'a summary of what is not there': ({ write, chatId }: Scene) =>
    write(`UPDATE {messages} SET summary_through = 900 ${ofChat} AND role = 'assistant' AND position > 1`, { chatId }),
  counts: ({ write, chatId }: Scene) =>
    write(
      'UPDATE {chats} SET turn = -1, rounds = -5, cancel_turn = 99, cancel_seq = -1, ended_turn = 99 WHERE id = $chatId',
      {
        chatId,
      },
    ),
} satisfies Readonly<Record<string, (scene: Scene) => Promise<unknown>>>

/** What can be damaged. */
export type Kind = keyof typeof kinds

export const damageKinds = Object.keys(kinds) as Kind[]

/** Damages rows of a chat; `seed` chooses among the values of a kind. */
export async function damage(
  mill: Threadmill,
  chat: Pick<Chat, 'id'>,
  other: Pick<Chat, 'id'>,
  kind: Kind,
  seed: number,
): Promise<void> {
  const { sequelize } = mill
  const isSqlite = sequelize.getDialect() === 'sqlite'
  const wrong = (...values: readonly string[]) => {
    // The other database checks that JSON is JSON.
    const all = isSqlite ? [...values, ...noJson] : values
    return all[seed % all.length] ?? '7'
  }
  const write: Write = (sql, bind = {}) =>
    sequelize.query(
      sql.replaceAll(/\{(\w+)\}/g, (_, name: string) => `threadmill_${name}`),
      { bind },
    )
  const oddTime = isSqlite && seed % 2 === 0 ? 'soon' : far
  await kinds[kind]({ chatId: chat.id, otherId: other.id, write, wrong, oddTime })
}
