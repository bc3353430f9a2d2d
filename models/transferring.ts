import { isDeepStrictEqual } from 'node:util'
import type { Transaction } from 'sequelize'
import { type ClaimKey, fence } from './claims.ts'
import type { Database } from './database.ts'
import { readStored } from './read-row.ts'
import type { ChatSettings, Json, Transfer } from './rows.ts'
import { type PendingSettings, savePending } from './settings.ts'
import { readOpenRound } from './staging.ts'
import { storableJson } from './storable.ts'
import { readSystemMessages } from './transcript.ts'
import { wakeUp } from './wishes.ts'

/** A chat that becomes another agent's. */
export interface NewTransfer extends Transfer {
  /** Whether the system messages are those that the agent before stored: they go with it. */
  readonly leavesInstructions: boolean
  /** The system message that the new agent stores with a chat that has none; null = none. */
  readonly instructions: string | null
}

/** Makes a chat that this process holds another agent's. False = it is to be somebody else's by now: look again. */
export async function transferHeld(db: Database, key: ClaimKey, transfer: NewTransfer): Promise<boolean> {
  return db.transaction(async (transaction) => {
    await fence(db, transaction, key, { moved: true })
    const { transferTo, settings } = await readTransfer(db, key.chatId, transaction)
    const { agent, inputs } = transfer
    if (!isDeepStrictEqual(transferTo, { agent, inputs })) return false
    await applyTransfer(db, key.chatId, transfer, settings, transaction)
    return true
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
    const { settings } = await readTransfer(db, chatId, transaction)
    await applyTransfer(db, chatId, transfer, settings, transaction)
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

interface TransferredRow {
  readonly transferTo: Transfer | null
  /** Null where they can't be read: they stay as they are. */
  readonly settings: ChatSettings | null
}

/** What others may have written since the run looked: read under the lock of the row, or it would be undone. */
async function readTransfer(db: Database, chatId: string, transaction: Transaction): Promise<TransferredRow> {
  const [raw] = await db.read(
    `SELECT transfer_to AS transferTo, settings FROM ${db.tables.chats} WHERE id = $chatId`,
    { chatId },
    transaction,
  )
  const transferTo = readStored('transfer', raw?.transferTo, db.dialect) as Transfer | null
  const settings: Json = readStored('settings', raw?.settings, db.dialect)
  return {
    transferTo: transferTo === null ? null : { agent: transferTo.agent, inputs: transferTo.inputs ?? null },
    settings: settings as ChatSettings | null,
  }
}

async function applyTransfer(
  db: Database,
  chatId: string,
  { agent, inputs, leavesInstructions, instructions: stored }: NewTransfer,
  settings: ChatSettings | null,
  transaction: Transaction,
): Promise<void> {
  await db.write(
    `UPDATE ${db.tables.chats} SET agent = $agent, transfer_to = NULL, put_off = 0 WHERE id = $chatId`,
    { chatId, agent },
    transaction,
  )
  const replaces =
    leavesInstructions || (stored !== null && (await readSystemMessages(db, chatId, transaction)).length === 0)
  const instructions = stored === null ? [] : [{ content: stored, cacheBoundary: null }]
  const pending: PendingSettings = { inputs, ...withoutTools(settings), ...(replaces ? { instructions } : {}) }
  await savePending(db, { id: chatId, settings: settings ?? {} }, pending, transaction)
}

/** The names of tools in its settings were those of the agent before. */
function withoutTools(settings: ChatSettings | null): Pick<PendingSettings, 'settings'> {
  if (settings?.tools === undefined) return {}
  const { tools: _, ...others } = settings
  return { settings: others }
}
