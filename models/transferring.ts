import type { Transaction } from 'sequelize'
import { type ClaimKey, fence } from './claims.ts'
import type { Database } from './database.ts'
import type { ChatSettings, Transfer } from './rows.ts'
import { type Instruction, savePending } from './settings.ts'
import { readOpenRound } from './staging.ts'
import { storableJson } from './storable.ts'
import { wakeUp } from './wishes.ts'

/** A chat that becomes another agent's. */
export interface NewTransfer extends Transfer {
  /** The chat's settings as they were. */
  readonly settings: ChatSettings
  /** The system messages that the chat is to have; left out, those that it has. */
  readonly instructions?: readonly Instruction[]
}

/** Makes a chat that this process holds another agent's. */
export async function transferHeld(db: Database, key: ClaimKey, transfer: NewTransfer): Promise<void> {
  await db.transaction(async (transaction) => {
    await fence(db, transaction, key)
    await applyTransfer(db, key.chatId, transfer, transaction)
  })
}

/**
 * Makes a chat another agent's, from any process: at once, or once its open round is whole and the process that runs it has looked. Returns
 * which. The transaction has locked the chat row.
 */
export async function transferChat(
  db: Database,
  { id: chatId, claimed }: { readonly id: string; readonly claimed: boolean },
  transfer: NewTransfer,
  transaction: Transaction,
): Promise<'now' | 'later'> {
  if (!claimed && (await readOpenRound(db, chatId, transaction)).length === 0) {
    await applyTransfer(db, chatId, transfer, transaction)
    return 'now'
  }
  const { agent, inputs } = transfer
  await db.write(
    `UPDATE ${db.tables.chats} SET transfer_to = $transfer, ${wakeUp(db, false)}, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId, transfer: storableJson('inputs', { agent, inputs }) },
    transaction,
  )
  return 'later'
}

/** The names of tools in its settings were those of the agent before. */
async function applyTransfer(
  db: Database,
  chatId: string,
  { agent, inputs, settings: { tools: _, ...settings }, instructions }: NewTransfer,
  transaction: Transaction,
): Promise<void> {
  await db.write(
    `UPDATE ${db.tables.chats} SET agent = $agent, transfer_to = NULL, put_off = 0 WHERE id = $chatId`,
    { chatId, agent },
    transaction,
  )
  const pending = { settings, inputs, ...(instructions === undefined ? {} : { instructions }) }
  await savePending(db, { id: chatId }, pending, transaction)
}
