import { type ClaimKey, claimLost, type FenceOptions } from '../../models/claims.ts'
import { aloneFrom } from '../../models/deaths.ts'
import type { ChatRow } from '../../models/rows.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

// The claim and the wish in the words of `models/claims.ts`.

/** The chat, where the claim is this one and has not lapsed. */
export function live(tables: MemoryTables, { chatId, claimId }: ClaimKey): ChatRow | null {
  const chat = tables.chats.get(chatId)
  return chat !== undefined && chat.claimedBy === claimId && isClaimed(chat, tables.now().getTime()) ? chat : null
}

/**
 * Proves the claim and changes nothing. Null only when the turn was cancelled and the caller asked to be told.
 * @throws {ClaimLostError} {ChatNotFoundError}
 */
export function prove(
  tables: MemoryTables,
  key: ClaimKey,
  { unlessCancelled = false }: Pick<FenceOptions, 'unlessCancelled'> = {},
): ChatRow | null {
  tables.chat(key.chatId)
  const chat = live(tables, key)
  if (chat === null) throw claimLost(key.chatId)
  return unlessCancelled && chat.cancelTurn !== null && chat.cancelTurn === chat.turn ? null : chat
}

/** What the fence of a transaction that goes through writes; positions are counted where messages are appended. */
export function pass(
  tables: MemoryTables,
  chat: ChatRow,
  { messages = 0, aside = false, moved = false, round = false }: Omit<FenceOptions, 'unlessCancelled' | 'also'> = {},
): void {
  if (messages > 0 && !aside) Object.assign(chat, { attempts: 0, putOff: 0 })
  if (messages > 0 || moved) chat.deaths = 0
  if (round) chat.rounds++
  chat.updatedAt = tables.now()
}

/** @throws {ClaimLostError} {ChatNotFoundError} */
export function fence(tables: MemoryTables, key: ClaimKey, options: FenceOptions = {}): ChatRow | null {
  const chat = prove(tables, key, options)
  if (chat !== null) pass(tables, chat, options)
  return chat
}

/** A wish for now, or only the count of a change for the process that runs the chat. */
export function wakeUp(chat: ChatRow, now: Date, wake = true): void {
  if (wake) chat.wantedAt = earliest(chat.wantedAt, now)
  chat.wantedSeq++
}

/** Of two due times the earlier one. */
export function earliest(wanted: Date | null, due: Date): Date {
  return wanted === null || wanted > due ? due : wanted
}

/** A failed or cancelled turn is tried again. */
export function tryAgain(chat: ChatRow): void {
  chat.deaths = deathsAnew(chat)
  beginAnew(chat)
}

export function beginAnew(chat: ChatRow): void {
  if (isGivenUp(chat)) Object.assign(chat, { rounds: 0, compactions: 0, endedTurn: null })
  Object.assign(chat, { failure: null, cancelledTurn: null })
}

const isGivenUp = ({ failure, cancelledTurn, turn }: ChatRow) => failure !== null || cancelledTurn === turn

/** Whoever held the chat last never gave it back. */
export const lapsed = ({ claimedBy }: ChatRow) => (claimedBy === null ? 0 : 1)
export const deathsSoFar = (chat: ChatRow) => chat.deaths + lapsed(chat)
export const deathsForgiven = ({ deaths }: ChatRow) => (deaths < aloneFrom ? 0 : aloneFrom)
export const deathsAnew = (chat: ChatRow) => (isGivenUp(chat) ? deathsForgiven(chat) : chat.deaths)

export function liftFailure(chat: ChatRow): void {
  if (chat.failure !== null) chat.deaths = deathsForgiven(chat)
  chat.failure = null
}

/** What becomes of the wish when a cancel is met: it goes, unless something newer waits. */
export function wishAfterCancel(tables: MemoryTables, chat: ChatRow): Date | null {
  const met = chat.cancelSeq !== null && chat.wantedSeq <= chat.cancelSeq
  return met && tables.queue(chat.id).length === 0 ? null : chat.wantedAt
}
