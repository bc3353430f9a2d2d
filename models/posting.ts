import type { Transaction } from 'sequelize'
import { ChatRunningError } from '../src/errors.ts'
import { interruptTurn } from './cancelling.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import type { Json } from './rows.ts'
import { openRound, queueInstead, readOpenRound, type Staged, type Staging, stageNow } from './staging.ts'

/** What happens to a message that is posted while a process runs the chat, or while calls of its last answer are open. */
export type WhileRunning = 'queue' | 'steer' | 'interrupt' | 'reject'

export interface Posting extends Staging {
  readonly whileRunning: WhileRunning
  /** Kept with a message that waits in the queue. */
  readonly owner: Json | null
}

/**
 * Takes a user message whatever the chat is doing. All of it is decided under the lock of the chat row, which a take, a commit
 * and a release of a run need too: what is seen here holds until this is committed.
 * @throws {ChatRunningError} {PendingToolCallsError} when it was to be rejected; nothing is written then.
 */
export async function postMessage(db: Database, posting: Posting, transaction: Transaction): Promise<Staged> {
  const { chatId, whileRunning, owner, want } = posting
  const look = await lockChat(db, chatId, transaction)
  const open = await readOpenRound(db, chatId, transaction)
  if (!look.claimed && open.length === 0) return stageNow(db, posting, look, transaction)
  switch (whileRunning) {
    case 'reject':
      throw look.claimed ? running(chatId) : openRound(chatId, open)
    case 'interrupt':
      // The message is wished for after the cancel, so that what settles the cancel leaves its wish.
      await interruptTurn(db, chatId, transaction)
      break
    case 'queue':
    case 'steer':
      break
    default:
      return whileRunning satisfies never
  }
  const how = { steer: whileRunning === 'steer', owner, wake: want }
  return queueInstead(db, posting, how, look.chat, transaction)
}

function running(chatId: string): ChatRunningError {
  return new ChatRunningError(
    `Chat ${chatId} is being run by another process: post the message when it is idle, or let it wait in the queue.`,
    { chatId },
  )
}
