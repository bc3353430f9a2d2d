import type { ChatRow, UsageRow } from '../../../models/rows.ts'
import type { Chat } from '../../chat/chat.ts'
import type { Message } from '../../chat/message.ts'
import type { Threadmill } from '../../threadmill.ts'
import type { TurnEnd } from './report.ts'

/** A chat's rows at one moment. */
export interface ChatState {
  readonly row: ChatRow
  readonly messages: readonly Message[]
  /** How many messages wait in its queue. */
  readonly queued: number
}

/** The rows of a chat and its sub-chats. */
export interface Snapshot {
  /** The chat first. */
  readonly chats: readonly ChatState[]
  /** The oldest first. */
  readonly usages: readonly UsageRow[]
}

/** Reads the rows of a chat and of its sub-chats. */
export async function readSnapshot(mill: Threadmill, chat: Chat): Promise<Snapshot> {
  // Below first: what a sub-chat leaves to do is in the row of the chat that waits for it, in the same transaction.
  const below: ChatState[] = []
  for (const one of await chat.subChats()) below.push(await readState(mill, one))
  const chats = [await readState(mill, chat), ...below]
  const rows = await mill.models.Usage.findAll({
    where: { chatId: chats.map(({ row }) => row.id) },
    order: [
      ['createdAt', 'ASC'],
      ['id', 'ASC'],
    ],
  })
  return { chats, usages: rows.map((row) => row.get() as UsageRow) }
}

async function readState(mill: Threadmill, chat: Chat): Promise<ChatState> {
  const record = await mill.models.Chat.findByPk(chat.id, { rejectOnEmpty: true })
  const [messages, queued] = [await chat.messages(), await chat.queuedMessages()]
  return { row: record.get() as ChatRow, messages, queued: queued.length }
}

/** How the chat ended; null while somebody runs it or is to run it, or it has work that nobody wants done. */
export async function endOf(chat: Chat, { chats }: Snapshot): Promise<Exclude<TurnEnd, 'stuck'> | null> {
  const isQuiet = chats.every(({ row }) => row.claimedBy === null && row.wantedAt === null && row.compactAt === null)
  const top = chats[0]?.row
  if (!isQuiet || top === undefined) return null
  if (top.failure !== null) return 'failed'
  if (top.cancelledTurn === top.turn) return 'cancelled'
  if (await chat.isComplete()) return 'answered'
  return top.parked ? 'waiting' : null
}
