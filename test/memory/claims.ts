import type { ClaimKey, Release, TakeFor, TakeOptions, Untaken, WishAfter } from '../../models/claims.ts'
import type { ChatRow } from '../../models/rows.ts'
import type { DueChat } from '../../models/sweep.ts'
import { beginAnew, deathsAnew, deathsSoFar, earliest, lapsed, live, wakeUp } from './fence.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

// The statements of `models/claims.ts`, and the query of the sweeper.

export function takeChat(tables: MemoryTables, options: TakeOptions): boolean {
  const { chatId, claimId, ttlMs, reason, agents, deathsBelow } = options
  const chat = tables.chats.get(chatId)
  const now = tables.now()
  if (chat === undefined || isClaimed(chat, now.getTime()) || !isWanted(chat, reason, now)) return false
  if (chat.agent !== null && !agents.includes(chat.agent)) return false
  if (deathsBelow !== null && deathsSoFar(chat) >= deathsBelow) return false
  const deaths = (reason === 'complete' ? deathsAnew(chat) : chat.deaths) + lapsed(chat)
  const claimedUntil = new Date(now.getTime() + ttlMs)
  Object.assign(chat, { claimedBy: claimId, claimedUntil, claimToken: chat.claimToken + 1, updatedAt: now })
  Object.assign(chat, { deaths, lastDeath: null })
  count(chat, reason, now)
  return true
}

function isWanted(chat: ChatRow, reason: TakeFor, now: Date): boolean {
  if (reason === 'job') return chat.wantedAt !== null && chat.wantedAt <= now
  return reason !== 'compact-job' || (chat.compactAt !== null && chat.compactAt <= now)
}

function count(chat: ChatRow, reason: TakeFor, now: Date): void {
  switch (reason) {
    case 'job':
    case 'verb':
      Object.assign(chat, { wantedQueue: null, attempts: chat.attempts + 1 })
      return
    case 'complete':
      Object.assign(chat, { wantedQueue: null, attempts: 1 })
      beginAnew(chat)
      wakeUp(chat, now)
      return
    case 'compact-job':
      chat.compactAttempts++
      return
    case 'compact':
      return
    default:
      reason satisfies never
  }
}

export function readUntaken(tables: MemoryTables, chatId: string): Untaken | null {
  const chat = tables.chats.get(chatId)
  if (chat === undefined) return null
  const { agent, putOff, claimToken } = chat
  const { claimed, dueForMs, compactDue } = tables.look(chatId)
  return { agent, putOff, claimToken, claimed, dueForMs, compactDue, deaths: claimed ? chat.deaths : deathsSoFar(chat) }
}

/** A lapsed claim is never revived. */
export function renewChatClaim(tables: MemoryTables, key: ClaimKey, ttlMs: number): boolean {
  const chat = live(tables, key)
  if (chat === null) return false
  chat.claimedUntil = new Date(tables.now().getTime() + ttlMs)
  return true
}

export function renewToolCallClaim(tables: MemoryTables, callId: string, claimId: string, ttlMs: number): void {
  const call = tables.toolCall(callId)
  const now = tables.now()
  if (call === null || call.resultId !== null || call.claimedBy !== claimId) return
  if (call.claimedUntil !== null && call.claimedUntil > now) call.claimedUntil = new Date(now.getTime() + ttlMs)
}

export function releaseChat(tables: MemoryTables, release: Release): boolean {
  const { seen, wish, parked, failure, turnEnded, died = false } = release
  const chat = live(tables, release)
  if (chat === null) return false
  const now = tables.now()
  const wanted = chat.wantedSeq !== seen
  if (wish.kind !== 'later') chat.attempts = 0
  if (died) chat.deaths++
  chat.putOff = wish.kind === 'put-off' ? chat.putOff + 1 : 0
  if (!wanted) chat.wantedAt = dueAfter(chat, wish, now)
  if (wish.kind === 'none' && !wanted) chat.cancelTurn = null
  chat.failure = wanted ? null : failure
  if (turnEnded && (failure === null || !wanted)) chat.endedTurn = chat.turn
  chat.wantedQueue = wish.kind === 'now' ? wish.queue : null
  Object.assign(chat, { claimedBy: null, claimedUntil: null, parked, updatedAt: now })
  return true
}

function dueAfter(chat: ChatRow, wish: WishAfter, now: Date): Date | null {
  switch (wish.kind) {
    case 'none':
      return null
    case 'now':
      return earliest(chat.wantedAt, now)
    case 'later':
    case 'look-again':
    case 'put-off':
      return new Date(now.getTime() + wish.delayMs)
    default:
      return wish satisfies never
  }
}

export function cancelledAmong(tables: MemoryTables, chatIds: readonly string[]): string[] {
  return chatIds.filter((id) => {
    const chat = tables.chats.get(id)
    return chat !== undefined && chat.cancelTurn === chat.turn
  })
}

export function dueChats(tables: MemoryTables, limit: number): DueChat[] {
  const now = tables.now()
  const free = [...tables.chats.values()].filter((chat) => !isClaimed(chat, now.getTime()))
  const due = (of: 'wantedAt' | 'compactAt') =>
    free
      .filter((chat) => (chat[of]?.getTime() ?? Number.POSITIVE_INFINITY) <= now.getTime())
      .toSorted((one, other) => (one[of]?.getTime() ?? 0) - (other[of]?.getTime() ?? 0))
  const wanted = due('wantedAt').filter((chat) => chat.failure === null || chat.cancelTurn === chat.turn)
  return [
    ...wanted.slice(0, limit).map((chat) => dueChat(chat, chat.wantedQueue ?? 'complete')),
    ...due('compactAt')
      .slice(0, limit)
      .map((chat) => dueChat(chat, 'compact')),
  ]
}

function dueChat({ id: chatId, claimToken }: ChatRow, queue: DueChat['queue']): DueChat {
  return { chatId, claimToken, queue }
}
