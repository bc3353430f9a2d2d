import type { ChatRow } from '../../models/rows.ts'
import { liftFailure, wakeUp } from './fence.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

/** `cancelTurn` of `models/cancelling.ts`. */
export function cancelTurn(tables: MemoryTables, chatId: string, turn: number | null): string[] {
  const chat = tables.chats.get(chatId)
  if (chat === undefined || (turn !== null && chat.turn !== turn)) return []
  const cancelled = isBusy(tables, chat) || chat.compactAt !== null
  if (cancelled) cancelOne(tables, chat)
  return [...(cancelled ? [chatId] : []), ...cancelBelow(tables, chatId)]
}

/** `cancelSubChat` of the same. */
export function cancelSubChat(tables: MemoryTables, chatId: string): string[] {
  const chat = tables.chats.get(chatId)
  if (chat === undefined) return []
  const cancelled = isBusy(tables, chat) || chat.compactAt !== null || chat.failure !== null
  if (cancelled) {
    cancelOne(tables, chat)
    liftFailure(chat)
  }
  return [...(cancelled ? [chatId] : []), ...cancelBelow(tables, chatId)]
}

/** `cancelBelow` of the same. */
export function cancelBelow(tables: MemoryTables, chatId: string): string[] {
  const below = [...tables.chats.values()].filter((one) => one.parentId === chatId)
  const waits = ({ parentCallId }: ChatRow) => parentCallId !== null && tables.toolCall(parentCallId)?.resultId === null
  const ids = below.filter((one) => isBusy(tables, one) || (one.failure !== null && waits(one))).map(({ id }) => id)
  return ids.toSorted().flatMap((id) => cancelSubChat(tables, id))
}

function cancelOne(tables: MemoryTables, chat: ChatRow): void {
  const now = tables.now()
  wakeUp(chat, now)
  Object.assign(chat, { cancelTurn: chat.turn, cancelSeq: chat.wantedSeq, updatedAt: now })
  Object.assign(chat, { compactAttempts: 0, compactAt: null })
}

function isBusy(tables: MemoryTables, chat: ChatRow): boolean {
  return chat.wantedAt !== null || isClaimed(chat, tables.now().getTime()) || chat.parked
}
