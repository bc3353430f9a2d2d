import type { Transaction } from 'sequelize'
import { argumentsHash } from './arguments-hash.ts'
import { audit } from './audit.ts'
import { tryAgain } from './claims.ts'
import type { Database } from './database.ts'
import { lockChat } from './lock.ts'
import type { Approval, JsonObject, ToolCallRow } from './rows.ts'
import { storableJson } from './storable.ts'
import { findToolCall } from './transcript.ts'
import { pauseOf, type RequestState } from './waiting.ts'
import { wakeUp } from './wishes.ts'

export type DecisionOutcome =
  /** Recorded; the chat is wanted. */
  | 'recorded'
  /** The call has its result: nothing was changed. */
  | 'answered'
  /** Somebody decided before, and only a first decision was to be recorded: nothing was changed. */
  | 'decided'
  /** A process is executing the call right now: nothing was changed. */
  | 'running'
  /** It would run with other arguments than those that were shown: nothing was changed. */
  | 'changed'
  /** The chat has no such call, or the call no such question. */
  | 'unknown'

/** Who decides, and why. */
export interface Decider {
  readonly by: string | null
  readonly reason: string | null
  /** False: nobody is woken for it. */
  readonly wake: boolean
}

export interface Decision extends Decider {
  readonly chatId: string
  /** The row's id or the call's public id. */
  readonly call: string
  readonly approval: Exclude<Approval, 'pending'>
  /** Only if nobody has decided yet. */
  readonly ifUndecided: boolean
  /** In place of the model's arguments; null = leave them. */
  readonly arguments: JsonObject | null
  /** The hash of the arguments that were shown; null = whatever they are. */
  readonly argumentsHash: string | null
}

export interface Decided {
  readonly outcome: DecisionOutcome
  readonly call: ToolCallRow | null
}

/** Records a person's decision about a call, from any process, unless the call was answered or is being executed. */
export async function decide(db: Database, decision: Decision, transaction: Transaction): Promise<Decided> {
  const { claimed, chat } = await lockChat(db, decision.chatId, transaction)
  const call = await findToolCall(db, decision.chatId, decision.call, transaction)
  if (call === null) return { outcome: 'unknown', call }
  if (call.resultId !== null) return { outcome: 'answered', call }
  if (decision.ifUndecided && call.approval !== null && call.approval !== 'pending') return { outcome: 'decided', call }
  if (decision.argumentsHash !== null && decision.argumentsHash !== argumentsHash(call)) {
    return { outcome: 'changed', call }
  }
  const { approval, by, reason } = decision
  // A denied call runs with nothing, and the model must not be told otherwise.
  const edited = approval === 'denied' ? null : (decision.arguments ?? call.editedArguments)
  const rows = await db.write(
    `UPDATE ${db.tables.toolCalls} SET approval = $approval, decided_by = $by, decision_reason = $reason, ` +
      `edited_arguments = $edited, asked_at = NULL, expires_at = NULL, updated_at = ${db.dialect.now} ` +
      `WHERE id = $id AND result_id IS NULL ` +
      `AND (claimed_until IS NULL OR claimed_until <= ${db.dialect.now} OR claimed_by IS NULL OR claimed_by <> $holder)`,
    // Under the lock of the chat row nobody can start the call between this look and the write.
    {
      id: call.id,
      approval,
      by,
      reason,
      edited: edited === null ? null : storableJson('arguments', edited),
      holder: claimed ? (chat.claimedBy ?? '') : '',
    },
    transaction,
  )
  if (rows === 0) return { outcome: 'running', call }
  await wake(db, decision.chatId, decision.wake, transaction)
  await audit(db, call, { action: approval, decidedBy: by, reason, value: decision.arguments }, transaction)
  const now = {
    approval,
    decidedBy: by,
    decisionReason: reason,
    editedArguments: edited,
    askedAt: null,
    expiresAt: null,
  }
  return { outcome: 'recorded', call: { ...call, ...now } }
}

/** What is said to one question of a call; null declines. */
export interface RequestAnswer extends Decider {
  readonly chatId: string
  /** The row's id or the call's public id. */
  readonly call: string
  readonly key: string
  /** Makes the answer of what was asked; what it throws comes out, and nothing is written. */
  readonly answer: ((request: RequestState) => JsonObject) | null
}

/** Records an answer to a question of a call, from any process. The first one counts. */
export async function answerRequest(db: Database, given: RequestAnswer, transaction: Transaction): Promise<Decided> {
  await lockChat(db, given.chatId, transaction)
  const call = await findToolCall(db, given.chatId, given.call, transaction)
  const pause = call === null ? {} : pauseOf(call)
  const request = pause.requests?.find(({ key }) => key === given.key)
  if (call === null) return { outcome: 'unknown', call }
  if (call.resultId !== null) return { outcome: 'answered', call }
  if (request === undefined) return { outcome: 'unknown', call }
  if (request.answer !== undefined || request.declined === true) return { outcome: 'decided', call }
  const said = given.answer === null ? { declined: true as const } : { answer: given.answer(request) }
  const requests = (pause.requests ?? []).map((one) => (one === request ? { ...request, ...said } : one))
  const mcpState = { ...pause, requests } as JsonObject
  await db.write(
    `UPDATE ${db.tables.toolCalls} SET mcp_state = $state, updated_at = ${db.dialect.now} WHERE id = $id AND result_id IS NULL`,
    { id: call.id, state: storableJson('answer', mcpState) },
    transaction,
  )
  await wake(db, given.chatId, given.wake, transaction)
  const action = given.answer === null ? ('declined' as const) : ('answered' as const)
  const value = 'answer' in said ? said.answer : null
  const { by: decidedBy, reason } = given
  await audit(db, call, { action, decidedBy, reason, requestKey: given.key, value }, transaction)
  return { outcome: 'recorded', call: { ...call, mcpState } }
}

/** Wakes somebody, whom a turn that was given up may not hold back: else only a ring that is heard would say so. */
async function wake(db: Database, chatId: string, wanted: boolean, transaction: Transaction): Promise<void> {
  await db.write(
    `UPDATE ${db.tables.chats} SET ${wanted ? `${tryAgain}, ` : ''}${wakeUp(db, wanted)}, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId },
    transaction,
  )
}
