import { wakeUp } from './fence.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

/** `cancelTurn` of `models/cancelling.ts`. */
export function cancelTurn(tables: MemoryTables, chatId: string, turn: number | null): string[] {
  const chat = tables.chats.get(chatId)
  const now = tables.now()
  const isBusy = (one: NonNullable<typeof chat>) => one.wantedAt !== null || isClaimed(one, now.getTime()) || one.parked
  if (chat === undefined || !(isBusy(chat) || chat.compactAt !== null)) return []
  if (turn !== null && chat.turn !== turn) return []
  wakeUp(chat, now)
  Object.assign(chat, { cancelTurn: chat.turn, cancelSeq: chat.wantedSeq, updatedAt: now })
  Object.assign(chat, { compactAttempts: 0, compactAt: null })
  const below = [...tables.chats.values()].filter((one) => one.parentId === chatId && isBusy(one))
  const ids = below.map(({ id }) => id).toSorted()
  return [chatId, ...ids.flatMap((id) => cancelTurn(tables, id, null))]
}
