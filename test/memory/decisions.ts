import { argumentsHash } from '../../models/arguments-hash.ts'
import type { Decided, Decision, RequestAnswer } from '../../models/decisions.ts'
import type { JsonObject } from '../../models/rows.ts'
import { pauseOf } from '../../models/waiting.ts'
import { tryAgain, wakeUp } from './fence.ts'
import { isClaimed, type MemoryTables } from './tables.ts'

// `models/decisions.ts` in the same words.

export function decide(tables: MemoryTables, decision: Decision): Decided {
  const { chatId, approval, by, reason } = decision
  const chat = tables.chat(chatId)
  const call = tables.findToolCall(chatId, decision.call)
  if (call === null) return { outcome: 'unknown', call }
  if (call.resultId !== null) return { outcome: 'answered', call: { ...call } }
  if (decision.ifUndecided && call.approval !== null && call.approval !== 'pending') {
    return { outcome: 'decided', call: { ...call } }
  }
  if (decision.argumentsHash !== null && decision.argumentsHash !== argumentsHash(call)) {
    return { outcome: 'changed', call: { ...call } }
  }
  const now = tables.now()
  const held = call.claimedUntil !== null && call.claimedUntil > now
  const holder = isClaimed(chat, now.getTime()) ? chat.claimedBy : ''
  if (held && call.claimedBy !== null && call.claimedBy === holder) return { outcome: 'running', call: { ...call } }
  const editedArguments = approval === 'denied' ? null : (decision.arguments ?? call.editedArguments)
  const decided = { approval, decidedBy: by, decisionReason: reason, editedArguments, askedAt: null, expiresAt: null }
  const before = { ...call }
  Object.assign(call, decided, { updatedAt: now })
  if (decision.wake) tryAgain(chat)
  wakeUp(chat, now, decision.wake)
  chat.updatedAt = now
  tables.audit(call, { action: approval, decidedBy: by, reason, value: decision.arguments })
  return { outcome: 'recorded', call: { ...before, ...decided } }
}

/** @throws what `given.answer` throws; nothing is written then. */
export function answerRequest(tables: MemoryTables, given: RequestAnswer): Decided {
  const chat = tables.chat(given.chatId)
  const call = tables.findToolCall(given.chatId, given.call)
  if (call === null) return { outcome: 'unknown', call }
  if (call.resultId !== null) return { outcome: 'answered', call: { ...call } }
  const pause = pauseOf(call)
  const request = pause.requests?.find(({ key }) => key === given.key)
  if (request === undefined) return { outcome: 'unknown', call: { ...call } }
  if (request.answer !== undefined || request.declined === true) return { outcome: 'decided', call: { ...call } }
  const said = given.answer === null ? { declined: true as const } : { answer: given.answer(request) }
  const requests = (pause.requests ?? []).map((one) => (one === request ? { ...request, ...said } : one))
  const mcpState = { ...pause, requests } as JsonObject
  const before = { ...call }
  const now = tables.now()
  Object.assign(call, { mcpState, updatedAt: now })
  if (given.wake) tryAgain(chat)
  wakeUp(chat, now, given.wake)
  chat.updatedAt = now
  const value = 'answer' in said ? said.answer : null
  const { by: decidedBy, reason, key: requestKey } = given
  const action = given.answer === null ? 'declined' : 'answered'
  tables.audit(call, { action, decidedBy, reason, requestKey, value })
  return { outcome: 'recorded', call: { ...before, mcpState } }
}
