import type { Transaction } from 'sequelize'
import { onceCommitted } from '../config/transaction.ts'
import type { Untaken } from '../models/claims.ts'
import type { Database } from '../models/database.ts'
import { setAsideAt } from '../models/deaths.ts'
import type { Bell } from '../models/rows.ts'
import type { PendingSettings } from '../models/settings.ts'
import { failUntaken, putOff } from '../models/sweep.ts'
import { wantChat } from '../models/wishes.ts'
import { requireOptions } from '../src/chat/verb-options.ts'
import { ArgumentError, MissingAgentError } from '../src/errors.ts'
import { isLeftForDeaths } from '../src/loop/deaths.ts'
import { failureOf, missingAgent, putOffDelayMs, putOffLimit } from '../src/loop/ending.ts'
import { run } from '../src/loop/run.ts'
import type { LoopPorts } from '../src/loop/run-context.ts'
import { setChatAside } from '../src/loop/set-aside.ts'
import type { JobEnd } from '../src/observability/observation.ts'
import type { Apart } from './apart.ts'
import type { Bells, RingOptions } from './bell.ts'

/** A chat, or its id. Given a chat, its pending settings are stored too. */
export type ChatOrId =
  | string
  | {
      /** The chat's id. */
      readonly id: string
      /** @internal */
      storePending<T>(
        store: (pending: PendingSettings, transaction: Transaction) => Promise<T>,
        join?: Transaction,
      ): Promise<T>
    }

/** When a chat is wanted, how urgently, and as part of which transaction. */
export interface EnqueueOptions extends RingOptions {
  /** A transaction of the application's: the wish is part of it, and the ring follows its commit. */
  readonly transaction?: Transaction | undefined
}

export interface JobDependencies {
  readonly db: Database
  readonly bells: Bells
  readonly ports: LoopPorts
  /** Where a chat runs that processes died over, unless a pool says otherwise. */
  readonly apart: Apart
}

/** How a pool has its jobs done. */
export interface Performing {
  readonly stopping: () => boolean
  readonly apart: Apart
  /** Told the process of its own that runs the chat, where there is one. */
  readonly onProcess: (pid: number) => void
}

export interface Attempting {
  readonly chatId: string
  readonly stopping: () => boolean
  /** Whether no other chat that processes died over runs beside it. */
  readonly alone: boolean
}

export type Attempt =
  | { readonly kind: 'came'; readonly outcome: JobOutcome }
  | { readonly kind: 'refused'; readonly untaken: Untaken }

/** What an attempt came to. */
export function came(outcome: JobOutcome): Attempt {
  return { kind: 'came', outcome }
}

/** What a job comes to, as Bull Board shows it. `waiting`: the chat is parked until someone decides. */
export type JobOutcome = Exclude<JobEnd, 'cancelled' | 'failed'>

/** A queue's work, and the way to ask for it. */
export abstract class ChatJob {
  /** The queue whose workers do this job. */
  abstract readonly queue: Bell
  protected readonly dependencies: JobDependencies

  /** @internal */
  constructor(dependencies: JobDependencies) {
    this.dependencies = dependencies
  }

  /**
   * Asks for the chat to be run: now, or after `delayMs`; of several wishes the earliest wins. A turn that failed or was
   * cancelled is tried again. The wish is a row: when Redis is away it is found by the sweeper.
   * @throws {ChatNotFoundError} when there is no such chat.
   * @throws {ArgumentError} for a transaction that can't be joined, a delay below 0 or above ten years, options that there are not, and
   *   for what is neither a chat nor an id.
   */
  async enqueue(chat: ChatOrId, options: EnqueueOptions = {}): Promise<void> {
    const { db, bells } = this.dependencies
    const chatId = idOf(chat)
    requireOptions('enqueue', options, chatId)
    const { transaction: join, ...ring } = options
    const want = (pending: PendingSettings, transaction: Transaction) =>
      this.want(chatId, { delayMs: options.delayMs ?? 0, pending }, transaction)
    if (typeof chat === 'string') await db.transaction((transaction) => want({}, transaction), join)
    else await chat.storePending(want, join)
    if (join === undefined) await bells.ring(chatId, this.queue, ring)
    else onceCommitted(join, () => bells.ring(chatId, this.queue, ring))
  }

  /** Records the wish that the ring announces. */
  protected want(
    chatId: string,
    options: { readonly delayMs: number; readonly pending: PendingSettings },
    transaction: Transaction,
  ): Promise<void> {
    return wantChat(this.dependencies.db, chatId, { ...options, queue: this.queue }, transaction)
  }

  /**
   * Does the work of one job: runs the chat if it is wanted and nobody else runs it. One that processes died over is run here too, but no
   * other such chat beside it; one that has cost too many is set aside.
   * @throws whatever ended the turn. {QuarantinedError} for a chat that was set aside. {ArgumentError} for what is no id.
   */
  async perform(chatId: string, stopping: () => boolean): Promise<JobOutcome> {
    return this.performApart(chatId, { stopping, apart: this.dependencies.apart, onProcess: () => {} })
  }

  /** @internal The same, by a pool that may have other places for a chat that processes died over. */
  async performApart(chatId: string, { stopping, apart, onProcess }: Performing): Promise<JobOutcome> {
    requireChatId(chatId)
    const attempt = await this.attempt({ chatId, stopping, alone: false })
    if (attempt.kind === 'came') return attempt.outcome
    const { untaken } = attempt
    if (!this.isLeftForDeaths(untaken)) return this.leave(chatId, untaken)
    const { deaths, claimToken } = untaken
    if (deaths >= setAsideAt) return this.#setAside(chatId, deaths)
    const here = async () => {
      const alone = await this.attempt({ chatId, stopping, alone: true })
      return alone.kind === 'came' ? alone.outcome : this.leave(chatId, alone.untaken)
    }
    return apart.run({ chatId, queue: this.queue, deaths, claimToken, here, onProcess })
  }

  /** Runs the chat, if it can be taken. */
  protected async attempt(order: Attempting): Promise<Attempt> {
    const { chatId } = order
    const result = await run(this.dependencies.ports, { ...order, verb: 'complete', by: this.queue }).catch(
      async (error: unknown) => {
        // A tool that another worker has: the chat is left to that one, and nothing has failed.
        if (error instanceof MissingAgentError && (await this.#isUnfailed(chatId))) return { kind: 'put off' } as const
        throw error
      },
    )
    switch (result.kind) {
      case 'ended':
        if (result.handedTo !== null) return came('handed over')
        return came(result.parked ? 'waiting' : 'done')
      case 'lost':
        return came('claim lost')
      case 'put off':
        return came('put off')
      case 'refused':
        return result
      default:
        return result satisfies never
    }
  }

  /** Whether nothing but what it has cost keeps this process from taking a chat. */
  protected isLeftForDeaths(untaken: Untaken): boolean {
    const { claimed, dueForMs } = untaken
    if (claimed || dueForMs === null || dueForMs < 0) return false
    return isLeftForDeaths(this.dependencies.ports, untaken, { by: this.queue })
  }

  async #setAside(chatId: string, deaths: number): Promise<JobOutcome> {
    const error = await setChatAside(this.dependencies.ports, chatId, deaths)
    if (error === null) return 'claimed elsewhere'
    throw error
  }

  async #isUnfailed(chatId: string): Promise<boolean> {
    return (await this.dependencies.ports.rows.look(chatId)).chat.failure === null
  }

  /** The wish stays with its row, whatever this job comes to. */
  protected async leave(chatId: string, untaken: Untaken): Promise<JobOutcome> {
    if (untaken.claimed) return 'claimed elsewhere'
    if (untaken.dueForMs === null || untaken.dueForMs < 0) return 'not wanted'
    const { db, ports } = this.dependencies
    if (untaken.agent === null || ports.agentNamed(untaken.agent) !== null) return 'claimed elsewhere'
    if (untaken.putOff < putOffLimit) {
      const delayMs = putOffDelayMs(untaken.putOff, ports.clock.random())
      await putOff(db, chatId, delayMs)
      ports.observe({ type: 'chat.put-off', chatId, agent: untaken.agent, delayMs })
      return 'put off'
    }
    const error = new MissingAgentError(
      `No worker that took up chat ${chatId} in ten minutes has its agent ${JSON.stringify(untaken.agent)}. ` +
        'Start one with connect({ agents }); the chat then goes on by itself.',
      { chatId },
    )
    const look = await ports.rows.look(chatId)
    const failure = { ...failureOf(error, look.chat.turn, ports.clock.now()), code: missingAgent }
    if (await failUntaken(db, chatId, failure)) {
      // From outside any run: the last take is another process's.
      ports.events.publish(chatId, 0, { type: 'run.failed', failure, retryInMs: null })
      ports.observe({ type: 'chat.failed', chatId, agent: untaken.agent, code: missingAgent })
    }
    throw error
  }
}

/** @throws {ArgumentError} */
export function requireChatId(chatId: unknown): void {
  if (typeof chatId !== 'string') throw new ArgumentError('perform() takes the id of a chat.')
}

/** @throws {ArgumentError} */
function idOf(chat: unknown): string {
  if (typeof chat === 'string') return chat
  const { id, storePending } = (chat ?? {}) as Partial<Exclude<ChatOrId, string>>
  if (typeof id === 'string' && typeof storePending === 'function') return id
  throw new ArgumentError('enqueue() takes a chat of mill.chats, or its id.')
}
