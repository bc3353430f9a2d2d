import { wakeUp } from './fence.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

/** `cancelTurn` of `models/cancelling.ts`. */
export function cancelTurn(tables: MemoryTables, chatId: string, turn: number | null): string[] {
  const chat = tables.chats.get(chatId)
  const now = tables.now()
  if (chat === undefined || (turn !== null && chat.turn !== turn)) return []
  const cancels = isBusy(tables, chatId) || chat.compactAt !== null
  if (cancels) {
    wakeUp(chat, now)
    Object.assign(chat, { cancelTurn: chat.turn, cancelSeq: chat.wantedSeq, updatedAt: now })
    Object.assign(chat, { compactAttempts: 0, compactAt: null })
  }
  return [...(cancels ? [chatId] : []), ...cancelBelow(tables, chatId)]
}

/** `cancelBelow` of `models/cancelling.ts`. */
export function cancelBelow(tables: MemoryTables, chatId: string): string[] {
  const below = [...tables.chats.values()].filter((one) => one.parentId === chatId)
  const ids = below.filter(({ id, failure }) => isBusy(tables, id) || failure !== null).map(({ id }) => id)
  return ids.toSorted().flatMap((id) => cancelTurn(tables, id, null))
}

function isBusy(tables: MemoryTables, chatId: string): boolean {
  const chat = tables.chat(chatId)
  return chat.wantedAt !== null || isClaimed(chat, tables.now().getTime()) || chat.parked
}
