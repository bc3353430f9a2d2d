import { cancelTurn } from '../../models/cancelling.ts'
import {
  type ClaimKey,
  cancelledAmong,
  readUntaken,
  renewChatClaim,
  renewToolCallClaim,
  type TakeOptions,
  takeChat,
  type Untaken,
} from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import { type Death, noteDeath } from '../../models/deaths.ts'
import { answerRequest, type Decided, type Decision, decide, type RequestAnswer } from '../../models/decisions.ts'
import { type Posting, postMessage } from '../../models/posting.ts'
import { enqueueMessage, type Queueing, type Unqueued, unqueueMessage } from '../../models/queue.ts'
import type { Bell, QueuedMessageRow } from '../../models/rows.ts'
import { type Staged, type Staging, stageMessage } from '../../models/staging.ts'
import { type DueChat, dueChats } from '../../models/sweep.ts'
import { wantChat } from '../../models/wishes.ts'
import { databaseRows } from '../../src/loop/database-rows.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import * as cancelling from './cancelling.ts'
import * as claims from './claims.ts'
import * as deaths from './deaths.ts'
import * as decisions from './decisions.ts'
import { memoryRows } from './rows.ts'
import type { MemoryTables } from './tables.ts'
import * as writers from './writers.ts'

/** All that is written and read in running a chat, each of them one transaction or one statement. */
export interface Statements {
  readonly rows: RowsPort
  take: (options: TakeOptions) => Promise<boolean>
  untaken: (chatId: string) => Promise<Untaken | null>
  renewChat: (key: ClaimKey, ttlMs: number) => Promise<boolean>
  renewToolCall: (callId: string, claimId: string, ttlMs: number) => Promise<void>
  cancelledAmong: (chatIds: readonly string[]) => Promise<string[]>
  dueChats: (limit: number) => Promise<DueChat[]>
  stage: (staging: Staging) => Promise<Staged>
  post: (posting: Posting) => Promise<Staged>
  queue: (queueing: Queueing) => Promise<QueuedMessageRow>
  unqueue: (chatId: string, id: string) => Promise<Unqueued>
  decide: (decision: Decision) => Promise<Decided>
  answer: (given: RequestAnswer) => Promise<Decided>
  cancel: (chatId: string, turn: number | null) => Promise<string[]>
  noteDeath: (death: Death) => Promise<void>
  want: (chatId: string, wish: { readonly delayMs: number; readonly queue: Bell }) => Promise<void>
}

/** @param ttlMs how long a tool call is claimed when it starts. */
export function memoryStatements(tables: MemoryTables, ttlMs: number): Statements {
  return {
    rows: memoryRows(tables, ttlMs),
    take: async (options) => claims.takeChat(tables, options),
    untaken: async (chatId) => claims.readUntaken(tables, chatId),
    renewChat: async (key, ms) => claims.renewChatClaim(tables, key, ms),
    renewToolCall: async (callId, claimId, ms) => claims.renewToolCallClaim(tables, callId, claimId, ms),
    cancelledAmong: async (chatIds) => claims.cancelledAmong(tables, chatIds),
    dueChats: async (limit) => claims.dueChats(tables, limit),
    stage: async (staging) => writers.stageMessage(tables, staging),
    post: async (posting) => writers.postMessage(tables, posting),
    queue: async (queueing) => writers.enqueueMessage(tables, queueing),
    unqueue: async (chatId, id) => writers.unqueueMessage(tables, chatId, id),
    decide: async (decision) => decisions.decide(tables, decision),
    answer: async (given) => decisions.answerRequest(tables, given),
    cancel: async (chatId, turn) => cancelling.cancelTurn(tables, chatId, turn),
    noteDeath: async (death) => deaths.noteDeath(tables, death),
    want: async (chatId, wish) => writers.wantChat(tables, chatId, { ...wish, pending: {} }),
  }
}

export function databaseStatements(db: Database, ttlMs: number): Statements {
  return {
    rows: databaseRows(db, ttlMs),
    take: (options) => takeChat(db, options),
    untaken: (chatId) => readUntaken(db, chatId),
    renewChat: (key, ms) => renewChatClaim(db, key, ms),
    renewToolCall: (callId, claimId, ms) => renewToolCallClaim(db, callId, claimId, ms),
    cancelledAmong: (chatIds) => cancelledAmong(db, chatIds),
    dueChats: (limit) => dueChats(db, limit),
    stage: (staging) => db.transaction((transaction) => stageMessage(db, staging, transaction)),
    post: (posting) => db.transaction((transaction) => postMessage(db, posting, transaction)),
    queue: (queueing) => db.transaction((transaction) => enqueueMessage(db, queueing, transaction)),
    unqueue: (chatId, id) => db.transaction((transaction) => unqueueMessage(db, chatId, id, transaction)),
    decide: (decision) => db.transaction((transaction) => decide(db, decision, transaction)),
    answer: (given) => db.transaction((transaction) => answerRequest(db, given, transaction)),
    cancel: (chatId, turn) => db.transaction((transaction) => cancelTurn(db, chatId, turn, transaction)),
    noteDeath: (death) => noteDeath(db, death),
    want: (chatId, wish) =>
      db.transaction((transaction) => wantChat(db, chatId, { ...wish, pending: {} }, transaction)),
  }
}
