import type { ClaimKey, TakeFor, WishAfter } from '../../../models/claims.ts'
import { newMessage, userMessage } from '../../../models/new-message.ts'
import { newToolCall } from '../../../models/new-tool-call.ts'
import type { Approval, ChatRow, Failure, QueuedMessageRow } from '../../../models/rows.ts'
import type { NewMessage, UsageLink } from '../../../models/turns.ts'
import type { RowsPort } from '../../../src/loop/ports.ts'
import type { Statements } from '../statements.ts'
import type { Side } from './side.ts'

type Told = (what: string, came: unknown) => Promise<void>

/** No attempts led to a message; the database refuses nothing. */
export const noUsages: UsageLink = { usageIds: [], onUnlinked: () => {} }

/** Plays a scenario on one side, a statement at a time, and tells what each of them came to. */
export class Actor {
  readonly #side: Side
  readonly #told: Told

  constructor(side: Side, told: Told) {
    this.#side = side
    this.#told = told
  }

  /** Runs a statement. Returns what it returned; null where it threw, which is told too. */
  async do<T>(what: string, statement: (statements: Statements) => Promise<T>): Promise<T | null> {
    let came: unknown
    try {
      const returned = await statement(this.#side.statements)
      came = { returned }
      return returned
    } catch (error) {
      came = { threw: (error as { code?: string }).code ?? String(error) }
      return null
    } finally {
      await this.#told(what, came)
    }
  }

  rows<T>(what: string, statement: (rows: RowsPort) => Promise<T>): Promise<T | null> {
    return this.do(what, ({ rows }) => statement(rows))
  }

  async chat(id: string, more: Partial<ChatRow> = {}): Promise<void> {
    await this.#side.addChat({ id, agent: null, ...more })
  }

  /** Lets so many minutes go by. */
  async pass(minutes: number): Promise<void> {
    await this.#side.advance(minutes * 60_000)
  }

  now(): Date {
    return this.#side.now()
  }

  take(chatId: string, claimId: string, reason: TakeFor, more: Partial<TakeMore> = {}) {
    const { agents = [], minutes = 60, deathsBelow = null } = more
    const options = { chatId, claimId, ttlMs: minutes * 60_000, reason, agents, deathsBelow }
    return this.do(`${claimId} takes ${chatId}`, (on) => on.take(options))
  }

  release(key: ClaimKey, wish: WishAfter, more: Partial<Parameters<RowsPort['release']>[1]> = {}) {
    const release = { seen: 0, wish, parked: false, failure: null, turnEnded: false, ...more }
    return this.rows(`${key.claimId} gives ${key.chatId} back`, (rows) => rows.release(key, release))
  }

  stage(chatId: string, id: string, { want = true } = {}) {
    const staging = { chatId, message: this.#said(id), want, pending: {}, toMessage: this.#toMessage }
    return this.do(`${id} is asked`, (on) => on.stage(staging))
  }

  post(chatId: string, id: string, whileRunning: 'queue' | 'steer' | 'interrupt' | 'reject', { want = true } = {}) {
    const staging = { chatId, message: this.#said(id), want, pending: {}, toMessage: this.#toMessage }
    return this.do(`${id} is posted`, (on) => on.post({ ...staging, whileRunning, owner: 'someone' }))
  }

  queue(chatId: string, id: string, { steer = true, wake = true, owner = null as string | null } = {}) {
    const queueing = { chatId, id, content: id, attachments: null, steer, owner, wake }
    return this.do(`${id} is queued`, (on) => on.queue(queueing))
  }

  takeQueue(key: ClaimKey, queued: readonly QueuedMessageRow[], startsTurn: boolean) {
    const messages = queued.map(this.#toMessage)
    return this.rows('the queue is taken', (rows) => rows.takeQueued(key, { queued, messages, startsTurn }))
  }

  decide(chatId: string, call: string, approval: Exclude<Approval, 'pending'>, more: Partial<DecisionOptions> = {}) {
    const nobody = { by: null, reason: null, wake: true, ifUndecided: false, arguments: null, argumentsHash: null }
    return this.do(`${call} is ${approval}`, (on) => on.decide({ chatId, call, approval, ...nobody, ...more }))
  }

  cancel(chatId: string, turn: number | null = null) {
    return this.do(`${chatId} is cancelled`, (on) => on.cancel(chatId, turn))
  }

  /** An answer with a call of each of these public ids. */
  answer(key: ClaimKey, id: string, callIds: readonly string[] = [], usageIds: readonly string[] = []) {
    const { chatId } = key
    const createdAt = this.now()
    const message = newMessage({ id, chatId, role: 'assistant', content: id, createdAt })
    const toolCalls = callIds.map((toolCallId, position) =>
      newToolCall({ id: `${id}-${position}`, chatId, messageId: id, position, toolCallId, name: 'free', createdAt }),
    )
    return this.rows(`${id} is committed`, (rows) =>
      rows.commitAnswer(key, { ...noUsages, message, toolCalls, usageIds }),
    )
  }

  /** A result's message. */
  result(chatId: string, id: string): NewMessage {
    return newMessage({ id, chatId, role: 'tool', content: id, outcome: 'succeeded', createdAt: this.now() })
  }

  say(chatId: string, id: string): NewMessage {
    return newMessage({ id, chatId, role: 'assistant', content: id, createdAt: this.now() })
  }

  failure(turn: number): Failure {
    return { code: 'error', message: 'it broke', turn, at: '2026-01-01T00:00:00.000Z' }
  }

  /** Everything that a run reads. */
  async read(chatId: string): Promise<void> {
    await this.rows('look', (rows) => rows.look(chatId))
    await this.rows('transcript', (rows) => rows.transcript(chatId, null))
    await this.rows('remembered', (rows) => rows.remembered(chatId))
    await this.rows('queue', (rows) => rows.queue(chatId))
    await this.rows('context', (rows) => rows.measuredContext(chatId))
    await this.do('untaken', (on) => on.untaken(chatId))
    await this.do('due', (on) => on.dueChats(10))
    await this.do('cancelled', (on) => on.cancelledAmong([chatId]))
  }

  #said(id: string) {
    return { id, content: id, attachments: null }
  }

  readonly #toMessage = (queued: QueuedMessageRow): NewMessage => ({
    ...userMessage(queued.chatId, `of-${queued.id}`, queued),
    createdAt: this.now(),
  })
}

interface TakeMore {
  readonly agents: readonly string[]
  readonly minutes: number
  readonly deathsBelow: number | null
}

type DecisionOptions = Parameters<Statements['decide']>[0]
