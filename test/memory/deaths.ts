import type { Death, SettingAside } from '../../models/deaths.ts'
import { deathsSoFar } from './fence.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

// The statements of `models/deaths.ts`.

export function setAside(tables: MemoryTables, { chatId, failure, deaths }: SettingAside): boolean {
  const chat = tables.chats.get(chatId)
  const now = tables.now()
  if (chat === undefined || isClaimed(chat, now.getTime()) || deathsSoFar(chat) < deaths) return false
  const isDue = (at: Date | null) => at !== null && at <= now
  if (!isDue(chat.wantedAt) && !isDue(chat.compactAt)) return false
  chat.deaths = deathsSoFar(chat)
  Object.assign(chat, {
    claimedBy: null,
    claimedUntil: null,
    failure: { ...failure },
    endedTurn: chat.turn,
    cancelTurn: null,
  })
  Object.assign(chat, { wantedAt: null, wantedQueue: null, compactAt: null, compactAttempts: 0 })
  Object.assign(chat, { attempts: 0, putOff: 0, parked: false, updatedAt: now })
  return true
}

export function noteDeath(tables: MemoryTables, { chatId, how, after }: Death): void {
  const chat = tables.chats.get(chatId)
  if (chat !== undefined && chat.claimedBy !== null && chat.claimToken > after) chat.lastDeath = how
}
