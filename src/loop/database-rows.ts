import { chatNotFound, releaseChat } from '../../models/claims.ts'
import {
  commitSummary,
  countCompaction,
  readMeasuredContext,
  releaseCancelledCompaction,
  releaseCompaction,
} from '../../models/compaction.ts'
import type { Database } from '../../models/database.ts'
import { setAside } from '../../models/deaths.ts'
import { pauseToolCall, setApproval } from '../../models/pausing.ts'
import { reportToParent } from '../../models/sub-chats.ts'
import { lookAtChat, readQueue, readRecent, readRemembered, readToolCalls } from '../../models/transcript.ts'
import { transferHeld } from '../../models/transferring.ts'
import {
  closeToolCalls,
  commitAnswer,
  commitToolResult,
  settleCancelled,
  startToolCall,
  takeQueued,
} from '../../models/turns.ts'
import { closeOrphanedUsages, closeUsage, openUsage } from '../../models/usages.ts'
import type { RowsPort } from './ports.ts'

/** The rows of a real database. */
export function databaseRows(db: Database, ttlMs: number): RowsPort {
  return {
    async look(chatId) {
      const look = await lookAtChat(db, chatId)
      if (look === null) throw chatNotFound(chatId)
      return look
    },
    transcript: (chatId, through) => readRecent(db, chatId, through),
    remembered: (chatId) => readRemembered(db, chatId),
    measuredContext: (chatId) => readMeasuredContext(db, chatId),
    toolCalls: (messageId) => readToolCalls(db, messageId),
    queue: (chatId) => readQueue(db, chatId),
    commitAnswer: (key, answer) => commitAnswer(db, key, answer),
    startToolCall: (key, call) => startToolCall(db, key, { ...call, ttlMs }),
    setApproval: (key, call) => setApproval(db, key, call),
    pauseToolCall: (key, pause) => pauseToolCall(db, key, pause),
    commitToolResult: (key, result) => commitToolResult(db, key, result),
    reportToParent: (subChat, outcome, key) => reportToParent(db, subChat, outcome, key),
    transfer: (key, transfer) => transferHeld(db, key, transfer),
    closeToolCalls: (key, results) => closeToolCalls(db, key, results),
    takeQueued: (key, take) => takeQueued(db, key, take),
    settleCancelled: (key, settled) => settleCancelled(db, key, settled),
    release: ({ chatId, claimId }, release) => releaseChat(db, { chatId, claimId, ...release }),
    countCompaction: (key) => countCompaction(db, key),
    commitSummary: (key, summary) => commitSummary(db, key, summary),
    releaseCompaction: (key, release) => releaseCompaction(db, key, release),
    releaseCancelledCompaction: (key) => releaseCancelledCompaction(db, key),
    setAside: (aside) => setAside(db, aside),
    openUsage: (usage) => openUsage(db, usage),
    closeUsage: (id, closing) => closeUsage(db, id, closing),
    closeOrphanedUsages: (chatId, claimToken) => closeOrphanedUsages(db, chatId, claimToken),
  }
}
