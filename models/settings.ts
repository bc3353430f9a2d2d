import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import { findOrCreateModel, type NamedModel } from './model-rows.ts'
import { newMessage } from './new-message.ts'
import { readStored } from './read-row.ts'
import type { CacheBoundary, ChatRow, ChatSettings, JsonObject, MessageRow } from './rows.ts'
import { storableJson } from './storable.ts'
import { insertMessages } from './turns.ts'

/** Settings that a verb stores along with what it does. */
export interface PendingSettings {
  readonly model?: string | null
  /** What is known of `model`, for its row; null where there is no model. */
  readonly named?: NamedModel | null
  readonly provider?: string | null
  readonly settings?: ChatSettings
  /** Which of `settings` were changed: the others stay as they are stored, by whomever. Left out: `settings` are all that there are. */
  readonly changed?: readonly (keyof ChatSettings)[]
  readonly inputs?: JsonObject | null
  /** The system messages that the chat is to have: replaced in place where they can be. */
  readonly instructions?: readonly Instruction[]
}

/** What one system message says. */
export interface Instruction {
  readonly content: string
  readonly cacheBoundary: CacheBoundary | null
}

export function instructionOf({ content, cacheBoundary }: MessageRow): Instruction {
  return { content: content ?? '', cacheBoundary }
}

/** What is stored, but for the settings that were changed: they are as `ours` has them, or as the agent says. */
export function overlaid(
  stored: ChatSettings,
  ours: ChatSettings,
  changed: readonly (keyof ChatSettings)[] = [],
): ChatSettings {
  const isChanged = (key: string): boolean => changed.some((name) => name === key)
  return {
    ...Object.fromEntries(Object.entries(stored).filter(([key]) => !isChanged(key))),
    ...Object.fromEntries(Object.entries(ours).filter(([key]) => isChanged(key))),
  }
}

/** The settings that a chat is to have; undefined = those that it has. */
export function settingsAfter(
  stored: ChatSettings,
  { settings, changed }: Pick<PendingSettings, 'settings' | 'changed'>,
): ChatSettings | undefined {
  return settings === undefined || changed === undefined ? settings : overlaid(stored, settings, changed)
}

/**
 * Stores model and settings, and brings the system messages in line. Also while a process runs the chat: system messages
 * belong to no turn, and the next request carries them.
 * @param chat as it was read under the lock of its row.
 */
export async function savePending(
  db: Database,
  chat: Pick<ChatRow, 'id' | 'settings'>,
  pending: PendingSettings,
  transaction: Transaction,
): Promise<void> {
  const bind: Record<string, string | null> = {}
  if (pending.model !== undefined) bind.model = pending.model
  if (pending.provider !== undefined) bind.provider = pending.provider
  if (pending.named !== undefined) {
    bind.model_row_id = pending.named === null ? null : await findOrCreateModel(db, pending.named, transaction)
  }
  const settings = settingsAfter(chat.settings, pending)
  if (settings !== undefined) bind.settings = storableJson('settings', settings)
  if (pending.inputs !== undefined)
    bind.inputs = pending.inputs === null ? null : storableJson('inputs', pending.inputs)
  if (Object.keys(bind).length > 0) {
    await db.write(
      `UPDATE ${db.tables.chats} SET ${Object.keys(bind)
        .map((column) => `${column} = $${column}`)
        .join(', ')}, ` + `updated_at = ${db.dialect.now} WHERE id = $chatId`,
      { chatId: chat.id, ...bind },
      transaction,
    )
  }
  if (pending.instructions === undefined) return
  await saveInstructions(db, chat, pending.instructions, transaction)
}

/** Keeps the rows whose place can be kept, so that the same text twice writes nothing. */
async function saveInstructions(
  db: Database,
  chat: Pick<ChatRow, 'id'>,
  instructions: readonly Instruction[],
  transaction: Transaction,
): Promise<void> {
  const stored = await db.read(
    `SELECT id, content, cache_until_here AS boundary FROM ${db.tables.messages} WHERE chat_id = $chatId AND role = 'system' ORDER BY position`,
    { chatId: chat.id },
    transaction,
  )
  const kept = stored.slice(0, instructions.length)
  for (const [at, row] of kept.entries()) {
    const said = instructions[at]
    const boundary = said?.cacheBoundary ? storableJson('cacheUntilHere', said.cacheBoundary) : null
    const stored = row.boundary === null ? null : JSON.stringify(readStored('json', row.boundary, db.dialect))
    if (row.content === said?.content && stored === boundary) continue
    await db.write(
      `UPDATE ${db.tables.messages} SET content = $content, cache_until_here = $boundary, updated_at = ${db.dialect.now} WHERE id = $id`,
      { id: row.id as string, content: said?.content ?? '', boundary },
      transaction,
    )
  }
  for (const row of stored.slice(instructions.length)) {
    await db.write(`DELETE FROM ${db.tables.messages} WHERE id = $id`, { id: row.id as string }, transaction)
  }
  const added = instructions.slice(kept.length)
  await insertSystemMessages(db, chat, added, transaction)
}

async function insertSystemMessages(
  db: Database,
  chat: Pick<ChatRow, 'id'>,
  added: readonly Instruction[],
  transaction: Transaction,
): Promise<void> {
  if (added.length === 0) return
  await db.write(
    `UPDATE ${db.tables.chats} SET next_position = next_position + $added WHERE id = $chatId`,
    { chatId: chat.id, added: added.length },
    transaction,
  )
  const rows = added.map((instruction) => newMessage({ id: uuid(), chatId: chat.id, role: 'system', ...instruction }))
  await insertMessages(db, rows, transaction)
}

/** Stores settings alone. */
export async function saveSettings(
  db: Database,
  chatId: string,
  pending: PendingSettings,
  transaction: Transaction,
): Promise<void> {
  const { chat } = await lockChat(db, chatId, transaction)
  await savePending(db, chat, pending, transaction)
}

/**
 * Marks the end of the transcript as a boundary of the prompt cache. False = there is no message.
 */
export async function markBoundary(
  db: Database,
  chat: Pick<ChatRow, 'id'>,
  boundary: CacheBoundary,
  transaction: Transaction,
): Promise<boolean> {
  const [last] = await db.read(
    `SELECT id FROM ${db.tables.messages} WHERE chat_id = $chatId AND summary_through IS NULL ORDER BY position DESC LIMIT 1`,
    { chatId: chat.id },
    transaction,
  )
  if (last === undefined) return false
  await db.write(
    `UPDATE ${db.tables.messages} SET cache_until_here = $boundary, updated_at = ${db.dialect.now} WHERE id = $id`,
    { id: last.id as string, boundary: storableJson('cacheUntilHere', boundary) },
    transaction,
  )
  return true
}
